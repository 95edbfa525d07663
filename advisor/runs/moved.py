"""Whether the reward of a run moved by more than its noise, and how long its steps take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from advisor.runs.pilot_run import PilotRun

FLAT_Z = 2.0
"""Standard errors between the ends of a run below which it has not moved."""

NONE_MOVED = "no pilot's reward moved by more than its noise"
"""Note of a fit that learned nothing but how slow its settings are."""


def has_moved(run: PilotRun) -> bool:
    """Whether the last third of a run's train rewards differs from the first."""
    reward = run.reward[np.isfinite(run.reward)]
    if reward.size < 2:
        return False
    third = max(1, reward.size // 3)
    noise = np.std(np.diff(reward)) / np.sqrt(2) if reward.size > 2 else 0.0
    error = noise * np.sqrt(2 / third)
    gap = abs(reward[-third:].mean() - reward[:third].mean())
    return bool(gap > max(FLAT_Z * error, 1e-9))


def none_moved(
    runs: Iterable[PilotRun], collapse_steps: Mapping[str, float | None] | None = None
) -> bool:
    """Whether neither a gain nor a collapse can be learned from any run."""
    collapsed = {name for name, step in (collapse_steps or {}).items() if step is not None}
    return not any(run.id in collapsed or has_moved(run) for run in runs)


def seconds_per_step(run: PilotRun) -> float | None:
    """Median wall-clock seconds of an optimizer step, or None where no times were logged."""
    times = run.series.get("step_time_seconds")
    if times is None:
        return None
    known = np.isfinite(times) & (times > 0)
    if not known.any():
        return None
    spacing = float(np.median(np.diff(run.step))) if run.step.size > 1 else 1.0
    steps_per_time = max(1.0, spacing / run.logging_steps)
    return float(np.median(times[known])) / steps_per_time
