"""Whether a run goes down: what the closed form, which rises or stays, cannot follow."""

from __future__ import annotations

import numpy as np

from advisor.runs import LEAST_REWARDS, PilotRun
from advisor.theory import FloatArray

FALL_Z = 3.0
"""Standard errors by which the last third must lie below the first."""

FALL_SHARE = 0.1
"""Share of the range seen by which it must: a drift of less is no fall."""

MEDIAN_OF_SQUARED_DIFFERENCES = 0.91
"""That of two normal values of variance one: twice the median of chi-squared with one freedom."""


def is_falling(run: PilotRun) -> bool:
    """Whether the last third of what is seen of a run lies below the first by more than noise."""
    reward = run.reward[np.isfinite(run.reward)]
    if reward.size < LEAST_REWARDS:
        return False
    third = max(1, reward.size // 3)
    lost = float(reward[:third].mean() - reward[-third:].mean())
    error = row_noise(reward) * float(np.sqrt(2 / third))
    return lost > max(FALL_Z * error, FALL_SHARE * float(np.ptp(reward)), 0.0)


def row_noise(reward: FloatArray) -> float:
    """Noise of one row, from finite neighbours: by their median, so that a jump is no noise."""
    squares = np.median(np.diff(reward) ** 2)
    return float(np.sqrt(squares / MEDIAN_OF_SQUARED_DIFFERENCES))
