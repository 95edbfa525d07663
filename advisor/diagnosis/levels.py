"""Levels of a noisy, autocorrelated series, and falls from one to another, with their errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.runs import PilotRun
from advisor.theory import FloatArray

Z95 = 1.959964  # Two-sided 95 % of a normal distribution
LEAST_ROWS = 4  # Rows below which a level has no error worth stating

ROUNDING = 1e-12
"""Relative error that any level has: a constant must not differ from itself by its last digit."""

WINDOW_ROWS = 5
EVALUATION_ROWS = 2
"""Evaluations are few and each is a mean over many prompts: this many take the place of 5 rows."""

SURE = 4.0
"""Standard errors from which a fall is called real. Of 192 labelled runs the collapses reach 4.3
and more, falls that the definition alone would see in noise 2.8."""

LOST_SHARE = 1 / 3  # A run is unstable when its trailing mean lies more than a third below its best
GOOD = 0.8  # Share of the best window from which another one counts as good
FITTED = 4  # What a ramp is fitted with: two levels, onset, length


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

    def above(self, other: Level) -> float:
        """By how many standard errors it is above another; 0 where an error is unknown."""
        error = np.hypot(self.error, other.error)
        if not np.isfinite(error):
            return 0.0
        gap = self.mean - other.mean
        return float(np.sign(gap) * np.inf if error == 0 and gap else gap / error if error else 0.0)

    @staticmethod
    def first_and_last(values: FloatArray) -> tuple[Level, ...]:
        """Levels of both ends of finite values; of few the first and the last, without errors."""
        if values.size >= 2 * LEAST_ROWS:
            return ends(values)
        # Shares of them would overlap.
        return tuple(Level(float(value), np.inf) for value in (*values[:1], *values[-1:]))

    @staticmethod
    def row_noise(reward: FloatArray) -> float:
        """Noise of one row, from finite neighbours: by their median, so that a jump is no noise."""
        # Median of squared differences of normal values of variance one: twice that of chi-squared.
        return float(np.sqrt(np.median(np.diff(reward) ** 2) / 0.91))


def level(values: FloatArray) -> Level:
    """Mean of finite values and its error."""
    if values.size < LEAST_ROWS:
        return Level(float(values.mean()) if values.size else np.nan, np.inf)
    error = float(values.std(ddof=1) / np.sqrt(values.size)) * widening(lag_one(values))
    return Level(float(values.mean()), max(error, ROUNDING * float(np.abs(values).max())))


def lag_one(values: FloatArray) -> float:
    """Correlation of neighbours; 0 where nothing varies."""
    around = values - values.mean()
    # Dot products of long vectors start threads, which costs more than it saves.
    power = float((around**2).sum())
    return float((around[1:] * around[:-1]).sum()) / power if power > 0 else 0.0


def widening(correlation: float) -> float:
    """Factor by which such a correlation of neighbours widens the error of a mean, at least 1."""
    # Above it short series cannot tell more.
    kept = float(np.clip(correlation, 0.0, 0.9))
    return float(np.sqrt((1 + kept) / (1 - kept)))


def as_normal(ratio: float, freedom: float) -> float:
    """Standard errors of a normal variable as rare as a ratio with so many degrees of freedom."""
    # Its import takes a fifth of a second, which commands that judge no run need not wait for.
    from scipy.special import ndtri, stdtr

    tail = max(float(stdtr(freedom, -abs(ratio))), np.finfo(float).tiny)
    return float(np.sign(ratio) * -ndtri(tail))


def finite(step: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Steps and values where a value is finite."""
    kept = np.isfinite(values)
    return step[kept], values[kept]


def series_of(run: PilotRun, name: str) -> tuple[FloatArray, FloatArray] | None:
    """Steps and finite values of a logged series, or None where fewer than ``LEAST_ROWS`` are."""
    if name not in run.series:
        return None
    found = finite(run.step, run.series[name])
    return found if found[1].size >= LEAST_ROWS else None


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


def rise(values: FloatArray, share: float = 0.2) -> float:
    """By how many standard errors the last share of a series is above the first."""
    first, last = ends(values, share)
    return last.above(first)


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


class Fall(NamedTuple):
    """From one level to a lower one, in reward units."""

    onset_step: float
    before: float
    after: float
    error: float
    freedom: float

    @property
    def z(self) -> float:
        """The fall in standard errors of a normal variable that is as rare."""
        ratio = (self.before - self.after) / self.error if self.error > 0 else 0.0
        return as_normal(ratio, self.freedom)


