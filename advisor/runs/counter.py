"""The step counter of a log: steps repeated, counted anew, or many apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from advisor.errors import InputError
from advisor.runs.files import Row
from advisor.runs.pilot_run import LEAST_REWARDS, FloatArray


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
        Steps between rows: a restart begins at or below it.

    Returns
    -------
    kept : list of int
        Indices into ``step``.
    warnings : list of str

    Raises
    ------
    InputError
        The step starts anew, many steps have several rows, or hardly a row would stay.
    """
    if step.size > 2 and np.all(np.diff(step) < 0):
        return list(range(step.size))[::-1], ["rows stood in descending order and were reversed"]
    repeated = int(np.sum(np.diff(step) == 0))
    if repeated > max(2, step.size // 4) or 2 * repeated >= max(2, step.size):
        raise InputError(
            f"{repeated} of {step.size} rows repeat the step of the row before",
            path=path,
            row=rows[int(np.argmax(np.diff(step) == 0)) + 1].number,
            key=key,
            advice='Choose one kind of row in a column map: filter = "type=..."',
        )
    kept: list[int] = []
    warnings: list[str] = []
    for index, value in enumerate(step):
        reached = step[kept[-1]] if kept else -1.0
        if value < reached / 2 and value <= max(window, step[0]):
            raise InputError(
                f"the step starts anew, {value:g} after {reached:g}: two runs share this file",
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
            warnings.append(f"{which} logged twice (a resumed run); the later rows were kept")
        kept.append(index)
    if len(kept) < LEAST_REWARDS <= step.size:
        raise InputError(
            f"{step.size - len(kept)} of {step.size} rows stand at steps that are logged again "
            "further down",
            path=path,
            row=rows[int(np.argmax(np.diff(step) < 0)) + 1].number,
            key=key,
            advice="Split the file where another run starts, the first time here",
        )
    return kept, warnings


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
