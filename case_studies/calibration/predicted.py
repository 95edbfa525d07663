"""Calibration of `posterior.predict`: the end of a new run, of a begun one, is_stable.

Parameters are drawn from a shipped preset, three to five pilots from the parameters, and fitted as
`--fast` does. Each fit is compared with two truths. In the first the run follows the closed form,
without the discrepancy that the forecast adds, so intervals may be too wide. In the second the run
is drawn from the forecast itself at the true parameters, and a right posterior is calibrated. The
control halves the intervals.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ranks import uniform_band
from simulation import Draws, draw_prior, mean_of, planned
from simulation_lines import Record, made_under, read_records, run_missing
from worlds import Plan, World, draw_world

from advisor import fit
from advisor.common import EngineSettings
from advisor.errors import InputError, NotConvergedError
from advisor.forecast import FINAL_SHARE, Forecaster, Target
from advisor.model import POPULATION, SPECTRUM, Posterior, Priors, Sampling, cohort_of, load_priors
from advisor.model.cohort import Cohort
from advisor.model.parameters import LEVELS
from advisor.model.posterior import make_posterior
from advisor.model.sampling import prior_posterior
from advisor.runs import PilotRun
from advisor.theory import FloatArray

FEWEST, MOST = 3, 5
PILOT_STEPS, HORIZON = 100, 300
"""Steps of a pilot, which are also those seen of a run that has begun, and of a whole run."""

GROUP_SIZES, REFRESHES = (8, 16), ((1, 1), (1, 1), (2, 1), (1, 2))
INTERVALS = (0.5, 0.8, 0.95)
LEVEL = 0.05
"""Of the test of a preset, by Bonferroni over its questions."""

RANKS = 99
COPIES = 400
"""Of the true parameters, so that the forecast at them has a distribution."""

BY_LEVEL = {
    "population": "rate.learning_rate",
    "task": "log_slope",
    "model": "group_offset.stiffness",
    "run": "run_offset.stiffness",
}
"""A parameter of each level, whose ranks are taken too."""


class Design(NamedTuple):
    """What a team that trains with a preset tries: learning rates, sizes, adapter."""

    rates: tuple[float, ...]
    sizes: tuple[float, ...]
    adapter: str = "full"


DESIGNS = {
    "full_finetuning": Design((5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5), (5e8, 1.5e9, 7e9)),
    "lora": Design((5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4), (5e8, 1.5e9, 7e9), "lora"),
    "small_models": Design((1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3), (1e5, 4e5)),
}


def simulated(preset: str, number: int) -> Record:
    """Draw, pilot, fit, ask, and compare with both truths."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([number, *preset.encode()])
    plans, asked = drawn_plans(DESIGNS[preset], rng)
    priors = load_priors(preset)
    unseen = cohort_of([_log(i, plan, _rising(i)) for i, plan in enumerate(plans)])
    raw = draw_prior(unseen, priors, SPECTRUM, rng)
    world = world_of(raw, unseen, plans, priors)
    runs = [_pilot(world, i, plan, raw["run_offset"][0, :, i], rng) for i, plan in enumerate(plans)]
    begun_plan = plans[int(rng.integers(len(plans)))]
    settings, size = begun_plan.settings.completed(), begun_plan.parameters
    alive = _undying(world)
    long = replace(alive, logged=PILOT_STEPS)
    rows = long.train(settings, "m", size, 1, HORIZON, rng).reward[0]
    begun = _log(len(plans), begun_plan, rows[:PILOT_STEPS])
    record: Record = {"number": number, "pilots": len(plans)}
    try:
        sampling = Sampling.first_look(seed=int(rng.integers(2**31)))
        posterior = fit(runs, priors=preset, sampling=sampling)
    except (InputError, NotConvergedError) as error:
        return record | {"fitted": False, "why": type(error).__name__}
    cohort = cohort_of(runs)
    true = of_the_truth(cohort, priors, raw)
    record |= {"fitted": True, "ends": {}, "stable": {}}
    nothing = prior_posterior(cohort, priors)
    record["levels"] = {
        level: _learned(name, posterior, nothing, true, rng) for level, name in BY_LEVEL.items()
    }
    laws = Forecaster(true, Target("task", "m", plans[0].parameters))
    whole = asked.settings.completed()
    ended = alive.train(whole, "m", asked.parameters, 1, HORIZON, rng).reward[0]
    lives = float(laws.survival(whole, HORIZON).mean())
    for name, one in (("no pilots", nothing), ("new run", posterior)):
        found = one.predict(whole, HORIZON)
        truth = true.predict(whole, HORIZON) if one is posterior else None
        _compare(record, name, found, truth, _end(ended), lives, rng)
    at_start, at_end = (float(laws.survival(settings, at).mean()) for at in (PILOT_STEPS, HORIZON))
    if rng.random() < at_start:
        found, truth = (one.predict(None, HORIZON, given=begun) for one in (posterior, true))
        _compare(record, "begun run", found, truth, _end(rows), at_end / at_start, rng)
    return record


