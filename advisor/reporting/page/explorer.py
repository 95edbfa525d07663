"""What the report's page needs to evaluate settings by itself: a few hundred thinned draws."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.advice import RATE_REACH, piloted
from advisor.forecast import (
    FINAL_POINTS,
    FINAL_SHARE,
    LEAST_CHANCE,
    LOGITS,
    MOST_CHANCE,
    SPREADS,
    SUPPORT,
    Forecaster,
    averaged,
    line_for,
)
from advisor.model import CLOCK_EXPONENTS, INTERVAL, LAWS, NO_LINE, Posterior
from advisor.model import equations as eq
from advisor.runs import LOST_SHARE, Settings
from advisor.theory import (
    JUMP,
    SHARES,
    SMALLEST_MOMENTUM,
    TAYLOR_RADIUS,
    FloatArray,
    lag_in_cycles,
    stiffness_limit,
)

if TYPE_CHECKING:
    from advisor.advice import Recommendation


DRAWS = 400
"""Draws in the page: probabilities are good to 0.025, and a move takes a few milliseconds."""

MOST_MINIBATCHES = 16
EPOCHS = (1, 2, 4)
LAGS = (0, 1, 2, 4)
"""Refresh factors and lags, in optimizer steps, that the page offers."""

RATE_STEPS = 12
"""Learning rates to a decade."""

SIZE_FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Model sizes offered, as multiples of the target's."""


def page_forecaster(posterior: Posterior, recommendation: Recommendation) -> Forecaster:
    """Forecaster of the draws that the page holds; its numbers are those of the page."""
    return Forecaster(posterior, recommendation.target, draws=DRAWS, seed=recommendation.seed)


def explorer_data(posterior: Posterior, recommendation: Recommendation) -> dict[str, Any]:
    """Collect draws, constants and choices.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
        Its target, settings, steps and cost model are where the page starts.

    Returns
    -------
    data : dict
        Ready for JSON; draws are base64 of little-endian doubles.
    """
    forecaster = page_forecaster(posterior, recommendation)
    base, meta = recommendation.settings, posterior.meta
    columns = draw_columns(forecaster, base)
    line = line_for(meta.priors, base)
    mean = averaged(line)
    choices = _choices(recommendation)
    return {
        "draws": len(next(iter(columns.values()))),
        "columns": {name: _packed(values) for name, values in columns.items()},
        "reference": asdict(meta.reference),
        "logParameters": math.log(recommendation.target.parameters / meta.reference.parameters),
        "parameters": recommendation.target.parameters,
        "base": base.model_dump(),
        "bounds": {
            "floor": meta.floor,
            "ceiling": meta.ceiling,
            "evalFloor": meta.eval_floor,
            "evalCeiling": meta.eval_ceiling,
            "isEvaluated": forecaster.is_evaluated,
        },
        "clock": {
            "exponents": CLOCK_EXPONENTS.tolist(),
            "nodes": eq.clock_polynomial(np.eye(CLOCK_EXPONENTS.size)).tolist(),
        },
        "limits": _limits(base, choices),
        "cost": recommendation.cost_model.model_dump(exclude={"source"}),
        "constants": {
            "staleLimit": eq.STALE_LIMIT,
            "mostHazard": eq.MOST_HAZARD,
            "logHazardEnds": eq.LOG_HAZARD_ENDS,
            "logLossEnds": eq.LOG_LOSS_ENDS,
            "smallestMomentum": SMALLEST_MOMENTUM,
            "taylorRadius": TAYLOR_RADIUS,
            "fall": LOST_SHARE,
            "spreads": SPREADS,
            "logits": LOGITS,
            "jump": JUMP,
            "interval": INTERVAL,
            "finalShare": FINAL_SHARE,
            "finalPoints": FINAL_POINTS,
            "chanceEnds": (LEAST_CHANCE, MOST_CHANCE),
            "supported": SUPPORT * meta.longest,
            "extrapolation": meta.priors.extrapolation.gain,
        },
        "line": (
            None
            if line == NO_LINE
            else [mean.intercept, mean.slope, mean.update_norm, line.only_lowers]
        ),
        "choices": choices,
        "advised": _advised(recommendation),
        "piloted": piloted(posterior),
        "pilots": [(run.settings.learning_rate, run.collapse_step is None) for run in meta.runs],
        "sizes": posterior.sizes,
    }


def _advised(advice: Recommendation) -> dict[str, Any]:
    """The answer's own numbers, which come from all draws: the page starts with them."""
    return {
        "steps": advice.steps,
        "level": advice.level,
        "measure": advice.measure,
        "reward": advice.reward.mean,
        "rewardLow": advice.reward.low,
        "rewardHigh": advice.reward.high,
        "stable": advice.stability.probability,
        "least": advice.stability.least,
        "refresh": advice.stability.refresh,
        "tolerance": advice.stability.tolerance,
        "fluctuation": advice.stability.fluctuation,
    }


