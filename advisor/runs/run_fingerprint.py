"""What a run can be known again by, however much of its log is there."""

from __future__ import annotations

import hashlib

import numpy as np

from advisor.runs.copies import LEAST_DISTINCT
from advisor.runs.pilot_run import PilotRun

DIGITS = 3
"""Decimals and significant digits of a reward that count: consoles print four."""


def fingerprint(run: PilotRun) -> str:
    """Hash of a run's first rows and its settings, which a longer or shorter log of it shares."""
    known = np.isfinite(run.reward)
    rewards = [_told(value) for value in run.reward[known]]
    first: dict[str, int] = {}
    for row, reward in enumerate(rewards):
        first.setdefault(reward, row)
    if len(first) < LEAST_DISTINCT:
        return ""
    count = list(first.values())[LEAST_DISTINCT - 1] + 1
    settings = run.hyperparameters
    steps = [f"{step:g}" for step in run.step[known][:count]]
    told = (f"{settings.learning_rate:.3g}" if settings.learning_rate else "", settings.group_size)
    return hashlib.sha256(repr((told, steps, rewards[:count])).encode()).hexdigest()


def _told(reward: float) -> str:
    return f"{round(float(reward), DIGITS) + 0.0:.{DIGITS}g}"
