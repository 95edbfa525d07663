"""A fall of the reward: when it began, how far it went, and whether noise could have done it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.collapse import (
    LOST_SHARE,
    WINDOW_ROWS,
    Collapse,
    find_collapse,
    trailing_mean,
    window_rows,
)
from advisor.runs.diagnosis.levels import (
    LEAST_ROWS,
    ROUNDING,
    as_normal,
    averaged_down,
    lag_one,
    widening,
)
from advisor.theory import FloatArray

SURE = 4.0
"""Standard errors from which a fall is called real. Of 192 labelled runs the collapses reach 4.3
and more, falls that the definition alone would see in noise 2.8."""

UNSURE = 2.5
"""Standard errors from which a fall that noise might have done is still shown."""

PASSING_SHARE = 0.5
"""Share of the level before a fall below which it counts although the reward came back: shallower
ones are met in runs that learn on."""

PASSING_SURE = 5.5
"""Standard errors from which such a fall is called real: every low stretch is looked at, and noise
that is correlated makes one of four in 3 % of runs, one of five in 1 %, and of these none."""

RAMPS = (0, 1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
"""Lengths of a fall that are tried, in rows."""

GOOD = 0.8
"""Share of the best window from which another one counts as good."""

BELOW = 1.5
"""Noise standard deviations below its best level from which a row belongs to the fall."""

MOST_ROWS = 400
"""Longer series are averaged down before a change point is sought."""

AT_FLOOR = 0.05
"""Share of the level before a fall at or below which rows count as at the floor."""

SPARSE = 0.05
"""Share of rows at the floor before the fall from which the reward is taken for sparse."""

_LEAST = 2
_FITTED = 4
"""What a ramp is fitted with: two levels, onset, length."""


class Fall(NamedTuple):
    """From one level to a lower one, in reward units.

    ``onset_step`` is the logged step of the first row below the band in which the reward had been,
    ``floor_step`` that at which the lower level is reached. ``error`` is the standard error of
    ``before - after``, inflated for autocorrelation, with ``freedom`` degrees of freedom.
    """

    onset_step: float
    floor_step: float
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
    """Fit a level, a ramp and a lower level to finite rewards from their last good stretch on.

    That stretch is sought before ``before_row`` where it is given. Least squares over onset and
    length of the ramp, in units of the logged rows; None where too few rows follow the stretch.
    """
    step, reward, factor = _shortened(step, reward)
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
    lowest = floor + AT_FLOOR * (before - floor)
    since_good = reward[_first_good(reward, window, best, floor) : first + end]
    if after > lowest or int((since_good <= lowest).sum()) > SPARSE * since_good.size:
        # Noise wanders so: what is fitted to it hides correlation, and few rows bound it badly.
        correlation = _correlation(reward[:first], tail - fitted, window)
        error = spread * widening(correlation)
        freedom = max(1.0, (tail.size - _FITTED) / widening(correlation) ** 2)
    error = max(error, ROUNDING * float(np.abs(tail).max()))
    # The rows before the fall tell the band; those on the floor may not move at all.
    band = tail[:begin] if begin >= LEAST_ROWS else tail - fitted
    noise = float(band.std(ddof=1))
    onset = begin
    # A slow start of the fall is flatter than the ramp: its rows lie below the band as well.
    while onset > window and tail[onset - 1] < best - BELOW * noise:
        onset -= 1
    floor_row = first + min(end, tail.size - 1)
    return Fall(float(step[first + onset]), float(step[floor_row]), before, after, error, freedom)


def _first_good(reward: FloatArray, window: int, best: float, floor: float) -> int:
    """First row of the earliest good window: rows before it are no fall."""
    mean = trailing_mean(reward, window) - floor
    good = np.flatnonzero(mean >= GOOD * (best - floor))
    return int(good[0]) if good.size else 0


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


def find_final_fall(
    step: FloatArray, reward: FloatArray, floor: float, least: int = WINDOW_ROWS
) -> tuple[Collapse, Fall | None]:
    """Verdict of the definition beyond what noise does, and the fall that it rests on.

    Stable where the fall is less than ``SURE`` standard errors; the fall is returned all the same.
    """
    kept = np.isfinite(reward)
    step, reward = step[kept], reward[kept]
    verdict, fall = _final_fall(step, reward, floor, least)
    if verdict.unstable and fall is not None:
        return verdict.model_copy(update={"fell_from": fall.onset_step}), fall
    return verdict, fall


def _final_fall(
    step: FloatArray, reward: FloatArray, floor: float, least: int
) -> tuple[Collapse, Fall | None]:
    """Verdict and fall of finite rewards."""
    verdict = find_collapse(step, reward, floor, least)
    onset = verdict.onset_step
    before = None if onset is None else int(np.searchsorted(step, onset))
    fall = find_fall(step, reward, before, floor, least)
    if verdict.unstable and (fall is None or fall.z < SURE):
        deepest = _to_the_lowest(step, reward, before, floor, least)
        if deepest is not None and deepest.z >= PASSING_SURE:
            return verdict, deepest
        stable = {"unstable": False, "onset_step": None, "healthy_until": None}
        return verdict.model_copy(update=stable), fall
    return verdict, fall


def find_any_fall(
    step: FloatArray, reward: FloatArray, floor: float, least: int = WINDOW_ROWS
) -> Collapse:
    """Verdict of `find_final_fall`, or a fall to less than half from which the reward came back.

    What kills a run once may kill its twin for good: both count as collapses of their setting.
    """
    verdict, _ = find_final_fall(step, reward, floor, least)
    fall = None if verdict.unstable else find_passing_fall(step, reward, floor, least)
    if fall is None:
        return verdict
    earlier = step[step < fall.onset_step]
    return verdict.model_copy(
        update={
            "unstable": True,
            "onset_step": fall.onset_step,
            "fell_from": fall.onset_step,
            "healthy_until": float(earlier[-1]) if earlier.size else 0.0,
        }
    )


def find_passing_fall(
    step: FloatArray,
    reward: FloatArray,
    floor: float,
    least: int = WINDOW_ROWS,
    sure: float = PASSING_SURE,
) -> Fall | None:
    """First fall to less than half, by ``sure`` standard errors, from which the reward came back.

    Where it never came back `find_final_fall` has it: this one looks at the rows up to the lowest
    window of every stretch in which the trailing mean was low.
    """
    kept = np.isfinite(reward)
    step, reward = step[kept], reward[kept]
    window = window_rows(reward.size, least)
    if reward.size < 2 * window:
        return None
    mean = trailing_mean(reward, window) - floor
    low = mean < (1 - LOST_SHARE) * np.maximum.accumulate(mean)
    turns = np.diff(low.astype(int), prepend=0)
    begins, backs = np.flatnonzero(turns == 1), np.flatnonzero(turns == -1)
    # A last stretch from which nothing came back has a beginning only.
    for begin, back in zip(begins.tolist(), backs.tolist(), strict=False):
        end = begin + int(np.argmin(mean[begin:back])) + window
        fall = find_fall(step[:end], reward[:end], None, floor, window)
        if fall is None or fall.z < sure:
            continue
        if fall.after - floor < PASSING_SHARE * (fall.before - floor):
            return fall
    return None


def _to_the_lowest(
    step: FloatArray, reward: FloatArray, before_row: int | None, floor: float, least: int
) -> Fall | None:
    """Fall up to the lowest window after ``before_row``: half of it may have been regained since.

    None where it is shallower than what counts although the reward came back.
    """
    window = window_rows(reward.size, least)
    first = max(0, (before_row or 0) - window + 1)
    end = first + int(np.argmin(trailing_mean(reward, window)[first:])) + window
    fall = find_fall(step[:end], reward[:end], before_row, floor, window)
    if fall is None or fall.after - floor >= PASSING_SHARE * (fall.before - floor):
        return None
    return fall


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
    for length in RAMPS:
        begin = np.arange(_LEAST, rows - _LEAST - length)
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
            return _fitted(values, _LEAST + int(close[0]), length)
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
    sigma = np.sqrt(float(((values - fitted) ** 2).sum()) / max(1, values.size - _FITTED))
    variance = (aa + bb + 2 * ab) / determinant
    return begin, begin + length, before, after, fitted, float(sigma * np.sqrt(variance))


def _shortened(step: FloatArray, reward: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    rows, factor = averaged_down(reward, MOST_ROWS)
    return step[: rows.size * factor : factor], rows, factor
