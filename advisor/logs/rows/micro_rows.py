"""Several rows per step: one for each micro-batch, prompt or completion of it."""

from __future__ import annotations

import numpy as np

from advisor.logfiles import limits
from advisor.logfiles.table import Column, Table
from advisor.theory.arrays import FloatArray, IntArray

OF_A_SAMPLE = frozenset(
    {
        *("prompt", "prompts", "question", "completion", "completions", "response", "responses"),
        *("messages", "output", "answer", "generated_text", "text"),
    }
)
"""Keys of the rows of single samples, of which a log may hold some and not others."""


def join_rows(table: Table, key: str | None) -> tuple[Table, str | None]:
    """Average the rows of each step where every step has equally many.

    A loop that logs inside of its gradient accumulation writes a row per micro-batch; the reward of
    the step is their mean.

    Parameters
    ----------
    table : Table
        Rows with a reward, of one attempt.
    key : str or None
        Key of the step.

    Returns
    -------
    table : Table
        As given where it is not so.
    remark : str or None
        What was done.
    """
    if key is None or OF_A_SAMPLE & {name.lower() for name in table.keys}:
        return table, None
    count = table.column(key)
    if not np.isfinite(count).all():
        return table, None
    starts = np.flatnonzero(np.append(True, np.diff(count) != 0))
    sizes = np.diff(np.append(starts, count.size))
    each = int(sizes[0]) if sizes.size else 0
    is_even = bool(np.all(sizes[:-1] == each)) and 0 < int(sizes[-1]) <= each
    if each < 2 or sizes.size < limits.LEAST_EVEN_STEPS or not is_even:
        return table, None
    if np.any(np.diff(count[starts]) <= 0):
        return table, None
    whole = starts if int(sizes[-1]) == each else starts[:-1]
    place = np.arange(whole.size * each) // each
    rest = "" if whole.size == starts.size else "; the last step lacks some of its rows, left out"
    return (
        _averaged(table, place, whole),
        f"each step has {each} rows (micro-batches or prompts), which were averaged{rest}",
    )


def _averaged(table: Table, place: IntArray, starts: IntArray) -> Table:
    columns = {}
    for key in table.keys:
        values = table.column(key)[: place.size]
        there = np.isfinite(values)
        number = np.bincount(place[there], minlength=starts.size)
        total = np.bincount(place[there], values[there], minlength=starts.size)
        filled = np.flatnonzero(number)
        means: FloatArray = total[filled] / number[filled]
        words = table.text(key)
        text = {row: words[int(at)] for row, at in enumerate(starts) if int(at) in words}
        columns[key] = Column(filled, means, text)
    return Table(table.numbers[starts], columns, table.cut[starts])
