"""Collapse: whether the reward has fallen away from its best, for good, and since when."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from advisor.theory import FloatArray

WINDOW_ROWS = 5
WINDOW_SHARE = 0.05
"""The trailing mean covers the larger of 5 rows and 5 % of the run."""

EVALUATION_ROWS = 2
"""Evaluations are few and each is a mean over many prompts: this many take the place of 5 rows."""

LOST_SHARE = 1 / 3
"""A run is unstable when its trailing mean lies more than a third below its best."""


class Collapse(BaseModel):
    """Verdict on one run.

    Attributes
    ----------
    unstable : bool
        Trailing mean more than a third below its best (from the reward floor) at the end and for
        one window before.
    onset_step : float or None
        Optimizer step from which it stayed so: the event that a hazard is fitted to.
    fell_from : float or None
        Optimizer step at which the fall began, which texts and figures name.
    healthy_until : float or None
        Last step before the window that first looked low: later rows may already be falling.
    best, last : float
        Best and final trailing mean, in reward units.
    """

    model_config = ConfigDict(frozen=True)

    unstable: bool
    onset_step: float | None
    fell_from: float | None = None
    healthy_until: float | None
    best: float
    last: float


LARGEST, LEAST = 1e100, 1e-100
"""Magnitudes beyond which a number is cut, and below which it is zero: squares stay finite."""


def tamed(values: npt.ArrayLike) -> FloatArray:
    """Values whose squares and sums neither overflow nor vanish; what is not finite is NaN."""
    values = np.asarray(values, dtype=float)
    kept = np.where(np.isfinite(values), values, np.nan)
    return np.where(np.abs(kept) < LEAST, 0.0, np.clip(kept, -LARGEST, LARGEST))


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
    return max(least, int(np.ceil(WINDOW_SHARE * rows)))


def find_collapse(
    step: FloatArray, reward: FloatArray, floor: float, least: int = WINDOW_ROWS
) -> Collapse:
    """Apply the stability definition to one reward series.

    Parameters
    ----------
    step : ndarray of shape (rows,)
        Optimizer steps.
    reward : ndarray of shape (rows,)
        Train reward, NaN where missing.
    floor : float
        Lowest possible reward, in the same units.
    least : int
        Rows of the trailing mean in a short series: ``EVALUATION_ROWS`` for evaluations.

    Returns
    -------
    collapse : Collapse
        With fewer rows than two windows, or never above the floor, nothing is called unstable.

    Examples
    --------
    >>> step = np.arange(1.0, 41.0)
    >>> find_collapse(step, np.where(step < 21, 0.8, 0.0), floor=0.0).onset_step
    23.0
    """
    kept = np.isfinite(reward)
    floor = float(tamed(floor))
    step, reward = step[kept], tamed(reward[kept]) - floor
    window = window_rows(reward.size, least)
    if reward.size < 2 * window:
        level = float(reward.mean()) + floor if reward.size else float("nan")
        return Collapse(unstable=False, onset_step=None, healthy_until=None, best=level, last=level)
    mean = trailing_mean(reward, window)
    best = np.maximum.accumulate(mean)
    low = (mean < (1 - LOST_SHARE) * best) & (best > 0)
    unstable = bool(low[-(window + 1) :].all())
    onset = healthy_until = None
    if unstable:
        healthy = np.flatnonzero(~low)
        first_low = 0 if healthy.size == 0 else int(healthy[-1]) + 1
        onset = float(step[first_low + window - 1])
        healthy_until = float(step[first_low - 1]) if first_low else 0.0
    return Collapse(
        unstable=unstable,
        onset_step=onset,
        healthy_until=healthy_until,
        best=float(best[-1]) + floor,
        last=float(mean[-1]) + floor,
    )