def find_fall(
    step: FloatArray,
    reward: FloatArray,
    before_row: int | None = None,
    floor: float = 0.0,
    least: int = WINDOW_ROWS,
) -> Fall | None:
    """Fit a level, a ramp and a lower level to finite rewards from their last good stretch on."""
    # Longer series are averaged down before a change point is sought.
    factor = max(1, int(np.ceil(reward.size / 400)))
    reward = reward[: reward.size // factor * factor].reshape(-1, factor).mean(axis=1)
    step = step[: reward.size * factor : factor]
    window = window_rows(reward.size, least)
    if reward.size < 2 * window:
        return None
    mean = trailing_mean(reward, window)
    last = mean.size if before_row is None else max(1, before_row // factor - window + 2)
    mean = mean[: min(last, mean.size)]
    # A run that was lost and regained may fall from its last good stretch or from all before it.
    tops = {int(np.argmax(mean)), _last_top(mean - floor)}
    falls = [_fall_from(step, reward, top, window, float(mean[top]), floor) for top in tops]
    return max((fall for fall in falls if fall is not None), key=lambda f: f.z, default=None)


def _fall_from(
    step: FloatArray, reward: FloatArray, top: int, window: int, best: float, floor: float
) -> Fall | None:
    """Fall after the window that starts at row ``top`` and has mean ``best``."""
    # What came long before it belongs to the rise.
    first = max(0, top - window)
    tail = reward[first:]
    found = _ramp(tail)
    if found is None:
        return None
    begin, end, before, after, fitted, spread = found
    error, freedom = spread * widening(lag_one(tail - fitted)), np.inf
    # Rows at the floor; of a reward that is not sparse, few before the fall are.
    lowest = floor + 0.05 * (before - floor)
    # Rows before the earliest good window are no fall.
    good = np.flatnonzero(trailing_mean(reward, window) - floor >= GOOD * (best - floor))
    since_good = reward[int(good[0]) if good.size else 0 : first + end]
    if after > lowest or int((since_good <= lowest).sum()) > 0.05 * since_good.size:
        # Noise wanders so: what is fitted to it hides correlation, and few rows bound it badly.
        correlation = _correlation(reward[:first], tail - fitted, window)
        error = spread * widening(correlation)
        freedom = max(1.0, (tail.size - FITTED) / widening(correlation) ** 2)
    error = max(error, ROUNDING * float(np.abs(tail).max()))
    # The rows before the fall tell the band; those on the floor may not move at all.
    band = tail[:begin] if begin >= LEAST_ROWS else tail - fitted
    noise = float(band.std(ddof=1))
    onset = begin
    # A slow start of the fall is flatter than the ramp: its rows lie below the band as well.
    # Noise standard deviations below its best level from which a row belongs to the fall.
    while onset > window and tail[onset - 1] < best - 1.5 * noise:
        onset -= 1
    return Fall(float(step[first + onset]), before, after, error, freedom)


def _correlation(earlier: FloatArray, rest: FloatArray, window: int) -> float:
    """Lag-one correlation of the rows of a fall, or of all rows where it is more; bias removed."""
    rows, found = rest.size, lag_one(rest)
    width = min(2 * window, (earlier.size - 1) // 2 * 2) | 1
    if earlier.size >= 2 * LEAST_ROWS and width <= earlier.size:
        padded = np.pad(earlier, width // 2, mode="reflect")
        wander = earlier - trailing_mean(padded, width)
        power = float(wander @ wander + rest @ rest)
        both = float(wander[1:] @ wander[:-1] + rest[1:] @ rest[:-1]) / power if power > 0 else 0.0
        if both > found:
            rows, found = rows + earlier.size, both
    return found + (2 + 4 * max(found, 0.0)) / rows


def _last_top(mean: FloatArray) -> int:
    """Best window of the last good stretch: earlier ones may have been lost and regained."""
    best = mean.max()
    end = int(np.flatnonzero(mean >= GOOD * best)[-1]) if best > 0 else int(mean.argmax())
    lost = np.flatnonzero(mean[:end] < (1 - LOST_SHARE) * best)
    start = int(lost[-1]) + 1 if lost.size else 0
    return start + int(np.argmax(mean[start : end + 1]))


def _ramp(values: FloatArray) -> tuple[int, int, float, float, FloatArray, float] | None:
    """Best onset row, end row, levels, fitted values, and error of the difference (white)."""
    rows = values.size
    around = values - values.mean()
    total = np.concatenate([[0.0], np.cumsum(around)])
    best, choices = np.inf, []
    for length in (0, 1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200):
        begin = np.arange(2, rows - 2 - length)
        if not begin.size:
            break
        share = np.arange(1, length + 1) / (length + 1)
        # Normal equations of two levels for every onset at once; the ramp belongs to both.
        aa = begin + ((1 - share) ** 2).sum()
        bb = rows - begin - length + (share**2).sum()
        ab = float((share * (1 - share)).sum())
        inside = np.convolve(around, share[::-1], "valid")[begin] if length else 0.0
        yb = total[-1] - total[begin + length] + inside
        ya = total[-1] - yb
        gain = (bb * ya**2 - 2 * ab * ya * yb + aa * yb**2) / (aa * bb - ab**2)
        choices.append((length, gain))
        best = min(best, -float(gain.max()))
    # Of equally good ones the shortest and first: what is left over is rounding.
    slack = ROUNDING * float((around**2).sum())
    for length, gain in choices:
        close = np.flatnonzero(-gain <= best + slack)
        if close.size:
            return _fitted(values, 2 + int(close[0]), length)
    return None


def _fitted(
    values: FloatArray, begin: int, length: int
) -> tuple[int, int, float, float, FloatArray, float]:
    """Least squares of two levels for one onset and length."""
    share = np.clip((np.arange(values.size) - begin + 1) / (length + 1), 0.0, 1.0)
    own = 1 - share
    aa, ab, bb = float(own @ own), float(own @ share), float(share @ share)
    ya, yb = float(own @ values), float(share @ values)
    determinant = aa * bb - ab * ab
    before = (bb * ya - ab * yb) / determinant
    after = (aa * yb - ab * ya) / determinant
    fitted = before * own + after * share
    sigma = np.sqrt(float(((values - fitted) ** 2).sum()) / max(1, values.size - FITTED))
    variance = (aa + bb + 2 * ab) / determinant
    return begin, begin + length, before, after, fitted, float(sigma * np.sqrt(variance))
