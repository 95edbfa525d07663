"""Calibration of the fit that is shipped, with its gate and retries, on three to eight pilots.

Parameters are drawn from a preset, data from the parameters, and fitted as `advisor.fit` does. The
truth is ranked among the draws for the chance to live and the expected reward, of a fixed
configuration and of the one that would be advised: the posterior of the best of many is where a
model that is right on average may be wrong. In the controls the simulator is not the model: runs
collapse more often, or the plateau loss is larger, than the preset has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ranks import coverage, difference, rank_of, uniform_band
from simulation import PLANS, Draws, design, draw_prior, simulate
from simulation_lines import Record, made_under, read_records, run_missing

from advisor.common import EngineSettings, silent
from advisor.errors import NotConvergedError
from advisor.forecast import Forecaster, RunEffect, Target
from advisor.model import (
    POPULATION,
    RUN_EFFECTS,
    SPECTRUM,
    FitClock,
    Posterior,
    Priors,
    Sampling,
    converged,
    load_priors,
)
from advisor.model.cohort import Cohort
from advisor.model.posterior import make_posterior
from advisor.runs import PartialSettings, Settings
from advisor.theory import FloatArray, IntArray


class Simulated(NamedTuple):
    """What a study simulates: parameters from a preset, moved by a fault.

    Attributes
    ----------
    preset : str
        That is fitted under, and drawn from.
    hazard : float
        Factor on the collapse rate.
    loss : float
        Prior standard deviations by which the log plateau loss is moved.
    """

    preset: str
    hazard: float = 1.0
    loss: float = 0.0

    @property
    def is_control(self) -> bool:
        """Whether the simulator is not the model, so that the study must fail."""
        return self.hazard != 1 or self.loss != 0


STUDIES = {
    "small_models": Simulated("small_models"),
    "full_finetuning": Simulated("full_finetuning"),
    "lora": Simulated("lora"),
    "theory": Simulated("theory"),
    "collapses_x3": Simulated("small_models", hazard=3.0),
    "collapses_x10": Simulated("small_models", hazard=10.0),
    "collapses_x30": Simulated("small_models", hazard=30.0),
    "loss_2sd": Simulated("small_models", loss=2.0),
}
FEWEST, MOST = 3, 8
HORIZON = 180
"""Steps of the run that is advised: three times a pilot."""

RATES, GROUPS = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3), (8, 16, 32)
STABLE = 0.9
DRAWS = 99
LEVEL = 0.05
"""Of the test of a study, by Bonferroni over its ranks."""

SUBSETS = 400
"""Random halves of a control's simulations by which its power at half their number is told."""

LEAST_HALF = 10
"""Simulations below which a half is not asked."""

FIXED = PartialSettings(
    learning_rate=3e-4,
    group_size=16,
    prompts_per_step=16.0,
    minibatches_per_refresh=1,
    epochs_per_refresh=1,
    planned_steps=HORIZON,
).completed()


class Truth:
    """Chance to live and expected reward of configurations, for every draw."""

    def __init__(self, posterior: Posterior, model: str, draws: int) -> None:
        plain = RunEffect(lambda _, kept: np.zeros((len(RUN_EFFECTS), kept.size)))
        target = Target("task", model, {"s": 1e5, "m": 4e5}[model])
        self.forecaster = Forecaster(posterior, target, draws=draws, run_effect=plain)

    def lives(self, settings: Settings) -> FloatArray:
        """Chance of no collapse by the horizon, shape (draws,)."""
        return self.forecaster.survival(settings, HORIZON)

    def reward(self, settings: Settings) -> FloatArray:
        """Expected reward of a run that lives, as a share of the range, shape (draws,)."""
        return self.forecaster.scaled_reward(settings, [HORIZON])[:, 0]


def simulated(study: str, number: int) -> Record:
    """Draw, fit, advise, rank; a control sees the pilots of its preset, but for its fault."""
    what = STUDIES[study]
    priors = load_priors(what.preset)
    rng = np.random.default_rng([number, *what.preset.encode()])
    count = int(rng.integers(FEWEST, MOST + 1))
    plans = [PLANS[i] for i in sorted(rng.choice(len(PLANS), count, replace=False))]
    empty = design(plans)
    drawn = moved(draw_prior(empty, priors, SPECTRUM, rng), what, priors)
    cohort = simulate(empty, drawn, SPECTRUM, rng)
    cohort = replace(cohort, reward=np.clip(cohort.reward, 0.0, 1.0))
    record: Record = {"number": number, "pilots": count}
    record["collapsed"] = int(cohort.collapsed.sum())
    try:
        posterior = converged(
            cohort, priors, SPECTRUM, Sampling(seed=int(rng.integers(2**31))), FitClock(silent)
        )
    except NotConvergedError:
        return record | {"converged": False}
    model = plans[-1][0]
    found = Truth(posterior, model, DRAWS)
    true = Truth(of_one_draw(cohort, priors, drawn), model, 1)
    choices = [
        FIXED.model_copy(update={"learning_rate": rate, "group_size": group})
        for rate in RATES
        for group in GROUPS
    ]
    safe = [one for one in choices if found.lives(one).mean() >= STABLE]
    advised = max(safe, key=lambda one: found.reward(one).mean()) if safe else None
    record |= {"converged": True, "ranks": _ranks("fixed", FIXED, found, true), "advised": None}
    if advised is not None:
        said = found.reward(advised)
        low, high = np.quantile(said, [0.1, 0.9])
        record["ranks"] |= _ranks("advised", advised, found, true)
        record["advised"] = {
            "learning_rate": advised.learning_rate,
            "said": float(found.lives(advised).mean()),
            "true": float(true.lives(advised)[0]),
            "reward_said": float(said.mean()),
            "reward_true": float(true.reward(advised)[0]),
            "holds_80": bool(low <= true.reward(advised)[0] <= high),
        }
    return record