def draw_columns(forecaster: Forecaster, base: Settings) -> dict[str, FloatArray]:
    """Per-draw numbers that no setting changes, each of shape (draws,)."""
    population, group = forecaster.population, forecaster.group
    meta = forecaster.posterior.meta
    task = meta.tasks.index(forecaster.target.task)
    plateau, rate, shape = forecaster.run_effect
    columns = {
        "start": group.start,
        "coldPlateau": group.cold_plateau,
        "logStiffness": group.log_stiffness,
        "curvature": population["curvature_exponent"],
        "plateauNoise": np.exp(population["log_run_plateau_spread"]) * plateau,
        "lossNoise": np.exp(population["log_run_loss_spread"]) * plateau,
        "rateNoise": np.exp(population["log_run_rate_spread"]) * rate,
        "dispersion": np.exp(
            population["log_dispersion"] + np.exp(population["log_run_shape_spread"]) * shape
        ),
        "onset": np.exp(forecaster.draw("log_onset")[:, task]),
        "progressLimit": np.exp(population["log_progress_limit"]),
        "uncorrected": forecaster.uncorrected_share(base),
        "isOscillator": forecaster.draw("is_oscillator"),
        "stiffnessRatio": np.exp(forecaster.log_stiffness_ratio),
        "misfit": np.exp(population["log_misfit"]),
        "residual": forecaster.residual,
        "within": eq.sigmoid(population["within_log_odds"]),
        "noiseScale": np.exp(population["log_noise_scale"]),
        "evalNoise": np.exp(population["log_eval_noise"]),
    }
    for law, terms in LAWS.items():
        for index, term in enumerate(terms):
            columns[f"{law}.{term}"] = forecaster.laws[law][:, index]
    if forecaster.is_evaluated:
        index = meta.groups.index((forecaster.target.task, forecaster.target.model))
        columns["evalStart"] = eq.sigmoid(forecaster.draw("eval_start_logit")[:, index])
        columns["evalGain"] = np.exp(forecaster.draw("log_eval_gain")[:, index])
    return {name: np.asarray(values, dtype=float) for name, values in columns.items()}


def _choices(recommendation: Recommendation) -> dict[str, list[float]]:
    """Values of every slider, ascending; the advised one is always among them."""
    settings, offered = recommendation.settings, recommendation.choices
    rates = sorted({*offered["learning_rate"], settings.learning_rate})
    low, high = math.log10(rates[0] / RATE_REACH), math.log10(rates[-1] * RATE_REACH)
    count = max(2, round((high - low) * RATE_STEPS) + 1)
    ladder = {float(f"{rate:.2g}") for rate in np.logspace(low, high, count)}
    groups = [2**power for power in range(1, 9)]
    minibatches = [2**power for power in range(MOST_MINIBATCHES.bit_length())]
    steps = recommendation.steps
    lengths = {max(1, round(steps * 2.0**power)) for power in np.arange(-3, 3.5, 0.5)}
    size = recommendation.target.parameters
    # Answers of older versions did not choose among prompts, nor do those whose pilots did not.
    prompts = offered.get("prompts_per_step", ())
    told = {"prompts_per_step": _with(prompts, settings.prompts_per_step)}
    return {
        "learning_rate": sorted(ladder | {settings.learning_rate}),
        "group_size": _with(groups, settings.group_size),
        "minibatches_per_refresh": _with(minibatches, settings.minibatches_per_refresh),
        "epochs_per_refresh": _with(EPOCHS, settings.epochs_per_refresh),
        **(told if len(prompts) > 1 else {}),
        "lag": _with(LAGS, settings.lag),
        "planned_steps": sorted(lengths | {steps}),
        "parameters": [size * factor for factor in SIZE_FACTORS],
    }


def _with(values: Sequence[float], own: float) -> list[float]:
    return sorted({*values, own})


def _limits(base: Settings, choices: dict[str, list[float]]) -> dict[str, Any]:
    """Log stiffness limits over the uncorrected share, for each K and lag that can be chosen."""
    found = {}
    for minibatches in choices["minibatches_per_refresh"]:
        for epochs in choices["epochs_per_refresh"]:
            interval = int(minibatches * epochs)
            for lag in choices["lag"]:
                cycles = lag_in_cycles(lag, interval)
                key = f"{interval}:{cycles}"
                if key not in found:
                    at_shares = stiffness_limit(base.momentum, interval, SHARES, lag)
                    found[key] = np.log(at_shares).tolist()
    return {"shares": SHARES.tolist(), "table": found}


def _packed(values: FloatArray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")
