"""Two runs side by side: settings, lengths, levels, verdicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from advisor.diagnosis import MODES, Card, diagnose
from advisor.diagnosis.levels import LEAST_ROWS, Level, difference, ends
from advisor.run.pilot_run import PilotRun
from advisor.study.compared_lines import ABSENT, Comparison, Line, Section, exact, fields, rounded
from advisor.theory.arrays import FloatArray

APART = 2.0
"""Standard errors from which two levels are called different."""

NAMED = ("model", "parameters", "task", "reward_floor", "reward_ceiling")


def compare_runs(paths: tuple[str, str], one: PilotRun, other: PilotRun) -> Comparison:
    """Compare two runs.

    Parameters
    ----------
    paths : tuple of str
    one, other : PilotRun

    Returns
    -------
    comparison : Comparison
    """
    level_note = (
        "Levels are means of the first and of the last fifth of the rows, with standard errors "
        f"inflated for autocorrelation; they differ from {APART:g} standard errors on."
    )
    return Comparison(
        "runs",
        paths,
        (
            Section("Settings", tuple(_settings(one, other))),
            Section("Lengths", tuple(_lengths(one, other))),
            Section("Levels", tuple(_levels(one, other)), (level_note,)),
            Section("Diagnosis", tuple(_verdicts(one, other))),
        ),
    )


def _settings(one: PilotRun, other: PilotRun) -> list[Line]:
    own, its = one.hyperparameters, other.hyperparameters
    return [
        *(
            exact(name.replace("_", " "), getattr(one, name), getattr(other, name))
            for name in NAMED
        ),
        *fields("", own.model_dump(), its.model_dump()),
        exact("refresh interval (K)", own.refresh_interval, its.refresh_interval),
    ]


def _lengths(one: PilotRun, other: PilotRun) -> list[Line]:
    def of(run: PilotRun) -> dict[str, Any]:
        return {
            "rows": int(run.step.size),
            "first step": float(run.step[0]) if run.step.size else None,
            "last step": float(run.step[-1]) if run.step.size else None,
            "steps per row": run.logging_steps,
            "steps count": run.step_unit,
            "evaluations": int(run.eval_step.size),
            "series": sorted(run.series),
            "format": run.format,
            "trainer": run.framework or None,
        }

    return fields("", of(one), of(other))


def _levels(one: PilotRun, other: PilotRun) -> list[Line]:
    lines = []
    for name, own, its in (
        ("reward", one.reward, other.reward),
        ("held-out reward", one.eval_reward, other.eval_reward),
    ):
        both = _ends(own), _ends(its)
        if both == (None, None):
            continue
        for index, place in enumerate(("first", "last")):
            lines.append(_level(f"{place} {name}", *(pair and pair[index] for pair in both)))
    return lines


def _ends(values: FloatArray) -> tuple[Level, Level] | None:
    """First and last level; of few rows the first and last value, since shares would overlap."""
    finite = values[np.isfinite(values)]
    if finite.size >= 2 * LEAST_ROWS:
        return ends(finite)
    few = [Level(float(value), math.inf) for value in finite[[0, -1]]] if finite.size else []
    return (few[0], few[1]) if few else None


def _level(name: str, one: Level | None, other: Level | None) -> Line:
    if one is None or other is None:
        return Line(name, _json(one), _json(other), (_written(one), _written(other)), True)
    if not math.isfinite(one.error + other.error):
        # Too few rows for an error: what is written differently is shown.
        line = rounded(name, one.mean, other.mean, ".3f")
        return Line(name, _json(one), _json(other), line.shown, line.differs, "too few to judge")
    apart = difference(other, one)
    return Line(
        name,
        _json(one),
        _json(other),
        (_written(one), _written(other)),
        abs(apart) >= APART,
        f"{other.mean - one.mean:+.3f}, {apart:+.1f} standard errors",
        apart,
    )


def _written(level: Level | None) -> str:
    if level is None:
        return ABSENT
    error = f" +- {level.error:.3f}" if math.isfinite(level.error) else ""
    return f"{level.mean:.3f}{error}"


def _json(level: Level | None) -> dict[str, float] | None:
    return None if level is None else {"mean": level.mean, "error": level.error}


def _verdicts(one: PilotRun, other: PilotRun) -> list[Line]:
    own, its = diagnose(one), diagnose(other)
    lines = [
        exact("verdict", own.verdict, its.verdict),
        exact("collapse at step", own.collapse_step, its.collapse_step),
    ]
    for mode in MODES:
        mine, theirs = own.card(mode), its.card(mode)
        # Headlines carry numbers that always differ a little: the verdict counts.
        shown = _said(mine), _said(theirs)
        lines.append(Line(mine.title, *shown, shown, differs=mine.status != theirs.status))
    return lines


def _said(card: Card) -> str:
    if card.status == "NOT APPLICABLE":
        return "not applicable"
    return f"{card.status}: {card.headline}"
