"""Rows on the axis of optimizer steps, from a counter that may count something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.table import Table
from advisor.runs.pilot_run import LEAST_REWARDS, StepUnit
from advisor.runs.trainers import KeyTable, plain, spellings
from advisor.runs.trainers.key_table import UNSURE_STEPS
from advisor.theory import FloatArray


@dataclass(frozen=True)
class Placed:
    """Rows on the axis of optimizer steps."""

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
    rates: FloatArray,
) -> Placed:
    """Place rows on the axis of steps, in the unit of the log's counter."""
    is_refresh = unit == "refresh"
    if key is None:
        given = None if is_refresh else known.get("logging_steps")
        window = int(given or logging_steps or 1)
        why = ""
        if window == 1 and not is_refresh and given is None and logging_steps is None:
            window = window_of_rates(rates) or 1
            why = "; the learning rate falls by that many steps a row" if window > 1 else ""
        by = "" if window == 1 else f" x {window}"
        return Placed(
            list(range(len(table))),
            np.arange(1.0, len(table) + 1) * window,
            unit,
            window,
            0,
            None if is_refresh else logging_steps,
            window,
            (f"step = row number{by} assumed (no step is logged{why})",),
            (),
        )
    assumptions: list[str] = []
    count = read_counts(table, key, path)
    window, remark = row_window(np.unique(count), logging_steps)
    kept, warnings = keep_increasing(count, table, path, key)
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


WINDOWS = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 200, 250, 500)
"""Steps per row that people set."""

SURE = 20.0
"""How many times worse the next best window must explain the first learning rate."""

LEAST_MISFIT = 1e-6
"""Share of the peak to which logged learning rates are exact."""


def window_of_rates(rates: FloatArray) -> int | None:
    """Steps per row of a run without step, from learning rates that fall to zero by even steps.

    A row shows the rate of the last step that it averages. From a peak :math:`p` over :math:`L`
    steps, the first of rows of :math:`w` steps shows :math:`p (1 - (w - 1) / L)` and each further
    one :math:`p w / L` less: only the right :math:`w` leads back to a peak of one or two digits.
    """
    if rates.size < limits.LEAST_SCHEDULE_ROWS or not np.isfinite(rates).all() or rates[0] <= 0:
        return None
    falls = -np.diff(rates)
    fall = float(np.median(falls))
    if fall <= 0 or np.abs(falls[: max(3, falls.size // 2)] - fall).max() > 1e-2 * fall:
        return None
    peaks = rates[0] + fall * (1 - 1 / np.array(WINDOWS, dtype=float))
    misfit = np.array([abs(peak / float(f"{peak:.1e}") - 1) for peak in peaks])
    order = np.argsort(misfit)
    best, next_best = misfit[order[:2]]
    if best > 50 * LEAST_MISFIT or next_best < SURE * max(best, LEAST_MISFIT):
        return None
    return WINDOWS[int(order[0])]


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
    """Counter of each row."""
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


def keep_increasing(
    step: FloatArray, table: Table, path: Path, key: str
) -> tuple[list[int], list[str]]:
    """Which rows to keep so that the step increases strictly.

    A repeated step is a resumed run: the later row replaces the earlier one, and what the first
    attempt logged beyond the resumed checkpoint is dropped with it.
    """
    if step.size > 2 and np.all(np.diff(step) < 0):
        return list(range(step.size))[::-1], ["rows stood in descending order and were reversed"]
    repeated = int(np.sum(np.diff(step) == 0))
    if repeated > max(2, step.size // 4) or 2 * repeated >= max(2, step.size):
        raise InputError(
            f"{repeated} of {step.size} rows repeat the step of the row before",
            path=path,
            row=int(table.numbers[int(np.argmax(np.diff(step) == 0)) + 1]),
            key=key,
            advice='Choose one kind of row in a column map: filter = "type=..."',
        )
    if np.all(np.diff(step) > 0):
        return list(range(step.size)), []
    kept: list[int] = []
    warnings: list[str] = []
    for index, value in enumerate(step):
        dropped = []
        while kept and step[kept[-1]] >= value:
            dropped.append(kept.pop())
        if dropped:
            first, last = step[dropped[-1]], step[dropped[0]]
            which = f"step {first:g} was" if first == last else f"steps {first:g} to {last:g} were"
            warnings.append(f"{which} logged twice (a resumed run); the later rows were kept")
        kept.append(index)
    if len(kept) < LEAST_REWARDS <= step.size:
        raise InputError(
            f"{step.size - len(kept)} of {step.size} rows stand at steps that are logged again "
            "further down",
            path=path,
            row=int(table.numbers[int(np.argmax(np.diff(step) < 0)) + 1]),
            key=key,
            advice="Split the file where another run starts, the first time here",
        )
    return kept, _few(warnings)


def _few(warnings: list[str]) -> list[str]:
    more = len(warnings) - 3
    return warnings if more <= 0 else [*warnings[:3], f"... and {more} times more"]


def row_window(step: FloatArray, stated: int | None) -> tuple[int, str | None]:
    """Optimizer steps that one row averages, and a remark where that is not what was stated."""
    if step.size < 2:
        return stated or 1, None
    gap = int(np.median(np.diff(step)[1 if step.size > 2 else 0 :]))
    if stated is not None:
        if step.size > 2 and 0 < gap < stated:
            # transformers keeps the default of 500 in the file of a run that logs by epoch
            return gap, f"logging_steps = {stated} in the log, but rows stand {gap} steps apart"
        return stated, None
    if gap > 1 and step[0] > 0 and step[1] % gap == 0:
        return gap, f"logging_steps = {gap} assumed (rows stand at multiples of {gap})"
    return 1, None
