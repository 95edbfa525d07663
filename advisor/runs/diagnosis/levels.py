"""Levels of a noisy, autocorrelated series, with their errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

Z95 = 1.959964
"""Two-sided 95 % of a normal distribution."""

MOST_CORRELATION = 0.9
"""Cap on the lag-one correlation that inflates an error: short series cannot tell more."""

SMALLEST = 1e-9
"""Change, as a share of the largest value, below which a series does not move but by rounding."""

LEAST_ROWS = 4
"""Rows below which a level has no error worth stating."""

ROUNDING = 1e-12
"""Relative error that any level has: a constant must not differ from itself by its last digit."""


WINDOW_ROWS = 5

EVALUATION_ROWS = 2
"""Evaluations are few and each is a mean over many prompts: this many take the place of 5 rows."""


class Level(NamedTuple):
    """Mean of a stretch and its standard error, inflated for autocorrelation; infinite if short."""

    mean: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval."""
        return self.mean - Z95 * self.error, self.mean + Z95 * self.error

    @property
    def share_interval(self) -> tuple[float, float]:
        """95 % interval of a share, which lies in [0, 1]."""
        lower, upper = self.interval
        return max(0.0, lower), min(1.0, upper)


def level(values: FloatArray) -> Level:
    """Mean of finite values and its error."""
    if values.size < LEAST_ROWS:
        return Level(float(values.mean()) if values.size else np.nan, np.inf)
    error = float(values.std(ddof=1) / np.sqrt(values.size)) * inflation(values)
    return Level(float(values.mean()), max(error, ROUNDING * float(np.abs(values).max())))


def averaged_down(values: FloatArray, most: int) -> tuple[FloatArray, int]:
    """Means of as many neighbours as leave at most so many rows, and how many those are."""
    factor = max(1, int(np.ceil(values.size / most)))
    whole = values.size // factor * factor
    return values[:whole].reshape(-1, factor).mean(axis=1), factor


def inflation(values: FloatArray) -> float:
    """Factor by which autocorrelation widens the error of a mean, at least 1."""
    return widening(lag_one(values))


def lag_one(values: FloatArray) -> float:
    """Correlation of neighbours; 0 where nothing varies."""
    around = values - values.mean()
    # Dot products of long vectors start threads, which costs more than it saves.
    power = float((around**2).sum())
    return float((around[1:] * around[:-1]).sum()) / power if power > 0 else 0.0


def widening(correlation: float) -> float:
    """Factor by which such a correlation of neighbours widens the error of a mean, at least 1."""
    kept = float(np.clip(correlation, 0.0, MOST_CORRELATION))
    return float(np.sqrt((1 + kept) / (1 - kept)))


def as_normal(ratio: float, freedom: float) -> float:
    """Standard errors of a normal variable as rare as a ratio with so many degrees of freedom."""
    # Its import takes a fifth of a second, which commands that judge no run need not wait for.
    from scipy.special import ndtri, stdtr

    tail = max(float(stdtr(freedom, -abs(ratio))), np.finfo(float).tiny)
    return float(np.sign(ratio) * -ndtri(tail))


def difference(one: Level, other: Level) -> float:
    """``one - other`` in standard errors; 0 where an error is unknown."""
    error = np.hypot(one.error, other.error)
    if not np.isfinite(error):
        return 0.0
    gap = one.mean - other.mean
    return float(np.sign(gap) * np.inf if error == 0 and gap else gap / error if error else 0.0)


def series_of(run: PilotRun, name: str) -> tuple[FloatArray, FloatArray] | None:
    """Steps and finite values of a logged series, or None where fewer than ``LEAST_ROWS`` are."""
    values = run.series.get(name)
    if values is None:
        return None
    kept = np.isfinite(values)
    if kept.sum() < LEAST_ROWS:
        return None
    return run.step[kept], values[kept]


def since(step: FloatArray, values: FloatArray, limit: float, *, below: bool = False) -> float:
    """Step from which a running mean stays above a limit, or below it; the last step if never."""
    width = max(LEAST_ROWS, values.size // 20)
    means = trailing_mean(values, width)
    back = np.flatnonzero(means > limit if below else means < limit)
    if back.size and back[-1] + 1 >= means.size:
        return float(step[-1])
    return float(step[back[-1] + 1 if back.size else 0])


def steps_above(
    step: FloatArray, values: FloatArray, last: Level, limit: float
) -> tuple[float, float]:
    """First and last step that a verdict on a share speaks of: since it rose, or all of them."""
    first = float(step[0]) if last.mean < limit else since(step, values, limit)
    return first, float(step[-1])


def ends(values: FloatArray, share: float = 0.2) -> tuple[Level, Level]:
    """Levels of the first and of the last share of a series."""
    rows = max(LEAST_ROWS, round(share * values.size))
    return level(values[:rows]), level(values[-rows:])


def tamed(values: npt.ArrayLike) -> FloatArray:
    """Values whose squares and sums neither overflow nor vanish; what is not finite is NaN."""
    values = np.asarray(values, dtype=float)
    kept = np.where(np.isfinite(values), values, np.nan)
    return np.where(np.abs(kept) < 1e-100, 0.0, np.clip(kept, -1e100, 1e100))


def trailing_mean(values: FloatArray, window: int) -> FloatArray:
    """Mean over the last ``window`` values, shape (n - window + 1,)."""
    rows = values.size
    blocks = np.pad(values, (0, -rows % window)).reshape(-1, window)
    # Sums within blocks only: a huge value drowns its own windows, not those after it.
    ahead = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].ravel()[: rows - window + 1]
    behind = np.cumsum(blocks, axis=1).ravel()[window - 1 : rows]
    is_whole = np.arange(ahead.size) % window == 0
    return np.asarray(np.where(is_whole, ahead, ahead + behind) / window)


def window_rows(rows: int, least: int = WINDOW_ROWS) -> int:
    """Rows of the trailing mean in a series of so many."""
    return max(least, int(np.ceil(0.05 * rows)))
