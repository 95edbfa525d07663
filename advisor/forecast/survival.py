"""P(stable) and its parts, as pure functions of posterior draws and a configuration.

A run is unstable when its trailing mean reward is more than a third below its best, at the end and
for one window before (`advisor.diagnosis`). Levels are measured from the reward floor. Three
causes have a part each. Rollouts are too stale for the stiffest mode. Task and model do not
tolerate the learning rate. The fluctuation is as large as the third itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from advisor.diagnosis import Collapse
from advisor.forecast.elsewhere import stable_elsewhere
from advisor.forecast.forecaster import Forecaster
from advisor.forecast.interval import DEVIATIONS
from advisor.forecast.target import ROUNDED, Target, pilots_of
from advisor.model import MOST_HAZARD, NO_LINE, Posterior, Priors, StabilityLine
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray, coefficients, damping_ratio, temperature

LOGITS = 7.0  # Largest log-odds that no more than a thousand draws can tell


class Stability(BaseModel):
    """Probability of a stable run and what it is made of.

    ``by_model`` is joint over draws of three parts: that the refresh map contracts
    (:func:`refresh_contracts`), that no collapse happens by the horizon (`Forecaster.survival`)
    and that the fluctuation stays small (:func:`fluctuation_small`).
    """

    model_config = ConfigDict(frozen=True)

    probability: float  # by the preset's line, beside runs elsewhere (`forecast.elsewhere`)
    low: float  # in 80 % of them it lies from here
    high: float  # to here
    by_model: float
    refresh: float
    tolerance: float
    fluctuation: float
    error: float  # Monte Carlo standard error of `by_model`


def stiffness_left(forecaster: Forecaster, settings: Settings) -> FloatArray:
    """Fitted stiffness over the largest that the refresh schedule allows, shape (draws,)."""
    return np.asarray(forecaster.law_stiffness(settings) / forecaster.stiffness_limit(settings))


def refresh_contracts(forecaster: Forecaster, left: FloatArray) -> FloatArray:
    """1 where the refresh map of a draw contracts for every mode, else 0, shape (draws,)."""
    # The curve shows a slow, reward-weighted mode; the stiffest sets stability (docs/theory, T23).
    return (left * forecaster.stiffness_ratio < 1).astype(float)


def collapse_rate(forecaster: Forecaster, settings: Settings) -> FloatArray:
    """Collapse rate per optimizer step at peak learning rate, shape (..., draws)."""
    # Where the refresh map does not contract, a run dies as fast as any does.
    contracts = refresh_contracts(forecaster, stiffness_left(forecaster, settings)) > 0
    return np.asarray(np.where(contracts, forecaster.hazard(settings), MOST_HAZARD))


def rest_stable(
    forecaster: Forecaster, settings: Settings, exposure: float, level: FloatArray
) -> FloatArray:
    """Probability of each draw that the rest of a run stays stable, shape (draws,)."""
    alive = np.exp(-collapse_rate(forecaster, settings) * exposure)
    left = stiffness_left(forecaster, settings)
    return np.asarray(alive * fluctuation_small(forecaster, settings, left, level))


def fluctuation(forecaster: Forecaster, settings: Settings, left: FloatArray) -> FloatArray:
    """Standard deviation of the reward's slow residual, shape (draws,), as a share of its range."""
    reference = forecaster.posterior.meta.reference
    relative = temperature(
        settings.learning_rate, settings.prompts_per_step, settings.group_size
    ) / temperature(reference.learning_rate, reference.prompts_per_step, reference.group_size)
    # Exact at K steps of a held snapshot without momentum (docs/theory, T28).
    with np.errstate(divide="ignore"):
        inflation = np.where(left < 1, 1 / np.maximum(1 - left, 0.0), np.inf)
    return np.asarray(forecaster.misfit * np.sqrt(np.asarray(relative)[..., None] * inflation))


