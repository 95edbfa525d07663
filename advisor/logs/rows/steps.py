"""Rows on the axis of optimizer steps, from a counter that may count something else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.columns import Columns
from advisor.logfiles.table import Table
from advisor.logs.rows.counter import row_window, settle
from advisor.logs.rows.raw_run import RawRun
from advisor.run.pilot_run import StepUnit
from advisor.theory.arrays import FloatArray
from advisor.trainers import KeyTable, plain, spellings
from advisor.trainers.common_keys import UNSURE_STEPS


@dataclass(frozen=True)
class Placed:
    """Rows on the axis of optimizer steps.

    Attributes
    ----------
    kept : list of int
        Indices of the rows that stay, in the order of their steps.
    step : ndarray of shape (kept,)
        One-based optimizer step of each.
    unit : {"optimizer", "refresh", "unknown"}
        What ``step`` counts.
    stretch : int
        Steps per row where rows were numbered, else 1.
    shift : int
        1 where the counter starts at 0.
    logging_steps : int or None
        As the log states it, unless its rows belie it or its counter counts refreshes.
    window : int
        Steps that a row seems to average.
    assumptions, warnings : tuple of str
    """

    kept: list[int]
    step: FloatArray
    unit: StepUnit
    stretch: int
    shift: int
    logging_steps: int | None
    window: int
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    def at(self, count: npt.ArrayLike) -> FloatArray:
        """Steps of counts of the log's own counter."""
        return (np.asarray(count, dtype=float) + self.shift) * self.stretch


def place_rows(
    table: Table,
    key: str | None,
    unit: StepUnit,
    known: Mapping[str, Any],
    path: Path,
    logging_steps: int | None,
) -> Placed:
    """Place rows on the axis of steps, in the unit of the log's counter.

    Parameters
    ----------
    table : Table
        Rows with reward, of one attempt.
    key : str or None
        Key of the step; without one rows are counted.
    unit : {"optimizer", "refresh", "unknown"}
        What the counter counts.
    known : mapping
        Settings, of which ``logging_steps`` is looked at where no step is logged.
    path : Path
        For messages.
    logging_steps : int or None
        As the log states it.

    Returns
    -------
    placed : Placed

    Raises
    ------
    InputError
        A step is no number, or many rows share a step.
    """
    is_refresh = unit == "refresh"
    if key is None:
        given = None if is_refresh else known.get("logging_steps")
        window = int(given or logging_steps or 1)
        by = "" if window == 1 else f" x {window}"
        return Placed(
            list(range(len(table))),
            np.arange(1.0, len(table) + 1) * window,
            unit,
            window,
            0,
            None if is_refresh else logging_steps,
            window,
            (f"step = row number{by} assumed (no step is logged)",),
            (),
        )
    assumptions: list[str] = []
    count = read_counts(table, key, path)
    window, remark = row_window(np.unique(count), logging_steps)
    kept, warnings = settle(count, table, path, key)
    if is_refresh and logging_steps is None:
        window, remark = 1, None  # rows some refreshes apart still average one each
    if remark is not None and logging_steps is None:
        assumptions.append(remark)
    elif remark is not None:
        logging_steps = None
        warnings.append(remark)
    shift = int(count[kept[0]] == 0)
    if shift:
        assumptions.append("steps were counted from 0 and were moved up by one")
    return Placed(
        kept,
        count[kept] + shift,
        unit,
        1,
        shift,
        None if is_refresh else logging_steps,
        window,
        tuple(assumptions),
        tuple(warnings),
    )


def on_optimizer_steps(run: RawRun, interval: int) -> RawRun:
    """A run whose steps count refreshes, on the axis of optimizer steps.

    Parameters
    ----------
    run : RawRun
    interval : int
        K, optimizer steps per batch of rollouts.

    Returns
    -------
    run : RawRun

    Notes
    -----
    Row n of a log that counts refreshes stands at optimizer step n K, the last of that refresh,
    and averages K steps: its reward is the mean over all mini-batches of the refresh. Steps
    (n - 1) K + 1 to n K all use the rollouts of the policy at (n - 1) K (`dynamics.policy_steps`).
    """
    planned = run.planned_steps
    return dataclasses.replace(
        run,
        step=run.step * interval,
        eval_step=run.eval_step * interval,
        step_unit="optimizer",
        window=run.window * interval,
        rate_step=run.rate_step * interval,
        planned_steps=None if planned is None else planned * interval,
    )


def unit_of(
    key: str | None, framework: KeyTable, columns: Columns, known: Mapping[str, Any]
) -> StepUnit:
    """What a counter counts: as mapped by the user, else as its framework declares."""
    if columns.step_unit is not None:
        return "refresh" if columns.step_unit == "refresh" else "optimizer"
    if key is None:
        return "refresh" if framework.refreshes and not framework.optimizer_steps else "optimizer"
    names = spellings(plain(key))
    if any(name in framework.optimizer_steps for name in names):
        return "optimizer"
    if any(name in framework.refreshes for name in names):
        return "refresh"
    is_one = known.get("minibatches_per_refresh") == known.get("epochs_per_refresh") == 1
    if not is_one and any(name in UNSURE_STEPS for name in names):
        return "unknown"
    return "optimizer"


def read_counts(table: Table, key: str, path: Path) -> FloatArray:
    """Counter of each row.

    Raises
    ------
    InputError
        One is absent or no whole number.
    """
    count = table.column(key)
    # The bounds also refuse NaN, which compares false.
    with np.errstate(invalid="ignore"):
        bad = ~((count >= 0) & (count <= limits.MOST_STEPS) & (count == np.round(count)))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"the step of this row is {_shown(table.cell(row, key))}, not a whole number below 1e8",
            path=path,
            row=int(table.numbers[row]),
            key=key,
            advice="Correct the row, or name another step key in a column map",
        )
    return count


def _shown(cell: float | str | None) -> str:
    return f"{cell:g}" if isinstance(cell, float) else repr(cell)[:40]
