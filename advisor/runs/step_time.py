"""How long an optimizer step takes, by the log."""

from __future__ import annotations

import numpy as np

from advisor.runs.pilot_run import PilotRun


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
