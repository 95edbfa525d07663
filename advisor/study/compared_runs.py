"""Two runs side by side: settings, lengths, levels, verdicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from advisor.runs import LEAST_ROWS, MODES, Card, Level, PilotRun, diagnose, ends
from advisor.runs import difference as standard_errors
from advisor.study.compared_lines import Comparison, Value, section
from advisor.theory import FloatArray

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
            section("Settings", _settings, (one, other)),
            section("Lengths", _lengths, (one, other)),
            section("Levels", _levels, (one, other), (level_note,)),
            section("Diagnosis", _verdicts, (one, other)),
        ),
    )


def _settings(run: PilotRun) -> dict[str, Any]:
    own = run.hyperparameters
    return {
        **{name.replace("_", " "): getattr(run, name) for name in NAMED},
        **own.model_dump(),
        "refresh interval (K)": own.refresh_interval,
    }


def _lengths(run: PilotRun) -> dict[str, Any]:
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


def _levels(run: PilotRun) -> dict[str, Value]:
    found = {}
    for name, values in (("reward", run.reward), ("held-out reward", run.eval_reward)):
        for place, level in zip(("first", "last"), _ends(values), strict=False):
            error = f" +- {level.error:.3f}" if math.isfinite(level.error) else ""
            value = {"mean": level.mean, "error": level.error}
            found[f"{place} {name}"] = Value(value, f"{level.mean:.3f}{error}", _judge_levels)
    return found


def _ends(values: FloatArray) -> tuple[Level, ...]:
    """First and last level; of few rows the first and last value, since shares would overlap."""
    finite = values[np.isfinite(values)]
    if finite.size >= 2 * LEAST_ROWS:
        return ends(finite)
    return tuple(Level(float(value), math.inf) for value in finite[[0, -1]]) if finite.size else ()


def _judge_levels(one: dict[str, float], other: dict[str, float]) -> tuple[bool, str, float | None]:
    if not math.isfinite(one["error"] + other["error"]):
        # Too few rows for an error: what is written differently is shown.
        return f"{one['mean']:.3f}" != f"{other['mean']:.3f}", "too few to judge", None
    apart = standard_errors(Level(**other), Level(**one))
    gap = other["mean"] - one["mean"]
    return abs(apart) >= APART, f"{gap:+.3f}, {apart:+.1f} standard errors", apart


def _verdicts(run: PilotRun) -> dict[str, Any]:
    found = diagnose(run)
    cards = [found.card(mode) for mode in MODES]
    return {
        "verdict": found.verdict,
        "collapse at step": found.collapse_step,
        **{card.title: Value(_said(card), _said(card), _judge_cards) for card in cards},
    }


def _said(card: Card) -> str:
    if card.status == "NOT APPLICABLE":
        return "not applicable"
    return f"{card.status}: {card.headline}"


def _judge_cards(one: str, other: str) -> tuple[bool, str, float | None]:
    """Whether the status differs: headlines carry numbers that always differ a little."""
    return one.partition(":")[0] != other.partition(":")[0], "", None
