"""What a run's log will show: its curve, its slow residual, the noise of its batches, a collapse.

One rule for each of them, for a run that is planned, one that has begun and one that has fallen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.forecast.analogues import FINAL_SHARE
from advisor.forecast.forecaster import Forecaster
from advisor.forecast.run_likelihood import EqualDraws, ObservedRun, ReweightedDraws
from advisor.model import DEGREES, WANDER_SHARE, Posterior, sigmoid
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray, IntArray


def begun_run_reward(
    posterior: Posterior,
    index: int,
    run: PilotRun,
    steps: npt.ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> FloatArray:
    """Mean logged reward of a pilot over steps that it has not reached, shape (draws,)."""
    summary = posterior.meta.runs[index]
    rng = np.random.default_rng(seed)
    forecaster = Forecaster.of_pilot(posterior, index, draws=draws)
    settings, rows = summary.settings, np.size(steps) * run.logging_steps
    if summary.collapse_step is None:
        planned = settings.or_planned_over(int(np.max(steps)))
        noise = rng.standard_t(DEGREES, size=forecaster.size)
        return forecaster.in_reward_units(logged_mean(forecaster, planned, steps, rows, noise))
    rewards = run.reward[np.isfinite(run.reward)]
    latest = rewards[-max(3, round(0.2 * rewards.size)) :]
    stands = float(np.mean(forecaster.as_share(latest)))
    seen = latest.size * run.logging_steps
    level = level_of_fallen_run(stands, seen, settings, forecaster, rng)
    return forecaster.in_reward_units(_counted(level, settings, rows, rng))


def fitted_curve(
    posterior: Posterior, run_index: int, steps: npt.ArrayLike, *, draws: int = 400
) -> FloatArray:
    """Curve that the posterior drew through one pilot at one-based steps, shape (draws, times)."""
    run = posterior.meta.runs[run_index]
    settings = run.settings.or_planned_over(int(run.steps))
    forecaster = Forecaster.of_pilot(posterior, run_index, draws=draws)
    return forecaster.in_reward_units(forecaster.logged_level(settings, steps))


def final_reward(forecaster: Forecaster, settings: Settings, steps: int) -> FloatArray:
    """Held-out reward at the end of a stable run, or else train reward; shape (..., draws)."""
    if forecaster.is_evaluated:
        expected = forecaster.outcome(settings, final_steps(steps)).mean(axis=-1)
        return evaluation(forecaster, expected)
    return final_train_reward(forecaster, settings, steps)


def final_train_reward(forecaster: Forecaster, settings: Settings, steps: int) -> FloatArray:
    """Mean train reward that is logged over the last tenth of a stable run, (..., draws)."""
    times, rows = final_steps(steps), max(1, round(FINAL_SHARE * steps))
    mean = logged_mean(forecaster, settings, times, rows, forecaster.residual)
    return forecaster.in_reward_units(mean)


def evaluation(forecaster: Forecaster, expected: FloatArray) -> FloatArray:
    """What is logged of an expected held-out reward, shape (draws,), both in its units."""
    floor, scale = forecaster.outcome_bounds[0], forecaster.outcome_range
    variance = np.exp(2 * forecaster.population["log_eval_noise"])
    mean = _noisy(forecaster, (expected - floor) / scale, variance, forecaster.residual)
    return np.asarray(floor + scale * mean)


def final_steps(steps: int) -> IntArray:
    """Optimizer steps that stand for the last tenth of a run."""
    first = int((1 - FINAL_SHARE) * steps) + 1
    # Five: within so short a part a curve hardly bends.
    return np.unique(np.linspace(min(first, steps), steps, 5).round().astype(np.int64))


def outcome_paths(forecaster: Forecaster, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
    """Outcome of a stable run with its slow residual, for each step by itself, (draws, times)."""
    share = (
        forecaster.outcome(settings, steps) - forecaster.outcome_bounds[0]
    ) / forecaster.outcome_range
    return forecaster.outcome_bounds[0] + forecaster.outcome_range * slow_residual(
        forecaster, share
    )


def slow_residual(forecaster: Forecaster, level: FloatArray) -> FloatArray:
    """Levels of shape (draws, times) with the run's slow residual, as shares of the range."""
    return np.clip(level + (forecaster.misfit * forecaster.residual)[:, None], 0.0, 1.0)


