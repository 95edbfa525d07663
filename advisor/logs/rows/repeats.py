"""Rows that repeat the one before, as exports that fill gaps forward have them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from advisor.logfiles.table import Table
from advisor.theory.arrays import BoolArray, FloatArray, IntArray

LEAST_CHANGES = 4
"""Rows that differ from the one before, from which on a rhythm is no chance."""

LEAST_REPEATED = 0.5
"""Share of rows that repeat the one before, from which on they are copies of it."""

UNEVEN = 5.0
"""Longest stretch of repeated rows over the median one; in a run that has died it is far longer."""


def measured_rows(table: Table, keys: Iterable[str]) -> tuple[BoolArray, str | None]:
    """Rows in which something measured changed, and a remark where others were left out.

    Parameters
    ----------
    table : Table
        Train rows in order.
    keys : iterable of str
        Keys of what is measured; counters, clocks and settings are not among them.

    Returns
    -------
    kept : ndarray of bool, shape (rows,)
        All rows where too few repeat to be copies, or in no rhythm: rewards of few completions
        repeat by chance, and all of a run that has died.
    remark : str or None
    """
    everything = np.ones(len(table), dtype=bool)
    columns = [table.column(key) for key in keys]
    columns = [column for column in columns if np.unique(column[np.isfinite(column)]).size > 1]
    if not columns or len(table) <= 2 * LEAST_CHANGES:
        return everything, None
    changed = np.zeros(len(table), dtype=bool)
    changed[0] = True
    for column in columns:
        same = (column[1:] == column[:-1]) | (np.isnan(column[1:]) & np.isnan(column[:-1]))
        changed[1:] |= ~same
    repeats = int((~changed).sum())
    if changed.sum() <= LEAST_CHANGES or repeats < LEAST_REPEATED * changed.size:
        return everything, None
    places = np.flatnonzero(changed)
    lengths = np.diff(np.append(places, changed.size))
    is_regular = _gap(places) >= 2 and lengths.max() <= UNEVEN * np.median(lengths)
    if not is_regular:
        return everything, None
    return changed, (
        f"{repeats} of {changed.size} rows repeat the row before in all that is measured and were "
        "left out (gaps filled forward)"
    )


def measured_evaluations(reward: FloatArray) -> BoolArray:
    """Which values of a held-out column were measured, where all rows hold one.

    Loops that evaluate now and then write 0, or the last value again, in the rows between.
    """
    everything = np.ones(reward.size, dtype=bool)
    if reward.size <= 2 * LEAST_CHANGES:
        return everything
    rows = np.arange(reward.size)
    filled = np.flatnonzero(reward != 0)
    if 2 <= filled.size <= reward.size * (1 - LEAST_REPEATED):
        # The first and the last row may be evaluated out of turn.
        inner = filled[(filled > 0) & (filled < reward.size - 1)]
        gap = _gap(inner if inner.size >= 2 else filled)
        if gap >= 2:
            start = int((inner if inner.size >= 2 else filled)[0])
            due: BoolArray = (rows - start) % gap == 0
            nonzero: BoolArray = reward != 0
            return np.logical_or(due, nonzero)
    changed = np.append(True, np.diff(reward) != 0)
    is_held = int((~changed).sum()) >= LEAST_REPEATED * reward.size
    places = np.flatnonzero(changed)
    if is_held and places.size > LEAST_CHANGES and _gap(places[1:]) >= 2:
        return changed
    return everything


def _gap(places: IntArray) -> int:
    """Greatest common distance of places; 1 where there is none."""
    return int(np.gcd.reduce(np.diff(places))) if places.size >= 2 else 1
