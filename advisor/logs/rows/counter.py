"""The step counter of one run: steps repeated, rewritten, or many apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from advisor.errors import InputError
from advisor.logfiles.table import Table
from advisor.run.pilot_run import LEAST_REWARDS
from advisor.theory.arrays import FloatArray


def settle(step: FloatArray, table: Table, path: Path, key: str) -> tuple[list[int], list[str]]:
    """Which rows to keep so that the step increases strictly.

    A repeated step is a resumed run: the later row replaces the earlier one, and what the first
    attempt logged beyond the resumed checkpoint is dropped with it.

    Parameters
    ----------
    step : ndarray of shape (rows,)
    table : Table
        The rows, for their place in the file.
    path, key : Path, str
        For messages.

    Returns
    -------
    kept : list of int
        Indices into ``step``.
    warnings : list of str

    Raises
    ------
    InputError
        Many steps have several rows, or hardly a row would stay.
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
    """Optimizer steps that one row averages, and a remark where that is not what was stated.

    Rows at 5, 10, 15 (also after one at 1) average windows of five; rows at 1, 6, 11 or 0, 5, 10
    are single steps.
    """
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