def fluctuation_small(
    forecaster: Forecaster, settings: Settings, left: FloatArray, level: FloatArray
) -> FloatArray:
    """1 where the residual's standard deviation is below a third of the level, or small, else 0."""
    if not line_for(forecaster.posterior.meta.priors, settings).counts_fluctuation:
        return np.ones(np.broadcast_shapes(left.shape, level.shape))
    deviation = fluctuation(forecaster, settings, left)
    # Two deviations in place of one gave 0.5 where all of 550 forecast tiny-transformer runs lived.
    return (deviation < np.maximum(Collapse.LOST_SHARE * level, 0.05)).astype(float)


def log_odds(probability: npt.ArrayLike) -> FloatArray:
    """Log-odds, no further from zero than the draws resolve; shaped as ``probability``."""
    share = np.asarray(probability, dtype=float)
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(share) - np.log1p(-share), -LOGITS, LOGITS))


def log_update_norm(learning_rate: Any, parameters: float) -> Any:
    """Log of the Euclidean norm of an Adam update, each of whose entries is about the rate."""
    return np.log(learning_rate) + 0.5 * np.log(parameters)


def on_line(
    intercept: float | FloatArray,
    slope: float,
    update_norm: float,
    probability: npt.ArrayLike,
    log_norm: npt.ArrayLike,
) -> FloatArray:
    """Recalibrated probabilities: a line in log-odds and in the log norm of an update."""
    heat = update_norm * np.asarray(log_norm)
    # The logistic function without overflow.
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * (intercept + heat + slope * log_odds(probability))))


def shrinkage(spread: float) -> float:
    """Factor on log-odds that turns those of the middle table into those expected of any."""
    # MacKay's mean of a logistic function over a normal (Neural Computation 4, 1992, 720).
    return float(1 / np.sqrt(1 + np.pi / 8 * spread**2))


def recalibrated(
    probability: npt.ArrayLike,
    line: StabilityLine,
    log_norm: npt.ArrayLike,
    deviations: npt.ArrayLike | None = None,
) -> FloatArray:
    """P(stable) in truth, expected of a new table or of those so many ``deviations`` off."""
    off = 0.0 if deviations is None else np.asarray(deviations)
    if line == NO_LINE:
        return np.asarray(probability, dtype=float) + 0 * off
    scale = shrinkage(line.spread) if deviations is None else 1.0
    intercept = scale * line.intercept + off * line.spread
    norm, slope = scale * line.update_norm, scale * line.slope
    found = on_line(intercept, slope, norm, probability, log_norm)
    return np.minimum(found, probability) if line.only_lowers else found


def line_for(priors: Priors, settings: Settings) -> StabilityLine:
    """Line of a preset; none for an optimizer that no run behind it used."""
    domain = priors.domain
    known = domain is None or settings.optimizer in domain.optimizers
    return priors.stability_line if known else NO_LINE


def stability(
    forecaster: Forecaster, settings: Settings, steps: int, *, level: FloatArray | None = None
) -> Stability:
    """P(stable) of a configuration by a horizon."""
    return stabilities_and_draws(forecaster, settings, steps, level=level)[0][0]


def stabilities_and_draws(
    forecaster: Forecaster, settings: Settings, steps: int, *, level: FloatArray | None = None
) -> tuple[list[Stability], FloatArray]:
    """P(stable) of each of stacked configurations, and that of each draw, shape (..., draws)."""
    if level is None:
        level = forecaster.scaled_reward(settings, steps)[..., 0]
    left = stiffness_left(forecaster, settings)
    contracts = refresh_contracts(forecaster, left)
    survives = forecaster.survival(settings, steps)
    calm = fluctuation_small(forecaster, settings, left, level)
    joint = contracts * survives * calm
    by_model, refresh = joint.mean(axis=-1), contracts.mean(axis=-1)
    expected, low, high = expected_of(forecaster, settings, by_model, refresh)
    columns = {
        "probability": expected,
        # Of a line far from a half both ends lie beyond the mean: tails weigh in it.
        "low": np.minimum(expected, low),
        "high": np.maximum(expected, high),
        "by_model": by_model,
        "refresh": refresh,
        "tolerance": survives.mean(axis=-1),
        "fluctuation": calm.mean(axis=-1),
        "error": joint.std(axis=-1) / np.sqrt(joint.shape[-1]),
    }
    rows = zip(*(np.atleast_1d(one).tolist() for one in columns.values()), strict=True)
    return [Stability(**dict(zip(columns, row, strict=True))) for row in rows], joint


