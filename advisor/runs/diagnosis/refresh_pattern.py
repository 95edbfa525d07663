"""What repeats with the refresh: drift within one batch of rollouts, swings from one to the next.

Rows are folded at the refresh interval K. Samples go stale while a batch is used, so the gradient
norm may depend on the position within it; where the refresh map is close to a flip (an eigenvalue
near -1, docs/theory, T17) rewards of successive refreshes alternate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.levels import SMALLEST
from advisor.runs.pilot_run import PilotRun

FEWEST_CYCLES = 8
FEWEST_REFRESHES = 40
MOST_GAPS = 1.2
"""Steps over rows above which steps are not logged one by one."""

RARE = 1e-4
"""Chance of the pattern in noise above which nothing is reported."""


class Drift(NamedTuple):
    """A series that grows or shrinks along each refresh of K steps.

    Levels at the first and last position lie on a straight line; ``chance`` is that of such a mean
    slope in noise.
    """

    interval: int
    first: float
    last: float
    chance: float


def find_drift(run: PilotRun, name: str) -> Drift | None:
    """Growth of a series along the refresh, beyond noise.

    None where K is 1 or unknown, steps are not logged one by one, or fewer than ``FEWEST_CYCLES``
    whole refreshes are there. Each refresh gives one slope, so that correlation within it does no
    harm; a trend from refresh to refresh is taken off.
    """
    interval = run.hyperparameters.refresh_interval or 1
    values = run.series.get(name)
    if values is None or interval < 2 or run.step_unit != "optimizer" or not run.step.size:
        return None
    start = int(run.step[0] - 1) // interval * interval
    rows = int(run.step[-1]) - start
    if rows > MOST_GAPS * run.step.size + interval:
        return None
    grid = np.full(rows, np.nan)
    grid[run.step.astype(int) - 1 - start] = values
    if rows < interval * FEWEST_CYCLES:
        return None
    cycles = grid[: rows // interval * interval].reshape(-1, interval)
    # What a refresh gains on its neighbours is the trend; learning is no drift.
    means = cycles.mean(axis=1)
    trend = (means[2:] - means[:-2]) / (2 * interval)
    kept = np.isfinite(trend) & np.isfinite(means[1:-1])
    cycles, trend = cycles[1:-1][kept], trend[kept]
    if len(cycles) < FEWEST_CYCLES:
        return None
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
    """Chance that noise alternates from refresh to refresh as the reward does.

    None where it is above ``RARE`` or refreshes are few. From the differences between means of
    neighbouring refreshes and of those two apart, which a trend or slow wander makes the larger
    ones.
    """
    interval = (run.hyperparameters.refresh_interval or 1) if run.step_unit == "optimizer" else 1
    kept = np.isfinite(run.reward)
    step, reward = run.step[kept], run.reward[kept]
    refresh = ((step - 1) // interval).astype(int)
    _, place, count = np.unique(refresh, return_inverse=True, return_counts=True)
    means = np.bincount(place, reward) / count if count.size else np.zeros(0)
    if means.size < FEWEST_REFRESHES:
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
