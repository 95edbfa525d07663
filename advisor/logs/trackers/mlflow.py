"""MLflow's folders: one file per metric, with a line per value, beside files of parameters."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.columns import Columns
from advisor.logfiles.log_file import LogFile, on_disk
from advisor.logfiles.logged import Logged, Reader
from advisor.logfiles.table import Table, TableBuilder
from advisor.theory.arrays import FloatArray, IntArray
from advisor.trainers.keys import kept_keys

FOLDER = "metrics"
META = "meta.yaml"
NUMBER = rb"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d{1,4})?|nan|inf(?:inity)?)"
LINE = re.compile(
    rb"(\d{1,16}) (" + NUMBER + rb")(?: (-?\d{1,18})(?: \S+ \S+)?)?[ \r]*", re.IGNORECASE
)
"""Milliseconds, value, step (absent before version 1), and the name and digest of a data set."""

SINCE_1970 = 10**9
"""Least first number of a line that is taken for a time where no ``meta.yaml`` vouches for it."""

NO_STEP = -(2.0**62)


class Points:
    """Values of the metrics of one run, in the order in which each metric was logged.

    Parameters
    ----------
    path : Path
        For messages.
    columns : Columns
        Keys to keep besides the known ones; of others only the name is.
    """

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
        if len(self._value) >= limits.MOST_MLFLOW_POINTS:
            raise InputError(
                f"the run holds more than {limits.MOST_MLFLOW_POINTS:,} values",
                path=self._path,
                advice="Keep the metrics that you want to have read",
            )
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


def claims(log: LogFile) -> bool:
    """Whether a file lies below ``metrics`` and its first line is a time, a value and a step."""
    if FOLDER not in log.path.parts[:-1]:
        return False
    try:
        found = LINE.fullmatch(log.head(limits.MLFLOW_HEAD_BYTES).split(b"\n", 1)[0])
        if found is None:
            return False
        return int(found[1]) >= SINCE_1970 or log.at(group(log) / META) is not None
    except InputError:
        return False


def group(log: LogFile) -> Path:
    """Folder of the run whose metric a file holds."""
    parts = log.path.parts
    above = [Path(*parts[:i]) for i, part in enumerate(parts[:-1]) if part == FOLDER and i]
    # Keys may have a part 'metrics' themselves, and so may folders above the store.
    return next((folder for folder in above if log.at(folder / META) is not None), above[-1])


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read one run."""
    if FOLDER not in logs[0].path.parts[1:-1]:
        raise _no_run(logs[0].path)
    folder = group(logs[0])
    points = Points(folder, columns)
    notes: list[str] = []
    for log in sorted(logs, key=lambda log: log.path):
        below = log.path.parent.relative_to(folder / FOLDER)
        key = "/".join((*below.parts, log.name))
        if points.wants(key) and log.magic(1):
            _fill(points, key, log, notes)
    if not len(points):
        raise _no_run(folder)
    table, assumed = points.table()
    meta = _text(logs[0].at(folder / META), limits.MOST_MLFLOW_META_BYTES)
    name = _text(logs[0].at(folder / "tags" / "mlflow.runName"), limits.MOST_MLFLOW_PARAMETER_BYTES)
    if "lifecycle_stage: deleted" in meta:
        notes.append("MLflow has marked this run as deleted")
    yield Logged(
        table,
        label=name or _run_name(meta) or folder.name,
        settings=_parameters(logs[0], folder / "params"),
        assumptions=assumed,
        warnings=tuple(notes),
    )


def _fill(points: Points, key: str, log: LogFile, notes: list[str]) -> None:
    for line in log.lines():
        if not line.text.strip():
            continue
        if line.is_open:  # MLflow ends each line
            notes.append(f"the last line of {key} is cut and was left out")
            return
        found = LINE.fullmatch(line.text.encode())
        if found is None:
            raise InputError(
                f"this is not a time, a value and a step: {line.text[:40]!r}",
                path=log.path,
                row=line.number,
                advice="Copy the folder of the run again",
            )
        points.add(key, float(found[1]), float(found[2]), float(found[3] or 0))


def _parameters(log: LogFile, folder: Path) -> dict[str, Any]:
    """Parameters of a run; a key with slashes lies in folders, and is given with dots."""
    if log.member_of is not None:
        start = f"{folder}{os.sep}"
        below = (f for path, f in log.member_of.members.items() if str(path).startswith(start))
    else:
        paths = (Path(at, name) for at, _, names in os.walk(folder) for name in sorted(names))
        below = (on_disk(path) for path in paths)
    found: dict[str, Any] = {}
    for file in below:
        if len(found) >= limits.MOST_TRACKED_SETTINGS:
            break
        name = ".".join((*file.path.parent.relative_to(folder).parts, file.name))
        found[name] = _text(file, limits.MOST_MLFLOW_PARAMETER_BYTES)
    return dict(sorted(found.items()))


def _text(log: LogFile | None, limit: int) -> str:
    """Text of a small file, empty where it is absent, too long or no text."""
    if log is None:
        return ""
    try:
        return log.read(limit).decode("utf-8", "replace").strip()
    except InputError:
        return ""


def _run_name(meta: str) -> str:
    found = re.search(r"^run_name:[ ]*(\S.*)$", meta, re.MULTILINE)
    return found[1].strip().strip("'\"") if found else ""


def _no_run(path: Path) -> InputError:
    return InputError(
        "no values of known metrics were found",
        path=path,
        advice="Give the folder of an MLflow run, mlruns/<experiment>/<run>",
    )


READER = Reader("MLflow run folder", claims, read, group)
