"""Coupling of held-out to train reward: the slope between them, with errors in both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.collapse import trailing_mean
from advisor.runs.diagnosis.levels import SMALLEST
from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

FEWEST = 5
"""Evaluations in a window; fewer bound no slope."""

SHARE = 0.5
"""Share of the evaluations in a window."""

MOST_WINDOWS = 50
"""More evaluations are passed over in larger strides."""


class Coupling(NamedTuple):
    """Held-out gain per unit of train gain over one window; the 95 % interval may be unbounded."""

    first_step: float
    last_step: float
    slope: float
    interval: tuple[float, float] | None


def couplings(run: PilotRun) -> list[Coupling]:
    """Slopes over a window of half the evaluations that slides over the run, to its end.

    Empty where evaluations are few or one of the two never moves. Deming's regression: both series
    are divided by their noise, taken from differences of neighbours over the whole run, and the
    first principal axis of a window gives its slope. Train rewards are means around the
    evaluations.
    """
    pairs = _paired(run)
    if pairs is None:
        return []
    times, train, held_out = pairs
    width = max(FEWEST, round(SHARE * times.size))
    noise = [float(np.sqrt(np.mean(np.diff(v) ** 2) / 2)) for v in (train, held_out)]
    x, y = train / noise[0], held_out / noise[1]
    found = []
    last = times.size - width
    for first in sorted(range(last, -1, -max(1, last // MOST_WINDOWS))):
        own = slice(first, first + width)
        slope, interval = _slope(x[own], y[own])
        scale = noise[1] / noise[0]
        bounds = None if interval is None else (scale * interval[0], scale * interval[1])
        found.append(
            Coupling(float(times[first]), float(times[first + width - 1]), scale * slope, bounds)
        )
    return found


def _paired(run: PilotRun) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Steps of the evaluations, train reward around them, held-out reward."""
    kept, seen = np.isfinite(run.reward), np.isfinite(run.eval_reward)
    times, held_out = run.eval_step[seen], run.eval_reward[seen]
    if times.size < FEWEST or not kept.any():
        return None
    size = max(1, int(kept.sum()) // (2 * times.size))
    # The middle of each mean; one of an even number of rows lies half a row late.
    smooth, middles = trailing_mean(run.reward[kept], size), run.step[kept][size // 2 :]
    train = np.interp(times, middles[: smooth.size], smooth)
    for values in (train, held_out):
        if np.ptp(values) <= SMALLEST * float(np.abs(values).max()):
            return None
    return times, train, held_out


def _slope(x: FloatArray, y: FloatArray) -> tuple[float, tuple[float, float] | None]:
    """Slope of the principal axis and its interval."""
    around_x, around_y, rows = x - x.mean(), y - y.mean(), x.size
    products = np.stack([around_x**2, around_y**2, around_x * around_y])
    total = products.sum(axis=1)
    from scipy.special import stdtrit

    angle = float(_angle(total))
    # Sums of squares without one row, from those with it.
    left_out = _angle(total[:, None] - products * (rows / (rows - 1)))
    # An axis has no direction: angles are the same modulo half a turn.
    away = (left_out - angle + np.pi / 2) % np.pi - np.pi / 2
    error = float(np.sqrt((rows - 1) / rows * ((away - away.mean()) ** 2).sum()))
    half = float(stdtrit(rows - 2, 0.975)) * error
    slope = float(np.tan(angle))
    if abs(angle) + half >= np.pi / 2:
        return slope, None
    return slope, (float(np.tan(angle - half)), float(np.tan(angle + half)))


def _angle(sums: FloatArray) -> FloatArray:
    """Angle of the first principal axis from sums of xx, yy and xy, in (-pi/2, pi/2]."""
    return np.asarray(0.5 * np.arctan2(2 * sums[2], sums[0] - sums[1]))