def drawn_plans(design: Design, rng: np.random.Generator) -> tuple[list[Plan], Plan]:
    """Pilots of one model at rates of their own, and a run at a rate that none of them has."""
    count = int(rng.integers(FEWEST, MOST + 1))
    rates = rng.permutation(design.rates)[: count + 1]
    size = float(rng.choice(design.sizes))
    alike = {"optimizer": "adamw", "schedule": "constant", "adapter": design.adapter}
    plans = []
    for rate in rates:
        refresh, group = REFRESHES[int(rng.integers(len(REFRESHES)))], int(rng.choice(GROUP_SIZES))
        settings = planned(float(rate), group, *refresh, PILOT_STEPS, **alike)
        plans.append(Plan("m", size, settings))
    *pilots, asked = plans
    last = asked.settings.model_copy(update={"planned_steps": HORIZON})
    return pilots, asked._replace(settings=last)


def _rising(number: int) -> FloatArray:
    """Rewards that stand in for those not drawn yet; no two logs may be alike."""
    return np.asarray(0.5 - 0.3 * np.exp(-np.arange(1.0, PILOT_STEPS + 1) / (20 + number)))


def _log(number: int, plan: Plan, reward: FloatArray) -> PilotRun:
    return PilotRun(
        id=f"run{number}",
        path="simulated",
        model="m",
        task="task",
        parameters=plan.parameters,
        hyperparameters=plan.settings,
        step=np.arange(1.0, reward.size + 1),
        series={"reward": reward},
        reward_floor=0.0,
        reward_ceiling=1.0,
    )


def _pilot(
    world: World, number: int, plan: Plan, luck: FloatArray, rng: np.random.Generator
) -> PilotRun:
    own = world.train(
        plan.settings.completed(), "m", plan.parameters, 1, PILOT_STEPS, rng, luck=luck[:, None]
    )
    return _log(number, plan, own.reward[0])


def world_of(raw: Draws, cohort: Cohort, plans: Sequence[Plan], priors: Priors) -> World:
    """World of parameters that were drawn, instead of its own."""
    world = draw_world("well specified", plans, priors, np.random.default_rng(0))
    return replace(
        world,
        reference=cohort.reference,
        population=dict(zip(POPULATION, raw["population"][0].tolist(), strict=True)),
        level=dict(zip(LEVELS[:3], raw["task_level"][0, :, 0].tolist(), strict=True)),
        start={"m": float(raw["start_logit"][0, 0])},
        headroom={"m": float(raw["group_offset"][0, 0, 0])},
        stiffness={"m": float(raw["group_offset"][0, 1, 0])},
    )


def _undying(world: World) -> World:
    """The same world without collapses: rewards are those of runs that stay stable."""
    return replace(world, population=world.population | {"hazard.level": -200.0})


def of_the_truth(cohort: Cohort, priors: Priors, raw: Draws) -> Posterior:
    """A posterior that knows the parameters."""
    known = {name: np.repeat(values[None], COPIES, axis=1) for name, values in raw.items()}
    statistics = {name: np.zeros((1, COPIES)) for name in ("diverging", "n_steps")}
    sure = {name: (np.ones(v.shape[2:]), np.ones(v.shape[2:])) for name, v in known.items()}
    return make_posterior(cohort, priors, SPECTRUM, known, statistics, sure, {}, seed=0)


def _end(reward: FloatArray) -> float:
    return float(reward[round((1 - FINAL_SHARE) * reward.size) :].mean())


def _learned(
    name: str, posterior: Posterior, nothing: Posterior, true: Posterior, rng: np.random.Generator
) -> dict[str, float]:
    """Place of a true parameter in its posterior, and the share of prior variance that is left."""
    each = [one.flat(name) for one in (posterior, nothing, true)]
    drawn, prior, known = (one if one.ndim == 1 else one[:, 0] for one in each)
    return {"place": place(drawn, float(known[0]), rng), "left": float(drawn.var() / prior.var())}


def _compare(
    record: Record,
    name: str,
    predicted: Any,
    truth: Any | None,
    ended: float,
    lives: float,
    rng: np.random.Generator,
) -> None:
    """Add where both truths lie in a prediction; ``truth`` is the one at the true parameters."""
    draws = predicted.final_train_reward.values[0]
    came = {"closed form": (ended, lives)}
    if truth is not None:
        own = truth.final_train_reward.values[0]
        came["forecast"] = (float(rng.choice(own)), float(truth.is_stable.mean()))
    middle = float(np.median(draws))
    halved = middle + 0.5 * (draws - middle)
    record["ends"][name] = {
        kind: {
            "place": place(draws, end, rng),
            "halved": place(halved, end, rng),
            "off": end - middle,
        }
        for kind, (end, _) in came.items()
    }
    record["stable"][name] = {
        kind: {
            "predicted": float(predicted.is_stable.mean()),
            "came": bool(rng.random() < chance),
        }
        for kind, (_, chance) in came.items()
    }