def logged_mean(
    forecaster: Forecaster, settings: Settings, steps: npt.ArrayLike, rows: float, noise: FloatArray
) -> FloatArray:
    """Mean of rows that a stable run logs step by step round some, (..., draws), in [0, 1]."""
    # Over a part that is short against their memory, residuals move as one: one Student t.
    expected = forecaster.logged_level(settings, steps).mean(axis=-1)
    variance = _sampling_variance(forecaster.population, expected, settings, rows)
    return _noisy(forecaster, expected, variance, noise)


def peak(forecaster: Forecaster, settings: Settings, steps: int) -> FloatArray:
    """Highest outcome on the way, shape (draws,): the curve with the slow residual round it."""
    # Steps at which a run's residual is simulated for its peak; it is correlated over half the run.
    times = np.unique(np.linspace(0, steps, 41).astype(int))
    curve = forecaster.outcome(settings, times)
    fresh = np.random.default_rng(0).standard_normal(curve.shape)
    memory = WANDER_SHARE * max(steps, 1)
    residual = _residual_path(fresh[:, 0], times, memory, np.ones(fresh.shape[0]), fresh[:, 1:])
    misfit = forecaster.misfit[:, None] * forecaster.outcome_range
    swept = np.clip(curve + misfit * residual, *forecaster.outcome_bounds).max(axis=1)
    return np.asarray(np.maximum(swept, curve[:, -1]))


def checkpoints_of(steps: npt.ArrayLike, paths: FloatArray, span: float) -> list[int]:
    """Steps worth an evaluation; after the first of them nothing more is expected.

    The first is where the median of ``paths``, shape (draws, steps), comes within 0.01 of ``span``
    of its maximum. Each doubling follows, and the end: the curve foretells no decline.
    """
    times, median = np.asarray(steps, dtype=float), np.median(paths, axis=0)
    first = times[int(np.argmax(median >= median.max() - 0.01 * span))]
    doublings = first * 2.0 ** np.arange(np.log2(times[-1] / max(first, 1.0)))
    near = {int(times[np.abs(times - one).argmin()]) for one in (*doublings, times[-1])}
    return sorted({int(first), *near})


@dataclass(frozen=True)
class RestOfRun:
    """Paths of a run from now to its end, as shares of floor to ceiling."""

    step: FloatArray  # (points,)
    curve: FloatArray  # (draws, points)
    path: FloatArray  # (draws, points)


def rest_of_run(draws: EqualDraws, observed: ObservedRun, *, seed: int) -> RestOfRun:
    """Simulate the rest of a run, its residual taken up where the log left it."""
    steps = np.unique(np.linspace(observed.last, observed.end, 24).astype(int)).astype(float)
    curve = draws.laws.reward(draws.effect, observed.clock_at(steps))
    rng, size = np.random.default_rng(seed), draws.draw.size
    mean, variance, squares = draws.residual_at(observed.last, observed)
    # Student t as a scale mixture: the rows say how far this run strays, and so does the rest.
    scale = np.sqrt((DEGREES + squares) / rng.chisquare(DEGREES + observed.reward.size, size))
    first = mean + scale * np.sqrt(variance) * rng.standard_normal(size)
    spread = scale * np.exp(draws.laws.population["log_misfit"])
    fresh = rng.standard_normal((size, steps.size - 1))
    residual = _residual_path(first, steps, observed.correlation_steps, spread, fresh)
    return RestOfRun(steps, curve, np.clip(curve + residual, 0.0, 1.0))


def final_of_rest(
    rest: RestOfRun, observed: ObservedRun, forecaster: Forecaster, logged: FloatArray
) -> FloatArray:
    """Mean reward over the last tenth of a run that goes on, shape (draws,), scaled to [0, 1]."""
    length = FINAL_SHARE * observed.end
    to_come = rest.path[:, rest.step > observed.end - length].mean(axis=1)
    left = min(observed.end - observed.last, length)
    variance = _sampling_variance(forecaster.population, to_come, observed.settings, left)
    fresh = np.random.default_rng((forecaster.seed, 1)).standard_normal(forecaster.size)
    to_come = np.clip(to_come + np.sqrt(variance) * fresh, 0.0, 1.0)
    if not logged.size:
        return np.asarray(to_come)
    share = left / length
    return np.asarray(share * to_come + (1 - share) * logged.mean())


