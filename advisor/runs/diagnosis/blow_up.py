"""Series that blow up: from their calmest stretch to many times that level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.collapse import trailing_mean
from advisor.runs.diagnosis.fall import SURE
from advisor.runs.diagnosis.levels import ROUNDING, as_normal, lag_one, level, series_of, widening
from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

TIMES = {
    "entropy": 3.0,
    "gradient_norm": 5.0,
    "mismatch_kl": 10.0,
    "mismatch_difference": 10.0,
    "policy_kl": 10.0,
    "clip_share": 5.0,
}
"""Growth over the calmest stretch that counts as a blow-up."""

LEAST = {
    "entropy": 0.5,
    "mismatch_kl": 0.01,
    "mismatch_difference": 0.05,
    "policy_kl": 0.05,
    "clip_share": 0.1,
}
"""Level below which growth is harmless, whatever its factor (nats; share). The mean absolute
difference of log-probabilities goes from 0.006 to 0.27 in a public run that collapses."""

SHARE = 0.15
"""Share of the run over which a level is taken."""


class Growth(NamedTuple):
    """A series that rose from its calmest stretch."""

    name: str
    calm: float
    high: float
    since: float

    def __str__(self) -> str:
        """Name, both levels, and the step."""
        name = self.name.replace("_", " ")
        return f"{name} {self.calm:.3g} -> {self.high:.3g} from step {self.since:.0f}"


def find_growth(run: PilotRun, name: str) -> Growth | None:
    """Growth of a series from its calmest stretch to the highest one after it, beyond noise."""
    found = series_of(run, name)
    if found is None:
        return None
    step, values = found
    width = max(4, round(SHARE * values.size))
    if values.size < 2 * width:
        return None
    means = trailing_mean(values, width)
    calm_at = int(np.argmin(np.where(means > 0, means, np.inf)[: -width or None]))
    # A policy that starts wild calms down first: what counts is what comes after the calm.
    high_at = calm_at + int(np.argmax(means[calm_at:]))
    quiet, wild = values[calm_at : calm_at + width], values[high_at : high_at + width]
    calm, high = level(quiet), level(wild)
    if not calm.mean > 0 or high.mean < LEAST.get(name, 0.0):
        return None
    started = level(values[:width]).mean
    is_grown = high.mean >= TIMES[name] * calm.mean and high.mean >= 1.5 * started
    if not is_grown or _certainty(quiet, wild) < SURE:
        return None
    limit = 0.5 * (calm.mean + high.mean)
    above = np.flatnonzero(values[calm_at : high_at + width] > limit)
    return Growth(name, calm.mean, high.mean, float(step[calm_at + above[0]]))


def _certainty(quiet: FloatArray, wild: FloatArray) -> float:
    """Growth from one stretch to another in standard errors."""
    rest = np.concatenate([quiet - quiet.mean(), wild - wild.mean()])
    found = lag_one(rest)
    widened = widening(found + (2 + 4 * max(found, 0.0)) / rest.size)
    error = float(np.hypot(quiet.std(ddof=1), wild.std(ddof=1))) / np.sqrt(quiet.size) * widened
    error = max(error, ROUNDING * float(np.abs(wild).max()))
    freedom = max(1.0, (rest.size - 2) / widened**2)
    return as_normal(float(wild.mean() - quiet.mean()) / error, freedom)
