"""Slowing down: fluctuations that grow and last longer, as near a loss of stability."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.fall import MOST_ROWS
from advisor.runs.diagnosis.levels import SMALLEST, averaged_down
from advisor.theory import FloatArray

FEWEST_ROWS = 60
TREND_ROWS = 3
"""The trend taken off is a running mean over one in so many rows."""

LEAST_RISE = 0.5
"""Correlation with time below which neither variance nor autocorrelation counts as rising."""

SURROGATES = 999
RARE = 0.005
"""Share of surrogates that rise as much, above which nothing is reported."""

MOST_CORRELATION = 0.95


class Slowing(NamedTuple):
    """Variance and autocorrelation that rise together.

    Each as its correlation, in a window of half the series, with time; ``chance`` is the share of
    surrogates in which the lesser of the two is as high.
    """

    variance: float
    autocorrelation: float
    chance: float


def find_slowing(values: FloatArray) -> Slowing | None:
    """Rise of variance and lag-one autocorrelation beyond what stationary noise shows.

    Values are finite, evenly spaced, and lie before any fall. None where surrogates (first-order
    autoregressive noise of the same length and correlation, detrended alike, seed fixed) rise as
    much more often than ``RARE``. Near the refresh limit theory expects it (docs/theory, T28);
    a reward that moves towards one half or a batch that shrinks also raises the variance, but not
    its persistence.
    """
    if values.size < FEWEST_ROWS:
        return None
    values, _ = averaged_down(values, MOST_ROWS)
    rest = _without_trend(values[None, :])
    largest = float(np.abs(rest).max())
    if largest <= SMALLEST * float(np.abs(values).max()):
        return None
    rest = rest / largest
    found = _rises(rest)[:, 0]
    if found.min() < LEAST_RISE:
        return None
    correlation = float((rest[0, 1:] * rest[0, :-1]).sum()) / float((rest**2).sum())
    correlation = float(np.clip(correlation + 4 / values.size, 0.0, MOST_CORRELATION))
    noise = np.random.default_rng(0).standard_normal((SURROGATES, values.size + FEWEST_ROWS))
    for row in range(1, noise.shape[1]):
        noise[:, row] += correlation * noise[:, row - 1]
    surrogates = noise[:, FEWEST_ROWS:]
    as_high = (_rises(_without_trend(surrogates)).min(axis=0) >= found.min()).sum()
    chance = float(as_high + 1) / (SURROGATES + 1)
    return Slowing(float(found[0]), float(found[1]), chance) if chance <= RARE else None


def _without_trend(rows: FloatArray) -> FloatArray:
    """Rows less their centred running mean; windows shrink at the ends."""
    size = rows.shape[1]
    half = max(2, size // TREND_ROWS // 2)
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
