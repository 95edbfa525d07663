"""Early signs of an instability, worth knowing and no verdict: swings, refresh patterns, slowing.

Samples go stale while a batch is used, so a series may depend on the position within a refresh;
where the refresh map is close to a flip (an eigenvalue near -1, docs/theory, T17) rewards of
successive refreshes alternate; near the refresh limit fluctuations grow and last longer (T28).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.levels import MOST_ROWS, SMALLEST, averaged_down, trailing_mean
from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

FEWEST_ROWS = 40
RARE = 1e-4
"""Chance in noise above which no swing, drift or alternation is reported."""

SURROGATES = 999
RARE_RISE = 0.005
"""Share of surrogates that rise as much, above which nothing is reported."""


class Oscillation(NamedTuple):
    """A spectral peak: period in logged steps, chance of one so high in autoregressive noise."""

    period: float
    chance: float


def find_oscillation(step: FloatArray, reward: FloatArray) -> Oscillation | None:
    """Highest peak of the periodogram over the spectrum of first-order autoregressive noise."""
    kept = np.isfinite(reward)
    values, times = reward[kept], step[kept]
    if values.size < FEWEST_ROWS:
        return None
    width = values.size // 4 | 1
    padded = np.pad(values, width // 2, mode="reflect")
    rest = values - trailing_mean(padded, width)
    rest = rest - rest.mean()
    largest = float(np.abs(rest).max())
    if largest <= SMALLEST * float(np.abs(values).max()):
        return None
    rest = rest / largest
    power = np.abs(np.fft.rfft(rest)) ** 2
    frequency = np.fft.rfftfreq(values.size)
    lag_one = float(np.clip(rest[1:] @ rest[:-1] / (rest @ rest), 0.0, 0.95))
    # A peak is compared with the mean of the others but its neighbours, into which it leaks.
    noise = 1 / (1 - 2 * lag_one * np.cos(2 * np.pi * frequency) + lag_one**2)
    looked = (frequency >= 4 / values.size) & (frequency <= 1 / 4)
    scaled = power[looked] / noise[looked]
    top = int(np.argmax(scaled))
    others = np.delete(scaled, np.arange(max(0, top - 1), min(scaled.size, top + 2)))
    if scaled[top] <= 0 or others.size < 3:
        return None
    # (1 + x / k)^-k is the tail of F(2, 2 k); any of the frequencies could have been the peak.
    share = others.sum() / (others.sum() + scaled[top])
    chance = float(min(1.0, scaled.size * share**others.size))
    if chance > RARE:
        return None
    spacing = float(np.median(np.diff(times)))
    return Oscillation(spacing / float(frequency[looked][top]), chance)


class Drift(NamedTuple):
    """A series that grows or shrinks along each refresh of K steps."""

    interval: int
    first: float
    last: float
    chance: float


def find_drift(run: PilotRun, name: str) -> Drift | None:
    """Growth of a series along the refresh, beyond noise."""
    interval = run.hyperparameters.refresh_interval or 1
    values = run.series.get(name)
    if values is None or interval < 2 or run.step_unit != "optimizer" or not run.step.size:
        return None
    start = int(run.step[0] - 1) // interval * interval
    rows = int(run.step[-1]) - start
    # Steps over rows above which steps are not logged one by one.
    if rows > 1.2 * run.step.size + interval:
        return None
    grid = np.full(rows, np.nan)
    grid[run.step.astype(int) - 1 - start] = values
    if rows < interval * 8:
        return None
    cycles = grid[: rows // interval * interval].reshape(-1, interval)
    # What a refresh gains on its neighbours is the trend; learning is no drift.
    means = cycles.mean(axis=1)
    trend = (means[2:] - means[:-2]) / (2 * interval)
    kept = np.isfinite(trend) & np.isfinite(means[1:-1])
    cycles, trend = cycles[1:-1][kept], trend[kept]
    if len(cycles) < 8:
        return None
    # Each refresh gives one slope, so that correlation within it does no harm.
    place = np.arange(interval) - (interval - 1) / 2
    growth = cycles @ place / (place**2).sum() - trend
    largest = float(np.nanmax(np.abs(grid)))
    if not growth.std() > SMALLEST * largest:
        return None
    from scipy.special import stdtr

    ratio = float(growth.mean() / growth.std(ddof=1) * np.sqrt(len(growth)))
    chance = 2 * float(stdtr(len(growth) - 1, -abs(ratio)))
    if chance > RARE:
        return None
    level, half = float(cycles.mean()), float(growth.mean()) * (interval - 1) / 2
    return Drift(interval, level - half, level + half, chance)


def alternation(run: PilotRun) -> float | None:
    """Chance that noise alternates from refresh to refresh as the reward does."""
    interval = (run.hyperparameters.refresh_interval or 1) if run.step_unit == "optimizer" else 1
    kept = np.isfinite(run.reward)
    step, reward = run.step[kept], run.reward[kept]
    refresh = ((step - 1) // interval).astype(int)
    _, place, count = np.unique(refresh, return_inverse=True, return_counts=True)
    means = np.bincount(place, reward) / count if count.size else np.zeros(0)
    if means.size < 40:
        return None
    largest = float(np.abs(means).max())
    if np.ptp(means) <= SMALLEST * largest:
        return None
    means = means / largest
    next_one = float((np.diff(means) ** 2).mean())
    next_but_one = float(((means[2:] - means[:-2]) ** 2).mean())
    from scipy.special import ndtr

    # In white noise both are twice the variance, which cancels trends better than its own estimate.
    difference = 2 * (next_one - next_but_one) / (next_one + next_but_one)
    chance = float(ndtr(-difference * np.sqrt(means.size / 2)))
    return chance if chance <= RARE else None


class Slowing(NamedTuple):
    """Variance and autocorrelation that rise together."""

    variance: float
    autocorrelation: float
    chance: float


def find_slowing(values: FloatArray) -> Slowing | None:
    """Rise of variance and lag-one autocorrelation beyond what stationary noise shows."""
    if values.size < 60:
        return None
    values, _ = averaged_down(values, MOST_ROWS)
    rest = _without_trend(values[None, :])
    largest = float(np.abs(rest).max())
    if largest <= SMALLEST * float(np.abs(values).max()):
        return None
    rest = rest / largest
    found = _rises(rest)[:, 0]
    # Correlation with time below which neither variance nor autocorrelation counts as rising.
    if found.min() < 0.5:
        return None
    # Surrogates: autoregressive noise of the same length and correlation, detrended the same way.
    correlation = float((rest[0, 1:] * rest[0, :-1]).sum()) / float((rest**2).sum())
    correlation = float(np.clip(correlation + 4 / values.size, 0.0, 0.95))
    noise = np.random.default_rng(0).standard_normal((SURROGATES, values.size + 60))
    for row in range(1, noise.shape[1]):
        noise[:, row] += correlation * noise[:, row - 1]
    surrogates = noise[:, 60:]
    as_high = (_rises(_without_trend(surrogates)).min(axis=0) >= found.min()).sum()
    chance = float(as_high + 1) / (SURROGATES + 1)
    return Slowing(float(found[0]), float(found[1]), chance) if chance <= RARE_RISE else None


def _without_trend(rows: FloatArray) -> FloatArray:
    """Rows less their centred running mean; windows shrink at the ends."""
    size = rows.shape[1]
    # The trend taken off is a running mean over one in so many rows.
    half = max(2, size // 3 // 2)
    total = np.pad(np.cumsum(rows, axis=1), ((0, 0), (1, 0)))
    first = np.maximum(np.arange(size) - half, 0)
    last = np.minimum(np.arange(size) + half + 1, size)
    return np.asarray(rows - (total[:, last] - total[:, first]) / (last - first))


def _rises(rows: FloatArray) -> FloatArray:
    """Correlation with time of rolling variance and autocorrelation, shape (2, series)."""
    width = rows.shape[1] // 2
    variance = _rolling(rows**2, width)[:, 1:]
    products = _rolling(rows[:, 1:] * rows[:, :-1], width)
    with np.errstate(invalid="ignore", divide="ignore"):
        rolling = np.stack([variance, np.nan_to_num(products / variance)])
    time = np.arange(variance.shape[1], dtype=float)
    time = (time - time.mean()) / np.sqrt(((time - time.mean()) ** 2).sum())
    around = rolling - rolling.mean(axis=2, keepdims=True)
    spread = np.sqrt((around**2).sum(axis=2))
    return np.asarray((around @ time) / np.where(spread > 0, spread, np.inf))


def _rolling(rows: FloatArray, width: int) -> FloatArray:
    total = np.pad(np.cumsum(rows, axis=1), ((0, 0), (1, 0)))
    return np.asarray((total[:, width:] - total[:, :-width]) / width)
