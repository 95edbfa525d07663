"""Runs that were dead when their log began, beside siblings that began alive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.runs.diagnosis.collapse import trailing_mean, window_rows
from advisor.runs.pilot_run import PilotRun

LEAST_SIBLINGS = 2
"""Siblings of one task and model from which the level of a beginning is known."""

ALIVE_SHARE = 0.25
"""Share of the level at which its siblings began that a live run passes at some time."""


def dead_from_the_start(runs: Sequence[PilotRun], floor: float) -> set[str]:
    """Ids of runs whose every window stays far below where their siblings began.

    A rate that kills within the first updates leaves a log without a rise and without a fall: alone
    it looks like a task that is too hard. One without any reward in its first rows, which precede
    the first updates, began from another policy and was not killed.

    Parameters
    ----------
    runs : sequence of PilotRun
        With train rewards; siblings share task and model.
    floor : float
        Lowest possible reward, in reward units.
    """
    first, best, highest = {}, {}, {}
    for run in runs:
        reward = run.reward[np.isfinite(run.reward)] - floor
        window = window_rows(reward.size)
        if reward.size >= window:
            mean = trailing_mean(reward, window)
            first[run.id], best[run.id] = float(mean[0]), float(mean.max())
            highest[run.id] = float(reward[:window].max())
    dead = set()
    for run in runs:
        others = [
            first[other.id]
            for other in runs
            if other.id in first
            and other.id != run.id
            and (other.task, other.model) == (run.task, run.model)
        ]
        # One sibling more may have died as early: the median of the rest is what counts.
        if run.id in best and len(others) >= LEAST_SIBLINGS:
            alive = float(np.median(others))
            if alive > 0 and best[run.id] < ALIVE_SHARE * alive <= highest[run.id]:
                dead.add(run.id)
    return dead
