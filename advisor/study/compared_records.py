"""Two studies of a store side by side, by what the store holds of them."""

from __future__ import annotations

from typing import Any

from advisor.study.compared_lines import Comparison, Section, difference, section
from advisor.study.record import SHORT, StudyRecord

ASKED = ("task", "model", "parameters", "steps", "preset")
MADE_BY = ("created", "package", "data", "seed")


def compare_records(one: StudyRecord, other: StudyRecord) -> Comparison:
    """Compare what was asked, what was advised, and the pilots of both.

    Parameters
    ----------
    one, other : StudyRecord

    Returns
    -------
    comparison : Comparison
        Posteriors are compared from folders (`advisor.compare`): a store holds no draws.
    """
    sides = one, other
    names = (f"{one.name} ({one.id[:SHORT]})", f"{other.name} ({other.id[:SHORT]})")
    advised = [key for key in one.row if key not in (*ASKED, *MADE_BY, "name")]
    return Comparison(
        "studies",
        names,
        (
            Section("Pilots", difference(_pilots(one), _pilots(other))),
            section("Asked", lambda side: _some(side, ASKED), sides),
            section("Advice", lambda side: _some(side, advised), sides),
            section("Provenance", lambda side: _some(side, MADE_BY), sides),
        ),
    )


def _some(record: StudyRecord, keys: Any) -> dict[str, Any]:
    return {key.replace("_", " "): record.row[key] for key in keys}


def _pilots(record: StudyRecord) -> dict[str, Any]:
    """A line for every pilot."""
    told: dict[str, Any] = {"pilots": len(record.pilots)}
    for run in record.pilots:
        settings = run.settings
        onset = run.collapse_onset
        fell = "" if onset is None else f", collapsed at {onset:g}"
        told[run.id] = (
            f"learning rate {settings.learning_rate:.3g}, group size {settings.group_size}, "
            f"K {settings.refresh_interval}, {run.steps:g} steps: {run.first_reward:.3f} to "
            f"{run.last_reward:.3f}{fell}"
        )
    return told