def moved_to(
    rest: RestOfRun, observed: ObservedRun, ends: FloatArray, moved: FloatArray
) -> RestOfRun:
    """Paths whose ends, shape (draws,), are moved to others, rank by rank, from now on."""
    ranks = np.argsort(np.argsort(ends))
    further = np.quantile(moved, (ranks + 0.5) / ranks.size) - ends
    # The end is the mean of the last tenth: its middle is where it is reached.
    left = (1 - FINAL_SHARE / 2) * observed.end - observed.last
    by = further[:, None] * np.clip((rest.step - observed.last) / left, 0.0, 1.0)
    curve, path = (np.clip(paths + by, 0.0, 1.0) for paths in (rest.curve, rest.path))
    return RestOfRun(rest.step, curve, path)


def probability_as_low(
    reweighted: ReweightedDraws, observed: ObservedRun, steps: FloatArray, mean: float
) -> float:
    """Probability that the scaled mean of later rows is as low as it was, by the rows before."""
    from scipy.special import stdtr

    draws = reweighted.resampled(reweighted.laws.log_onset.size)
    expected = draws.laws.reward(draws.effect, observed.clock_at(steps)).mean(axis=1)
    residual, variance, squares = draws.residual_at(float(steps.mean()), observed)
    population, rows = draws.laws.population, steps.size * observed.logging_steps
    variance = variance + _sampling_variance(population, expected, observed.settings, rows)
    freedom = DEGREES + observed.reward.size
    scale = np.sqrt(variance * (DEGREES + squares) / freedom)
    return float(stdtr(freedom, (mean - expected - residual) / scale).mean())


def level_of_fallen_run(
    level: float, rows: float, settings: Settings, forecaster: Forecaster, rng: np.random.Generator
) -> FloatArray:
    """Level of a run that has collapsed, shape (draws,): that of its latest rows, with a spread."""
    spread = forecaster.posterior.meta.priors.discrepancy.fallen_spread
    trials = float(_fresh_prompts(settings, rows)) * settings.group_size
    # Jeffreys' half a success: none seen does not mean never.
    share = (np.clip(level, 0, 1) * trials + 0.5) / (trials + 1)
    odds = np.log(share / (1 - share)) + spread * rng.standard_normal(forecaster.size)
    return np.asarray(sigmoid(odds))


def _noisy(
    forecaster: Forecaster, expected: FloatArray, variance: FloatArray, noise: FloatArray
) -> FloatArray:
    """Expected means with their noise and the slow residual, within [0, 1]."""
    variance = variance + np.exp(2 * forecaster.population["log_misfit"])
    return np.asarray(np.clip(expected + np.sqrt(variance) * noise, 0.0, 1.0))


def _fresh_prompts(settings: Settings, rows: float) -> FloatArray:
    """Prompts of rows of one step each: those of one batch of rollouts score the same ones."""
    batches = np.maximum(1.0, rows / np.asarray(settings.epochs_per_refresh))
    return np.asarray(settings.prompts_per_step * batches)


def _counted(
    level: FloatArray, settings: Settings, rows: float, rng: np.random.Generator
) -> FloatArray:
    """Right answers among the completions of some rows: nothing at all is a common end."""
    asked = max(1, round(float(_fresh_prompts(settings, rows)) * settings.group_size))
    return np.asarray(rng.binomial(asked, level) / asked)


def _sampling_variance(
    population: Mapping[str, FloatArray], level: FloatArray, settings: Settings, rows: float
) -> FloatArray:
    """Variance of a mean of so many rows by the prompts' difficulty and the completions drawn."""
    # Between these ends, so that the noise of a batch is never nothing.
    chance = np.clip(level, 0.02, 0.98)
    chance = chance * (1 - chance)
    within = sigmoid(population["within_log_odds"])
    prompts = _fresh_prompts(settings, rows)[..., None]
    completions = prompts * np.asarray(settings.group_size)[..., None]
    sampling = chance * (within / completions + (1 - within) / prompts)
    return np.asarray(sampling * np.exp(2 * population["log_noise_scale"]))


def _residual_path(
    first: FloatArray, steps: npt.ArrayLike, memory: float, spread: FloatArray, fresh: FloatArray
) -> FloatArray:
    """AR(1) residual of a stationary spread along steps, shape (draws, steps), from its first."""
    path = np.empty((first.size, np.size(steps)))
    path[:, 0] = first
    for at, kept in enumerate(np.exp(-np.diff(np.asarray(steps)) / memory)):
        path[:, at + 1] = kept * path[:, at] + spread * np.sqrt(1 - kept**2) * fresh[:, at]
    return path
