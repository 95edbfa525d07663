"""What the shipped fit is worth in worlds that the model does not contain.

Three to eight pilots of a world are read, fitted and asked as a user would; then twenty runs of the
advised configuration are trained in that world to the end. The result is a table, whatever it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from simulation import PLANS, SIZES, mean_of, planned
from simulation_lines import Record, made_under, read_records, run_missing
from worlds import KL_COEFFICIENTS, PILOT_STEPS, WORLDS, Plan, World, draw_world, pilots

from advisor import Posterior, Recommendation, advise, diagnose, fit
from advisor.common import EngineSettings
from advisor.diagnosis.collapse import find_final_fall
from advisor.errors import InputError, NotConvergedError
from advisor.forecast import FINAL_SHARE, Forecaster
from advisor.model import Sampling, load_priors
from advisor.model.run_fit import run_fits

PRESET = "small_models"
FEWEST, MOST = 3, 8
HORIZON = 3 * PILOT_STEPS
FRESH = 20
"""Runs that are trained of a configuration to see what becomes of it."""

ALARMS = ("FAIL", "WARNING")

ASIDE = {"collapse", "too_short"}
"""Alarms that say nothing of the world: the model has collapses, and pilots are short by design."""


def file_name(world: str) -> str:
    """Name of the file of a world's simulations."""
    return world.replace(" ", "_") + ".jsonl"


def simulated(world: str, number: int) -> Record:
    """Pilot, fit, ask, and train what was advised."""
    priors = load_priors(PRESET)
    # The same designs and prior draws in every world.
    rng = np.random.default_rng([1806, number])
    count = int(rng.integers(FEWEST, MOST + 1))
    chosen = sorted(rng.choice(len(PLANS), count, replace=False))
    plans = [_plan(world, at, number) for at in chosen]
    drawn = draw_world(world, plans, priors, rng)
    runs = pilots(drawn, plans, rng)
    cards = [card for run in runs for card in diagnose(run).cards if card.status in ALARMS]
    record: Record = {
        "number": number,
        "pilots": count,
        "alarms": sorted({card.mode for card in cards}),
    }
    try:
        posterior = fit(runs, priors=PRESET, sampling=Sampling(seed=int(rng.integers(2**31))))
    except InputError as error:
        return record | {"fitted": False, "why": error.problem}
    except NotConvergedError:
        return record | {"fitted": False, "why": "not converged"}
    fits = run_fits(posterior)
    answer = advise(posterior, weigh_pilots=False)
    record |= {
        "fitted": True,
        "misfits": [one.run for one in fits if one.named_by is not None],
        "kind": answer.kind,
    }
    return record | _outcome(posterior, answer, drawn, rng)


def _outcome(
    posterior: Posterior, answer: Recommendation, drawn: World, rng: np.random.Generator
) -> Record:
    """What was said of the advised configuration, and what became of it."""
    size = answer.target.model
    found = drawn.train(answer.settings, size, SIZES[size], FRESH, HORIZON, rng)
    step = np.arange(1.0, HORIZON + 1)
    stable = np.array([not find_final_fall(step, own, 0.0)[0].unstable for own in found.reward])
    is_evaluated = Forecaster(posterior, answer.target).is_evaluated
    # In the units that are forecast.
    rewards = found.held_out[:, 1:] if is_evaluated else found.reward
    ends = rewards[:, step > (1 - FINAL_SHARE) * HORIZON].mean(axis=1)
    inside = (answer.reward.low <= ends) & (ends <= answer.reward.high)
    return {
        "advised": {
            "reward_said": answer.reward.mean,
            "reward_true": float(ends[stable].mean()) if stable.any() else None,
            "holds": float(inside[stable].mean()) if stable.any() else None,
            "holds_of_all": float(inside.mean()),
        },
    }


def _plan(world: str, at: int, number: int) -> Plan:
    """Pilot of the shipped study, in the KL world with a coefficient that differs between them."""
    size, rate, group, minibatches, epochs, more = PLANS[at]
    if world == "kl limit":
        more = {**more, "kl_coefficient": KL_COEFFICIENTS[(at + number) % len(KL_COEFFICIENTS)]}
    more = {"optimizer": "adamw", **more}
    settings = planned(rate, group, minibatches, epochs, PILOT_STEPS, **more)
    return Plan(size, SIZES[size], settings)


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """A row of the table; standard errors are over simulations, each with its own world."""
    fitted = [one for one in records if one["fitted"]]
    advised = [one["advised"] for one in fitted if one["kind"] == "recommendation"]
    lived = [one for one in advised if one["holds"] is not None]
    return {
        "worlds": len(records),
        "fitted": len(fitted),
        "advised": len(advised),
        "holds_80": mean_of([one["holds"] for one in lived]),
        "holds_80_of_all": mean_of([one["holds_of_all"] for one in advised]),
        "true_less_said": mean_of([one["reward_true"] - one["reward_said"] for one in lived]),
        "diagnosed": sum(bool(set(one["alarms"]) - ASIDE) for one in fitted),
        "curve_does_not_fit": sum(bool(one["misfits"]) for one in fitted),
    }


def rows(told: Mapping[str, Any]) -> list[str]:
    """The table of the page: a row per world."""

    def pair(values: Sequence[float] | None, digits: int = 2) -> str:
        return "-" if values is None else f"{values[0]:.{digits}f} ({values[1]:.{digits}f})"

    return [
        f"| {world} | {row['worlds']} | {pair(row['holds_80_of_all'])} | "
        f"{pair(row['true_less_said'], 3)} | {row['curve_does_not_fit']} of {row['fitted']} |"
        for world, row in told.items()
    ]


def run_misspecified(
    worlds: Sequence[str], simulations: int, folder: Path, *, on: EngineSettings | None = None
) -> dict[str, Any]:
    """Simulate what is missing of each world; the table of all that there are."""
    for world in worlds:
        header = made_under(world, PRESET)
        run_missing(folder / file_name(world), header, simulated, range(simulations), on=on)
    found = {world: folder / file_name(world) for world in WORLDS}
    return {world: summary(read_records(path)) for world, path in found.items() if path.exists()}
