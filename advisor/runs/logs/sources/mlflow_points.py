"""Values of an MLflow run, metric by metric, put together as rows by step."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np

from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.table import Table, TableBuilder
from advisor.runs.trainers.keys import kept_keys
from advisor.theory import FloatArray, IntArray

NO_STEP = -(2.0**62)


class Points:
    """Values of the metrics of one run, in the order in which each metric was logged."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path = path
        self._keeps = kept_keys(columns)
        self._keys: dict[str, int | None] = {}
        self._key, self._time = array("i"), array("d")
        self._value, self._step = array("d"), array("d")

    def __len__(self) -> int:
        return len(self._value)

    def wants(self, key: str) -> bool:
        """Whether the values of a key are kept; notes the key."""
        if key not in self._keys:
            self._keys[key] = len(self._keys) if self._keeps(key) else None
        return self._keys[key] is not None

    def add(self, key: str, time: float, value: float, step: float) -> None:
        """Add a value of a key that is wanted."""
        self._key.append(self._keys[key] or 0)
        self._time.append(time)
        self._value.append(value)
        self._step.append(step)

    def table(self) -> tuple[Table, tuple[str, ...]]:
        """Rows by step, in the order in which they were begun, and what was assumed."""
        builder = TableBuilder(self._path, self._keeps)
        names = {place: name for name, place in self._keys.items() if place is not None}
        builder.seen(self._keys)
        key, step = np.asarray(self._key, dtype=np.int64), np.asarray(self._step)
        time, value = np.asarray(self._time), np.asarray(self._value)
        # Without a step MLflow writes 0 for every value, and only their order is left.
        is_idle = (np.bincount(key) > 1) & (np.bincount(key, step != 0) == 0)
        again = _times_before(key, step)
        step = np.where(is_idle[key], NO_STEP, step)
        row = _rows(again, step, time)
        order = np.argsort(row, kind="stable")
        starts = np.flatnonzero(np.diff(row[order], prepend=-1))
        for number, members in enumerate(np.split(order, starts[1:]), start=1):
            at = float(step[members[0]])
            cells: dict[str, Any] = {} if at == NO_STEP else {"step": at}
            cells |= {names[int(key[i])]: float(value[i]) for i in members}
            builder.add(number, cells)
        idle = ", ".join(names[int(i)] for i in np.flatnonzero(is_idle)[:4])
        assumed = (f"{idle}: logged without a step, so rows follow their order",) if idle else ()
        return builder.build(), assumed


def _times_before(key: IntArray, step: FloatArray) -> IntArray:
    """How often each value's metric had this step before; more than never after a restart."""
    order = np.lexsort((np.arange(key.size), step, key))
    is_first = np.ones(key.size, dtype=bool)
    same = (np.diff(key[order]) == 0) & (np.diff(step[order]) == 0)
    is_first[1:] = ~same
    place = np.arange(key.size)
    begin = np.maximum.accumulate(np.where(is_first, place, 0))
    again = np.empty(key.size, dtype=np.int64)
    again[order] = place - begin
    return again


def _rows(again: IntArray, step: FloatArray, time: FloatArray) -> IntArray:
    """Row of each value: one row per step and pass, rows in the order of their first value."""
    order = np.lexsort((time, step, again))
    is_new = np.ones(order.size, dtype=bool)
    is_new[1:] = (np.diff(again[order]) != 0) | (np.diff(step[order]) != 0)
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(is_new) - 1
    begun = time[order][is_new]
    rank = np.empty(begun.size, dtype=np.int64)
    rank[np.argsort(begun, kind="stable")] = np.arange(begun.size)
    return rank[group]