def _ranks(name: str, settings: Settings, found: Truth, true: Truth) -> dict[str, int]:
    """Ranks of the truth; which configuration it is follows from the data, so they are uniform."""
    return {
        f"lives, {name}": rank_of(true.lives(settings)[0], found.lives(settings)),
        f"reward, {name}": rank_of(true.reward(settings)[0], found.reward(settings)),
    }


def moved(parameters: Draws, what: Simulated, priors: Priors) -> Draws:
    """Parameters with the fault of a study."""
    population = parameters["population"].copy()
    population[:, POPULATION.index("hazard.level")] += np.log(what.hazard)
    more = what.loss * priors.plateau_loss_level.sd
    population[:, POPULATION.index("plateau_loss.level")] += more
    return parameters | {"population": population}


def of_one_draw(cohort: Cohort, priors: Priors, parameters: Draws) -> Posterior:
    """A posterior of one draw: the truth."""
    raw = {name: values[None] for name, values in parameters.items()}
    statistics = {name: np.zeros((1, 1)) for name in ("diverging", "n_steps")}
    sure = {name: (np.ones(v.shape[2:]), np.ones(v.shape[2:])) for name, v in raw.items()}
    return make_posterior(cohort, priors, SPECTRUM, raw, statistics, sure, {}, seed=0)


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """What ranks and advised configurations say.

    Parameters
    ----------
    records : sequence of dict

    Returns
    -------
    told : dict
        ``passes`` where the smallest chance of the ranks, times their number, is at least
        ``LEVEL``; ``failed_by_half`` the share of random halves that do not pass.
    """
    fitted = [one for one in records if one["converged"]]
    told: dict[str, Any] = {
        "simulations": len(records),
        "not_converged": len(records) - len(fitted),
        "with_a_collapse": sum(one["collapsed"] > 0 for one in records),
        "ranks": {},
    }
    ranks = _by_name(fitted)
    for name, own in ranks.items():
        told["ranks"][name] = {
            "ranked": int(own.size),
            "largest_difference": round(float(np.abs(difference(own, DRAWS)).max()), 4),
            "chance": uniform_band(own.size, DRAWS).chance(own),
            "holds_80": round(coverage(own, DRAWS, 0.8), 4),
        }
    told["chance_of_all"] = chance_of_all(ranks)
    told["passes"] = told["chance_of_all"] >= LEVEL
    half = len(fitted) // 2
    rng = np.random.default_rng(0)
    told["half"] = half
    told["failed_by_half"] = (
        float(np.mean([_half_fails(fitted, half, rng) for _ in range(SUBSETS)]))
        if half >= LEAST_HALF
        else None
    )
    advised = [one["advised"] for one in fitted if one["advised"] is not None]
    said, true = (np.array([one[key] for one in advised]) for key in ("said", "true"))
    error = np.array([one["reward_true"] - one["reward_said"] for one in advised])
    told["advised"] = {
        "pieces": len(advised),
        "lives_said": float(said.mean()),
        "lives_true": float(true.mean()),
        "true_less_said_standard_error": float(np.std(true - said) / np.sqrt(said.size)),
        "reward_true_less_said": float(error.mean()),
        "reward_standard_error": float(np.std(error) / np.sqrt(error.size)),
        "reward_holds_80": float(np.mean([one["holds_80"] for one in advised])),
    }
    return told


def rows(told: Mapping[str, Any]) -> list[str]:
    """The table of the page: a row per study."""
    out = []
    for study, row in told.items():
        covers = " | ".join(
            f"{100 * row['ranks'][name]['holds_80']:.0f} %"
            for name in ("lives, advised", "reward, fixed", "reward, advised")
        )
        passes = "yes" if row["passes"] else "no"
        out.append(
            f"| {study} | {row['simulations']} | {covers} | {row['chance_of_all']:.2g} | {passes} |"
        )
    return out


def _by_name(fitted: Sequence[Record]) -> dict[str, IntArray]:
    """Ranks by what is ranked; of an advised configuration only where one was advised."""
    names = list(dict.fromkeys(name for one in fitted for name in one["ranks"]))
    return {
        name: np.array([one["ranks"][name] for one in fitted if name in one["ranks"]])
        for name in names
    }


def chance_of_all(ranks: Mapping[str, IntArray]) -> float:
    """Chance that uniform ranks stray as far: of the worst of them, by Bonferroni."""
    chances = [uniform_band(own.size, DRAWS).chance(own) for own in ranks.values()]
    return float(min(1.0, min(chances) * len(chances)))


def _half_fails(fitted: Sequence[Record], half: int, rng: np.random.Generator) -> bool:
    """Whether a random part of the simulations fails, its ranks cut to whole tens.

    A band is simulated for each number of ranks, and how many pieces were advised varies.
    """
    some = _by_name([fitted[i] for i in rng.choice(len(fitted), half, replace=False)])
    whole = {
        name: own[: own.size // 10 * 10] for name, own in some.items() if own.size >= LEAST_HALF
    }
    return chance_of_all(whole) < LEVEL


def run_shipped(
    studies: Sequence[str], simulations: int, folder: Path, *, on: EngineSettings | None = None
) -> dict[str, Any]:
    """Simulate what is missing of each study; summaries of all that there are."""
    for study in studies:
        header = made_under(study, STUDIES[study].preset)
        run_missing(folder / f"{study}.jsonl", header, simulated, range(simulations), on=on)
    found = {study: folder / f"{study}.jsonl" for study in STUDIES}
    return {
        study: summary(read_records(path)) | {"is_control": STUDIES[study].is_control}
        for study, path in found.items()
        if path.exists()
    }
