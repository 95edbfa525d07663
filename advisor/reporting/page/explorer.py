"""What the sliders of the report show: a grid of settings, evaluated by the same forecaster."""

from __future__ import annotations

import base64
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.advice import KNOBS, RATE_REACH, gpu_time, piloted
from advisor.forecast import SUPPORT, Forecaster, final_reward, interval_of, stability_and_draws
from advisor.model import Posterior
from advisor.reporting import style
from advisor.runs import Settings

if TYPE_CHECKING:
    from advisor.advice import Cost, Recommendation

DRAWS = 400
"""Draws behind the grid: probabilities are good to 0.025."""

RATES = 25
MINIBATCHES = (1, 2, 4, 8, 16)
GROUPS = (4, 8, 16, 32, 64)
LENGTHS = (0.5, 1.0, 2.0)
"""What is offered beside the settings of the answer; lengths as shares of its own."""


def explorer_data(posterior: Posterior, recommendation: Recommendation) -> dict[str, Any]:
    """Evaluate the grid; ready for JSON, the numbers as base64 of little-endian floats."""
    advice, base = recommendation, recommendation.settings
    forecaster = Forecaster(posterior, advice.target, draws=DRAWS, seed=advice.seed)
    choices = choices_of(posterior, advice)
    places = itertools.product(*choices.values())
    plans = [base.model_copy(update=dict(zip(choices, place, strict=True))) for place in places]
    values = np.array([numbers(forecaster, plan) for plan in plans], dtype="<f4")
    ends, bounds = (choices[RATE][0], choices[RATE][-1]), forecaster.outcome_bounds
    prices = [advice.cost_model(plan, int(plan.planned_steps or 0)) for plan in plans]
    stable = advice.stability
    return {
        "choices": choices,
        "values": base64.b64encode(values.tobytes()).decode("ascii"),
        "prices": [
            (paid(one), f"{one.completions:,.0f} completions")
            for one in prices[:: len(choices[RATE])]
        ],
        "start": {name: getattr(base.planned_over(advice.steps), name) for name in choices},
        # The answer's own numbers, which come from more draws: the page starts with them.
        "answer": [
            *(advice.reward.mean, advice.reward.low, advice.reward.high),
            *(stable.probability, stable.least),
            *(stable.refresh, stable.tolerance, stable.fluctuation),
        ],
        "epochs": base.epochs_per_refresh,
        "level": advice.level,
        "measure": advice.measure,
        "bounds": bounds,
        "ends": ends,
        "rewardTicks": [(at, f"{at:.3g}") for at in style.even_ticks(*bounds, 5)],
        "rateTicks": [(at, style.scientific(at)) for at in style.log_places(*ends)],
        "supported": SUPPORT * posterior.meta.longest,
        "piloted": {name: own for name, own in piloted(posterior).items() if name in choices},
        "words": {name: KNOBS[name] for name in choices if name in KNOBS},
        "pilots": [
            (run.settings.learning_rate, run.collapse_step is None) for run in posterior.meta.runs
        ],
    }


RATE = "learning_rate"


def paid(cost: Cost) -> str:
    """Price of a run: GPU time where that is known, else the completions that it generates."""
    if cost.gpu_hours is None:
        return f"{cost.completions:,.0f} completions"
    return gpu_time(cost.gpu_hours)


def choices_of(posterior: Posterior, advice: Recommendation) -> dict[str, list[float]]:
    """Values of every slider, ascending, the answer's own among them; learning rates last."""
    settings = advice.settings
    known = [*advice.choices[RATE], *piloted(posterior)[RATE], settings.learning_rate]
    ladder = np.geomspace(min(known) / RATE_REACH, max(known) * RATE_REACH, RATES - 1)
    return {
        "planned_steps": sorted({max(1, round(advice.steps * share)) for share in LENGTHS}),
        "group_size": sorted({*GROUPS, settings.group_size}),
        "minibatches_per_refresh": sorted({*MINIBATCHES, settings.minibatches_per_refresh}),
        RATE: sorted({settings.learning_rate, *(float(f"{rate:.2g}") for rate in ladder)}),
    }


def numbers(forecaster: Forecaster, plan: Settings) -> tuple[float, ...]:
    """Reward with its interval, P(stable), what decides of it, and its three parts."""
    steps = int(plan.planned_steps or 0)
    level = forecaster.scaled_reward(plan, steps)
    reward = interval_of(final_reward(forecaster, plan, steps))
    chance, _ = stability_and_draws(forecaster, plan, steps, level=level[:, 0])
    return (
        *(float(forecaster.outcome_of(level).mean()), reward.low, reward.high),
        *(chance.probability, chance.least),
        *(chance.refresh, chance.tolerance, chance.fluctuation),
    )
