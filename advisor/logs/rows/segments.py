"""Several runs in one table: told apart by a column, or by a counter that starts anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.logfiles.table import Table
from advisor.run.pilot_run import LEAST_REWARDS
from advisor.theory.arrays import FloatArray, IntArray
from advisor.trainers import plain, spellings
from advisor.trainers.common_keys import RUN_KEYS

ABORTED = 0.1
"""Share of the longest attempt below which another attempt in the file is an aborted one."""


class Segment(NamedTuple):
    """Rows of one run, and its name or place where the table holds several."""

    table: Table
    label: str | None
    has_own_id: bool
    warnings: tuple[str, ...]


def split_by_name(table: Table) -> list[Segment]:
    """Split a table in which a column names the run of each row."""
    by_name = {name: key for key in table.keys for name in spellings(plain(key))}
    names: list[str] | None = None
    for wanted in RUN_KEYS:
        own = _names(table, by_name.get(wanted))
        if own is None:
            continue
        # Of a grid of methods and seeds neither column names a run alone.
        both = own if names is None else _joined(names, own)
        names = both if _are_runs(both) else names
    if names is None:
        return [Segment(table, None, False, ())]
    places = np.array(names)
    distinct = [name for name in dict.fromkeys(names) if name]
    return [Segment(table.take(places == name), name, True, ()) for name in distinct]


def are_results(table: Table) -> bool:
    """Whether most rows name a run of their own, as a table of results does."""
    by_name = {name: key for key in table.keys for name in spellings(plain(key))}
    for wanted in RUN_KEYS:
        names = list(table.text(by_name.get(wanted, "")).values())
        distinct = len(set(names))
        if distinct >= 2 and LEAST_REWARDS * distinct > len(table):
            return True
    return False


def _names(table: Table, key: str | None) -> list[str] | None:
    """Text of a column in each row, where it may name runs."""
    if key is None:
        return None
    numbers, texts = table.column(key), table.text(key)
    names = [
        texts.get(row, "" if np.isnan(numbers[row]) else f"{numbers[row]:g}")
        for row in range(len(table))
    ]
    return names if _are_runs(names) else None


def _are_runs(names: list[str]) -> bool:
    """Whether there are several names; a name per row is no name of a run."""
    distinct = {name for name in names if name}
    return len(distinct) >= 2 and LEAST_REWARDS * len(distinct) <= len(names)


def _joined(names: list[str], others: list[str]) -> list[str]:
    """Names of both columns, unless the first tells all apart that the second does."""
    pairs = dict.fromkeys(zip(names, others, strict=True))
    if len(pairs) == len(set(names)):
        return names
    return [f"{name}/{other}" if other else name for name, other in zip(names, others, strict=True)]


def split_restarts(table: Table, train: IntArray, count: FloatArray, window: int) -> list[Segment]:
    """Split rows where their counter starts anew.

    Parameters
    ----------
    table : Table
        All rows.
    train : ndarray of shape (train rows,)
        Indices of those with a train reward.
    count : ndarray of shape (train rows,)
        Their counter.
    window : int
        Counts between rows: a restart begins at or below it.

    Returns
    -------
    segments : list of Segment
        A single one unless two attempts are both long enough to be runs; the place of a segment
        is its number among the attempts.

    Notes
    -----
    A counter that goes back to somewhere in the middle is a run resumed from a checkpoint, which
    stays one run.
    """
    if np.all(np.diff(count) < 0):
        return [Segment(table, None, False, ())]  # newest first, which is settled later
    starts = [0]
    reached = -np.inf
    for index, value in enumerate(count):
        if value < reached / 2 and value <= max(window, count[starts[-1]]):
            starts.append(index)
            reached = -np.inf
        reached = max(reached, value)
    if len(starts) == 1:
        return [Segment(table, None, False, ())]
    ends = [*starts[1:], train.size]
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    least = max(LEAST_REWARDS, ABORTED * longest)
    kept, notes = [], []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        if end - start >= least:
            # Rows without reward in between go with the attempt that they follow.
            first = 0 if start == 0 else int(train[start])
            last = len(table) if end == train.size else int(train[end])
            kept.append((number, np.arange(first, last)))
        else:
            line = int(table.numbers[train[start]])
            notes.append(f"{end - start} rows from row {line} on are an aborted attempt, left out")
    several = len(kept) > 1
    if several:
        notes.insert(0, f"the step starts anew: the file was read as {len(kept)} runs")
    return [
        Segment(table.take(rows), str(number) if several else None, False, tuple(notes))
        for number, rows in kept
    ]
