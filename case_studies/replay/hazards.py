"""Which form of the hazard says best which runs of a world die, and when? Left one world out.

    python case_studies/replay/hazards.py TABLE.jsonl[.gz]... [--out hazards.json]

Every form knows the norm of an Adam update, the group size and the refresh interval, and has an
intercept that varies between worlds; of the world left out it knows no run. The constant rate per
step is what the package has; a clock in cumulative learning rate is that with the exponent 1.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from tables import World, read_worlds

from advisor.diagnosis.collapse import find_final_fall
from advisor.forecast import log_update_norm
from advisor.theory import FloatArray

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
LOG_WEIGHTS = np.log(WEIGHTS / WEIGHTS.sum())
PRIOR_SD = 3.0
"""Of every coefficient, so that a world where nothing dies does not run away."""

TINY = 1e-12


class Fate(NamedTuple):
    """What became of the runs of a world.

    Attributes
    ----------
    design : ndarray of shape (runs, 4)
        One, log update norm, log group size over 8, log refresh interval.
    time : ndarray of shape (runs,)
        Step of the collapse, or the last one, over 100.
    died : ndarray of shape (runs,)
    """

    design: FloatArray
    time: FloatArray
    died: FloatArray


Form = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""Of (shape parameters, linear predictor, time): log survival and log density of a death."""


def constant(_: FloatArray, eta: FloatArray, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Exponential times: what the package has."""
    log_survival = -np.exp(np.clip(eta, -30, 30)) * time
    return log_survival, eta + log_survival


def weibull(shape: FloatArray, eta: FloatArray, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rate that grows or falls with the time trained."""
    k = np.exp(shape[0])
    log_survival = -np.exp(np.clip(eta, -30, 30)) * time**k
    return log_survival, eta + np.log(k) + (k - 1) * np.log(time) + log_survival


def frailty(shape: FloatArray, eta: FloatArray, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Exponential times whose rate varies from run to run (gamma)."""
    theta = np.exp(shape[0])
    inner = np.log1p(theta * np.exp(np.clip(eta, -30, 30)) * time)
    return -inner / theta, eta - (1 + 1 / theta) * inner


def cure(shape: FloatArray, eta: FloatArray, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Threshold: a run is doomed or not, and the doomed die at Weibull times."""
    k, rate = np.exp(shape[0]), np.exp(shape[1])
    doomed = expit(eta)
    hazard = rate * time**k
    log_survival = np.log(1 - doomed + doomed * np.exp(-hazard) + TINY)
    log_density = np.log(doomed + TINY) + np.log(rate * k) + (k - 1) * np.log(time) - hazard
    return log_survival, log_density


def bounded(shape: FloatArray, eta: FloatArray, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cumulative hazard with a ceiling: whoever is to die dies while training is young."""
    rate = np.exp(shape[0])
    clock = -np.expm1(-rate * time) / rate
    log_survival = -np.exp(np.clip(eta, -30, 30)) * clock
    return log_survival, eta - rate * time + log_survival


def bounded_frailty(
    shape: FloatArray, eta: FloatArray, time: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same, with a rate that varies from run to run (gamma)."""
    theta, rate = np.exp(shape[0]), np.exp(shape[1])
    clock = -np.expm1(-rate * time) / rate
    inner = np.log1p(theta * np.exp(np.clip(eta, -30, 30)) * clock)
    return -inner / theta, eta - rate * time - (1 + 1 / theta) * inner


FORMS: dict[str, tuple[Form, int]] = {
    "constant rate (ours)": (constant, 0),
    "Weibull": (weibull, 1),
    "gamma frailty": (frailty, 1),
    "cure, Weibull times": (cure, 2),
    "bounded": (bounded, 1),
    "bounded, gamma frailty": (bounded_frailty, 2),
}


def fates(world: World) -> Fate:
    """Deaths of the runs of a world, by the definition that a fit uses."""
    rows, time, died = [], [], []
    for index, run in enumerate(world.runs):
        settings = world.settings(index)
        verdict, _ = find_final_fall(run.step, run.reward, 0.0)
        norm = log_update_norm(settings.learning_rate, world.target.parameters)
        rows.append([1.0, norm, np.log(settings.group_size / 8), np.log(settings.refresh_interval)])
        time.append((verdict.onset_step or float(run.step[-1])) / 100)
        died.append(float(verdict.unstable))
    return Fate(np.array(rows), np.array(time), np.array(died))


def fitted(form: Form, shapes: int, worlds: Sequence[Fate]) -> FloatArray:
    """Coefficients, log spread of the worlds' intercepts and shape parameters: penalised."""
    count = worlds[0].design.shape[1]

    def loss(theta: FloatArray) -> float:
        slopes, spread, shape = theta[:count], np.exp(theta[count]), theta[count + 1 :]
        total = -0.5 * float(np.sum(theta**2)) / PRIOR_SD**2
        for world in worlds:
            eta = (world.design @ slopes)[None] + spread * NODES[:, None]
            lived, died = form(shape, eta, world.time)
            joint = np.where(world.died > 0, died, lived).sum(axis=1)
            total += float(logsumexp(joint + LOG_WEIGHTS))
        return -total

    start = np.zeros(count + 1 + shapes)
    return np.asarray(minimize(loss, start, method="L-BFGS-B").x)


def told(form: Form, theta: FloatArray, world: Fate) -> FloatArray:
    """Chance of every run of an unseen world to live to its end."""
    count = world.design.shape[1]
    slopes, spread, shape = theta[:count], np.exp(theta[count]), theta[count + 1 :]
    # A run that died was to live as long as its siblings.
    horizon = np.full(world.time.size, world.time.max())
    eta = (world.design @ slopes)[None] + spread * NODES[:, None]
    lived, _ = form(shape, eta, horizon)
    return np.asarray(np.exp(logsumexp(lived + LOG_WEIGHTS[:, None], axis=0)))


def main() -> None:
    """Score every form on every world that it did not see."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    known = [w for w in read_worlds(given.tables) if w.settings(0).optimizer == "adamw"]
    worlds = {world.name: fates(world) for world in known}
    every = list(worlds.values())
    lived = 1 - np.concatenate([world.died for world in every])
    found = {
        "worlds": len(every),
        "runs": int(lived.size),
        "died": int((1 - lived).sum()),
        "base_rate_brier": float(lived.mean() * (1 - lived.mean())),
        "forms": {},
    }
    for name, (form, shapes) in FORMS.items():
        chances = []
        for left in range(len(every)):
            theta = fitted(form, shapes, every[:left] + every[left + 1 :])
            chances.append(told(form, theta, every[left]))
        p = np.clip(np.concatenate(chances), 1e-4, 1 - 1e-4)
        score = lived * np.log(p) + (1 - lived) * np.log1p(-p)
        whole = fitted(form, shapes, every)
        found["forms"][name] = {
            "brier": float(np.mean((p - lived) ** 2)),
            "log_score": float(-score.mean()),
            "norm_exponent": float(whole[1]),
            "spread_of_worlds": float(np.exp(whole[every[0].design.shape[1]])),
            "shape": [float(x) for x in np.exp(whole[every[0].design.shape[1] + 1 :])],
        }
        print(name, found["forms"][name], flush=True)
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
