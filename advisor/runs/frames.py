"""Rows of a DataFrame as the fields of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def run_fields(
    frame: pd.DataFrame, series: Sequence[str], columns: Mapping[str, str]
) -> dict[str, Any]:
    """Fields of a `PilotRun` that rows decide; ``columns`` are names of ours -> of the frame."""
    named = {theirs: ours for ours, theirs in columns.items()}
    for theirs in named:
        if theirs not in frame.columns:
            _refuse(f"there is no column '{theirs}'", "columns", f"Name one of {_shown(frame)}")
    found = frame.reset_index() if "step" in frame.index.names else frame
    found = found.rename(columns=named)
    if "step" not in found.columns:
        found = found.assign(step=found.index)
    names = [name for name in series if name in found.columns]
    tests = [name for name in ("eval_reward",) if name in found.columns]
    if "reward" not in names and not tests:
        able = f"Name its column: columns={{'reward': ...}}, one of {_shown(frame)}"
        _refuse("there is no column 'reward'", "frame", able)
    try:
        cells = found[["step", *names, *tests]].astype(float).sort_values("step")
    except (TypeError, ValueError) as error:
        _refuse(f"a cell is no number ({error})", "frame", "Convert or leave out its column")
    steps = cells["step"]
    if steps.isna().any():
        _refuse("a row has no step", "frame", "Number the optimizer steps from 1 in 'step'")
    if (twice := steps[steps.duplicated()]).size:
        times = (steps == twice.iloc[0]).sum()
        able = "Average them: frame.groupby('step').mean()"
        _refuse(f"step {twice.iloc[0]:g} is there {times} times", "frame", able)
    rows = cells[cells[names].notna().any(axis=1)]
    tested = cells[cells[tests].notna().all(axis=1)] if tests else cells[:0]
    kept = {name: rows[name].to_numpy() for name in names if rows[name].notna().any()}
    spacing = int(np.median(np.diff(rows["step"]))) if len(rows) > 1 else 1
    return {
        "step": rows["step"].to_numpy(),
        "series": kept,
        "missing": dict.fromkeys([name for name in series if name not in kept], "not logged"),
        "eval_step": tested["step"].to_numpy(),
        "eval_reward": tested["eval_reward"].to_numpy() if tests else np.zeros(0),
        "logging_steps": max(spacing, 1),
        "keys_read": {name: columns.get(name, name) for name in kept},
        "keys_ignored": tuple(
            str(name) for name in found.columns if name not in ("step", *names, *tests)
        ),
    }


def _shown(frame: pd.DataFrame) -> str:
    """Some columns of a frame."""
    names = [str(name) for name in frame.columns[:8]]
    return ", ".join([*names, "..."] if len(frame.columns) > len(names) else names)


def _refuse(problem: str, argument: str, advice: str) -> None:
    raise InputError(problem, argument=argument, advice=advice)
