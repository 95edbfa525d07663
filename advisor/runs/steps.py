"""The step counter of a log: repeated, reset, zero-based, absent, or counting rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.columns import UNSURE_STEP_KEYS, Columns
from advisor.runs.files import Row, to_number
from advisor.runs.pilot_run import FloatArray


def known_interval(known: Mapping[str, Any], path: Path) -> int:
    """K, optimizer steps per batch of rollouts, as flags or sidecar give it.

    Raises
    ------
    InputError
        One of its two factors is not given.
    """
    lacking = [
        name for name in ("minibatches_per_refresh", "epochs_per_refresh") if name not in known
    ]
    if lacking:
        raise InputError(
            "the step counts batches of rollouts, and how many optimizer steps each takes is "
            "not said",
            path=path,
            key=", ".join(lacking),
            advice="Add minibatches_per_refresh and epochs_per_refresh to pilots.toml",
        )
    return int(known["minibatches_per_refresh"]) * int(known["epochs_per_refresh"])


def step_unit(columns: Columns, key: str | None, known: Mapping[str, Any], path: Path) -> str:
    """Unit of the step: as mapped, else optimizer steps unless the key's name leaves doubt."""
    if columns.step_unit is not None:
        return columns.step_unit
    one_each = {"minibatches_per_refresh": 1, "epochs_per_refresh": 1}
    if all(known.get(name) == value for name, value in one_each.items()):
        return "optimizer"
    if key is not None and key.lower() in UNSURE_STEP_KEYS:
        raise InputError(
            "this counter may count optimizer steps or batches of rollouts",
            path=path,
            key=key,
            advice=(
                f"Say which in a column map: step = \"{key}\", step_unit = \"optimizer\" "
                "or \"refresh\""
            ),
        )
    return "optimizer"


def read_steps(rows: Sequence[Row], key: str, path: Path) -> FloatArray:
    """Step of each row.

    Raises
    ------
    InputError
        A step is absent, no number, not whole or negative.
    """
    steps = []
    for row in rows:
        try:
            value = to_number(row.cells.get(key))
        except ValueError:
            value = float("nan")
        if value is None or not np.isfinite(value) or value < 0 or value != int(value):
            raise InputError(
                f"the step of this row is {row.cells.get(key)!r}, not a whole number",
                path=path,
                row=row.number,
                key=key,
                advice="Correct the row, or name another step key in a column map",
            )
        steps.append(value)
    return np.array(steps)


def settle(
    step: FloatArray, rows: Sequence[Row], path: Path, key: str, window: int
) -> tuple[list[int], list[str]]:
    """Which rows to keep so that the step increases strictly.

    A repeated step is a resumed run: the later row replaces the earlier one, and what the first
    attempt logged beyond the resumed checkpoint is dropped with it. A step that starts anew is
    another run.

    Parameters
    ----------
    step : ndarray of shape (rows,)
    rows : sequence of Row
        For their place in the file.
    path, key : Path, str
        For messages.
    window : int
        Optimizer steps between rows: a restart begins at or below it.

    Returns
    -------
    kept : list of int
        Indices into ``step``.
    warnings : list of str

    Raises
    ------
    InputError
        The step starts anew, or many steps have several rows.
    """
    if step.size > 2 and np.all(np.diff(step) < 0):
        return list(range(step.size))[::-1], ["rows stood in descending order and were reversed"]
    repeated = int(np.sum(np.diff(step) == 0))
    if repeated > max(2, step.size // 4):
        raise InputError(
            f"{repeated} of {step.size} rows repeat the step of the row before",
            path=path,
            key=key,
            advice="Choose one kind of row with a filter in a column map: filter = \"type=...\"",
        )
    kept: list[int] = []
    warnings: list[str] = []
    for index, value in enumerate(step):
        reached = step[kept[-1]] if kept else -1.0
        if value < reached / 2 and value <= max(window, step[0]):
            raise InputError(
                f"the step starts anew: {value:g} after {reached:g}, so two runs share this file",
                path=path,
                row=rows[index].number,
                key=key,
                advice="Split the file at this row",
            )
        dropped = []
        while kept and step[kept[-1]] >= value:
            dropped.append(kept.pop())
        if dropped:
            first, last = step[dropped[-1]], step[dropped[0]]
            which = f"step {first:g} was" if first == last else f"steps {first:g} to {last:g} were"
            warnings.append(f"{which} logged twice (a resumed run); the later row was kept")
        kept.append(index)
    return kept, warnings


def row_window(step: FloatArray, stated: int | None) -> tuple[int, str | None]:
    """Optimizer steps that one row averages, and an assumption or warning about it.

    Rows at 5, 10, 15 average windows of five steps; rows at 1, 6, 11 are single steps.
    """
    if step.size < 2:
        return stated or 1, None
    gap = int(np.min(np.diff(step)))
    if stated is not None:
        if gap < stated and stated > step[0]:
            # transformers keeps the default of 500 in the file when it logs by epoch
            return gap, f"logging_steps = {stated} in the log, but rows are {gap} steps apart"
        return stated, None
    if gap > 1 and step[0] == gap:
        return gap, f"logging_steps = {gap} assumed (rows stand at {gap}, {2 * gap}, ...)"
    return 1, None
