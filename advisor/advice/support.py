"""What was piloted of each setting, and what of a configuration lies outside of it."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.model import Posterior
from advisor.runs import Settings

KNOBS = {
    "learning_rate": "learning rate",
    "group_size": "group size",
    "minibatches_per_refresh": "mini-batches per refresh",
    "epochs_per_refresh": "epochs per refresh",
    "prompts_per_step": "prompts per step",
    "lag": "lag",
    "parameters": "model size",
}
"""What a pilot tells the effect of, in words."""

SAME = 1.001
"""Factor within which two settings are one: rates are rounded when they are written."""

Ranges = Mapping[str, tuple[float, float]]
"""Setting -> least and most that any pilot ran, whatever became of it."""


def piloted(posterior: Posterior) -> dict[str, tuple[float, float]]:
    """Range of every setting among the pilots of all models and tasks, since all inform a curve."""
    runs = posterior.meta.runs
    found = {}
    for name in KNOBS:
        values = [
            float(run.parameters if name == "parameters" else getattr(run.settings, name))
            for run in runs
        ]
        found[name] = (min(values), max(values))
    return found


def outside(settings: Mapping[str, float], ranges: Ranges) -> list[str]:
    """Names of the settings that lie beyond what was piloted, in the order of ``KNOBS``."""
    return [
        name
        for name in KNOBS
        if name in settings
        and name in ranges
        and not ranges[name][0] / SAME <= settings[name] <= ranges[name][1] * SAME
    ]


def beyond_pilots(settings: Settings, parameters: float, ranges: Ranges) -> tuple[str, ...]:
    """What lies outside, each with what was piloted: ``lag 4 (piloted: 0)``."""
    chosen = {**settings.model_dump(include=set(KNOBS)), "parameters": parameters}
    return tuple(
        f"{KNOBS[name]} {chosen[name]:.3g} (piloted: {range_text(ranges[name])})"
        for name in outside(chosen, ranges)
    )


def range_text(ends: tuple[float, float]) -> str:
    """Least and most of a setting: ``1e-05``, or ``3e-05 to 0.001``."""
    low, high = ends
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