def place(draws: FloatArray, truth: float, rng: np.random.Generator) -> float:
    """Share of draws below the truth, ties by chance: uniform where the draws are right."""
    below, ties = np.sum(draws < truth), np.sum(draws == truth)
    return float((below + rng.random() * (1 + ties)) / (1 + draws.size))


# Summary ------------------------------------------------------------------------------------------


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """Coverage with its standard error, Brier scores, controls."""
    fitted = [one for one in records if one["fitted"]]
    told: dict[str, Any] = {
        "simulations": len(records),
        "ends": {},
        "stable": {},
        "levels": {},
    }
    for name, kind in _asked(fitted):
        own = [one["ends"][name][kind] for one in fitted if name in one["ends"]]
        told["ends"][f"{name}, {kind}"] = covered([one["place"] for one in own]) | {
            "bias": mean_of([one["off"] for one in own]),
            "control": covered([one["halved"] for one in own]),
        }
        stable = [one["stable"][name][kind] for one in fitted if name in one["stable"]]
        told["stable"][f"{name}, {kind}"] = _brier(stable)
    for level in BY_LEVEL:
        places = [one["levels"][level]["place"] for one in fitted]
        left = float(np.median([one["levels"][level]["left"] for one in fitted]))
        told["levels"][level] = covered(places) | {"variance_left": left}
    for key, of in (("passes", None), ("control_passes", "control")):
        # Runs of the closed form are no test: the forecast adds what it does not contain.
        asked = [f"{name}, {kind}" for name, kind in _asked(fitted) if kind == "forecast"]
        tested = [told["ends"][name] for name in asked]
        chances = [(one[of] if of else one)["chance"] for one in tested]
        told[key] = bool(min(chances) * len(chances) >= LEVEL)
    return told


def _asked(fitted: Sequence[Record]) -> list[tuple[str, str]]:
    pairs = ((name, kind) for one in fitted for name, own in one["ends"].items() for kind in own)
    return list(dict.fromkeys(pairs))


def covered(places: Sequence[float]) -> dict[str, Any]:
    """Share of truths in central intervals with its standard error, and the chance of the ranks."""
    values = np.array(places)
    ranks = np.minimum((values * (RANKS + 1)).astype(int), RANKS)
    shares = {f"{one:g}": mean_of(np.abs(values - 0.5) <= one / 2) for one in INTERVALS}
    chance = uniform_band(values.size, RANKS).chance(ranks)
    return {"n": values.size, "covers": shares, "chance": chance}


def _brier(stable: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Brier score of P(stable), of the base rate, and of that of another simulation."""
    rows = np.array([[float(one[key]) for key in ("predicted", "came")] for one in stable])
    predicted, came = rows.T
    return {
        "n": predicted.size,
        "brier": mean_of((predicted - came) ** 2),
        "base_rate": mean_of((came.mean() - came) ** 2),
        "control": mean_of((np.roll(predicted, 1) - came) ** 2),
    }


def rows(told: Mapping[str, Any]) -> list[str]:
    """The table of the page: shares in %, standard errors in brackets."""
    out = []
    for preset, own in told.items():
        for name, one in own["ends"].items():
            pairs = [(100 * mean, 100 * error) for mean, error in one["covers"].values()]
            cells = [preset, name, str(one["n"]), *(f"{m:.0f} ({e:.0f})" for m, e in pairs)]
            cells.append(f"{100 * one['control']['covers']['0.8'][0]:.0f}")
            stable = own["stable"][name]
            scores = (stable[key][0] for key in ("brier", "base_rate", "control"))
            cells += [f"{score:.3f}" for score in scores]
            out.append(f"| {' | '.join(cells)} |")
    for level in BY_LEVEL:
        left = (own["levels"][level]["variance_left"] for own in told.values())
        out.append(f"| {level} | {' | '.join(f'{share:.2f}' for share in left)} |")
    return out


def run_predicted(
    presets: Sequence[str], simulations: int, folder: Path, *, on: EngineSettings | None = None
) -> dict[str, Any]:
    """Simulate what is missing of each preset; summaries of all that there are."""
    for preset in presets:
        path = folder / f"{preset}.jsonl"
        run_missing(path, made_under(preset, preset), simulated, range(simulations), on=on)
    found = {preset: folder / f"{preset}.jsonl" for preset in DESIGNS}
    return {name: summary(read_records(path)) for name, path in found.items() if path.exists()}
