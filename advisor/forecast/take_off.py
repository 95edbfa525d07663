"""The upper tail of a run's end: rises that neither its own curve nor runs like it foretell."""

from __future__ import annotations

import numpy as np

from advisor.forecast.analogues import FEATURES, LOG_SHARE, LOG_STEPS, Description
from advisor.model import TakeOff, sigmoid
from advisor.theory import FloatArray

RISE = 0.25  # Share of the reward's range that counts as a rise

TERMS = tuple(name for name in TakeOff.model_fields if name not in ("trust", "source"))
"""Terms of its log-odds, in their order."""


def take_off_terms(seen: Description, bounds: tuple[float, float]) -> FloatArray:
    """Values of TERMS for a run as it stands, between a floor and a ceiling; shape (9,)."""
    floor, span = bounds[0], bounds[1] - bounds[0]
    level = float(np.clip((seen.level - floor) / span, 0.005, 0.995))
    gained, error = seen.gained / span, seen.error / span
    own = dict(zip(FEATURES, seen.features, strict=True))
    return np.array(
        [
            1.0,
            seen.features[LOG_SHARE] - np.log(0.25),
            np.log(1 - level),
            np.log(level),
            np.clip(gained / (error + 0.01), -4, 8) / 4,
            gained,
            2 * own["half_log_rows"] - 3,
            own["log_rate"],
            seen.features[LOG_STEPS] - 5,
        ]
    )


def with_take_off(
    ends: FloatArray, seen: Description, bounds: tuple[float, float], rule: TakeOff
) -> FloatArray:
    """Ordered draws of an end, of which as many rise as runs like this one did."""
    odds = np.array([getattr(rule, name) for name in TERMS]) @ take_off_terms(seen, bounds)
    risen = seen.level + RISE * (bounds[1] - bounds[0])
    if risen >= bounds[1]:
        return ends
    said = float(np.mean(ends > risen))
    more = rule.trust * max(float(sigmoid(odds)) - said, 0.0) / max(1 - said, 1e-9)
    count = round(more * ends.size)
    kept = np.linspace(0, ends.size - 1, ends.size - count).round().astype(int)
    tail = risen + (bounds[1] - risen) * (np.arange(count) + 0.5) / max(count, 1)
    return np.sort(np.concatenate([ends[kept], tail]))
