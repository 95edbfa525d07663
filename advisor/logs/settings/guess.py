"""Settings that nobody stated and the metrics give away, as guesses that are called so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from advisor.logfiles import limits
from advisor.logs.rows.raw_run import RawRun
from advisor.logs.settings import recovered
from advisor.logs.settings.recovered import (
    Guess,
    completions_per_row,
    groups_per_row,
    kl_coefficient_from_loss,
)

CLOSE = 0.05
"""Share by which a recovered KL coefficient may differ from the stated one."""


@dataclass
class Guessed:
    """Guesses for what is unknown, and what the metrics say against what is known."""

    values: dict[str, tuple[float, str]] = field(default_factory=dict)
    contradictions: list[str] = field(default_factory=list)


def guess(raw: RawRun, known: Mapping[str, Any]) -> Guessed:
    """Recover settings from the metrics of a run.

    Parameters
    ----------
    raw : RawRun
    known : mapping
        Settings that were stated; they stand, and are compared.

    Returns
    -------
    guessed : Guessed
    """
    guessed = Guessed()
    if raw.is_eval_only:
        return guessed
    series = raw.series
    first = slice(limits.MOST_ROWS_FINGERPRINTED)
    if "loss" in series and "kl" in series:
        found = kl_coefficient_from_loss(series["loss"][first], series["kl"][first])
        _settle(guessed, known, "kl_coefficient", found, CLOSE)
    if raw.step_unit != "optimizer":
        return guessed  # how many optimizer steps a row covers is not known
    # Every pass over the same rollouts shows their rewards again.
    window, repeats = divmod(
        int(known.get("logging_steps") or raw.logging_steps or raw.window),
        int(known.get("epochs_per_refresh") or 1),
    )
    if repeats:
        return guessed
    # A sum of several rewards moves in steps of its own.
    completions = (
        None if len(raw.parts) > 1 else completions_per_row(series["reward"][first], window)
    )
    groups = (
        groups_per_row(series["silent_group_share"]) if "silent_group_share" in series else None
    )
    group_size = known.get("group_size")
    found = recovered.group_size(completions, groups)
    if found is not None and group_size is None:
        guessed.values["group_size"] = (int(found.value), found.why)
        group_size = int(found.value)
    prompts = _prompts(completions, groups, group_size, window)
    _settle(guessed, known, "prompts_per_step", prompts, 0.0)
    return guessed


def _prompts(
    completions: Guess | None, groups: Guess | None, group_size: float | None, window: int
) -> Guess | None:
    """Prompts per optimizer step, from the groups in a row or from its completions."""
    per = "" if window == 1 else f" / {window} steps a row"
    if groups is not None and not groups.value % window:
        return Guess(groups.value / window, f"{groups.value:g} groups in a row{per}: {groups.why}")
    if completions is None or not group_size or completions.value % (group_size * window):
        return None
    return Guess(
        completions.value / group_size / window,
        f"{completions.value:g} completions in a row / group size {group_size:g}{per}: "
        f"{completions.why}",
    )


def _settle(
    guessed: Guessed, known: Mapping[str, Any], key: str, found: Guess | None, tolerance: float
) -> None:
    if found is None:
        return
    stated = known.get(key)
    if stated is None:
        guessed.values[key] = (found.value, found.why)
    elif abs(found.value - stated) > tolerance * max(abs(stated), abs(found.value)):
        guessed.contradictions.append(
            f"{key} = {stated:g} is used; the metrics look like {found.value:g} ({found.why})"
        )