def expected_of(
    forecaster: Forecaster, settings: Settings, by_model: FloatArray, refresh: FloatArray
) -> FloatArray:
    """P(stable) and both ends of its 80 % interval, shape (3, ...), by means over the draws."""
    meta, size = forecaster.posterior.meta, forecaster.target.parameters
    line, norm = line_for(meta.priors, settings), log_update_norm(settings.learning_rate, size)
    # Runs elsewhere tell how a rate is tolerated. Hardly any was refreshed too seldom.
    share = 1.0 if forecaster.is_small else refresh
    given = by_model / np.maximum(share, 1e-9)
    ends = recalibrated(given, line, norm, DEVIATIONS * np.array([[-1.0], [1.0]]))
    found = np.stack(np.broadcast_arrays(recalibrated(given, line, norm), *ends))
    if not forecaster.is_small:
        law = meta.priors.elsewhere
        found = stable_elsewhere(found, settings, size, law, meta.runs)
        fell, lived = _pilots_that_count(forecaster, settings)
        # Pilots that lived are in the draws; they count here beside one that fell.
        lived = np.where(fell > 0, lived, 0.0)
        found = (found + law.twin * lived) / (1 + law.twin * (fell + lived))
    return np.asarray(share * found)


def _pilots_that_count(forecaster: Forecaster, at: Settings) -> tuple[FloatArray, FloatArray]:
    """Pilots of the target that fell at no higher rate, and that lived at no lower one.

    A pilot that fell below one that lived counts at its own rate alone.
    """
    count, near = np.zeros((2, *np.shape(at.learning_rate))), 1 + ROUNDED
    runs = pilots_of(forecaster.posterior, forecaster.target) if forecaster.is_piloted else []
    hottest = max([run.settings.learning_rate for run in runs if run.collapse_step is None] or [0])
    for run in runs:
        own, lived = run.settings, run.collapse_step is None
        times = np.divide(at.learning_rate, own.learning_rate)
        reach = np.inf if hottest <= near * own.learning_rate else near
        counts = (times < near) if lived else (1 / near < times) & (times < reach)
        counts &= np.equal(at.group_size, own.group_size)
        count[int(lived)] += counts & np.equal(at.refresh_interval, own.refresh_interval)
    return count[0], count[1]


class Margin(NamedTuple):
    """How near a run's stiffest mode is to its limits."""

    stiffness: FloatArray  # (draws,), over its limit (T16)
    damping: FloatArray  # (draws,), ratio (T8); NaN where the closed form does not hold


def refresh_margin(posterior: Posterior, run: PilotRun) -> Margin | None:
    """How near a run is to its refresh limit; None where task, size or a setting is unknown."""
    meta, group = posterior.meta, (run.task or "", run.model or "")
    is_piloted = group in meta.groups
    size = meta.group_parameters[meta.groups.index(group)] if is_piloted else run.parameters
    if size is None or group[0] not in meta.tasks or run.hyperparameters.lacking:
        return None
    settings = run.hyperparameters.completed()
    forecaster = Forecaster(posterior, Target(*group, size))
    ratio = forecaster.stiffness_ratio
    stiffness = forecaster.law_stiffness(settings) * ratio
    share, age = forecaster.uncorrected_share(settings), settings.mean_age
    damping = damping_ratio(coefficients(stiffness, settings.momentum, age, share))
    # Stiffness times uncorrected age below which the closed form holds to 0.05 (docs/theory, T7).
    return Margin(
        np.asarray(stiffness_left(forecaster, settings) * ratio),
        np.where(share * stiffness * age < 0.25, damping, np.nan),
    )
