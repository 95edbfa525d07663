"""What every reader hands over: rows of a run as sparse columns; and which files to look at."""

from __future__ import annotations

import difflib
import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError
from advisor.runs.arrays import BoolArray, FloatArray, IntArray
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import LogFile, on_disk, open_archive
from advisor.runs.pilot_run import PilotRun


@dataclass
class Column:
    """Cells of one key, in the order of the rows."""

    at: Any = field(default_factory=lambda: array("q"))
    value: Any = field(default_factory=lambda: array("d"))
    text: dict[int, str] = field(default_factory=dict)


class Table:
    """Rows of one run as a log holds them."""

    def __init__(self, numbers: IntArray, columns: dict[str, Column], cut: BoolArray) -> None:
        self.numbers, self._columns, self.cut = numbers, columns, cut

    def __len__(self) -> int:
        return int(self.numbers.size)

    @property
    def keys(self) -> list[str]:
        """Keys seen, in the order of the file."""
        return list(self._columns)

    @property
    def filled_keys(self) -> list[str]:
        """Keys with a number or text in some row."""
        return [key for key, c in self._columns.items() if len(c.at) or c.text]

    def column(self, key: str | None) -> FloatArray:
        """Numbers under a key, NaN where there is none; shape (rows,)."""
        dense, column = np.full(len(self), np.nan), self._of(key)
        dense[np.asarray(column.at, dtype=np.int64)] = np.asarray(column.value)
        return dense

    def has(self, key: str | None) -> BoolArray:
        """Rows with a number (finite or not) under a key; shape (rows,)."""
        mask = np.zeros(len(self), dtype=bool)
        mask[np.asarray(self._of(key).at, dtype=np.int64)] = True
        return mask

    def text(self, key: str) -> dict[int, str]:
        """Row -> text that is no number, under a key."""
        return dict(self._of(key).text)

    def constant(self, key: str) -> float | str | None:
        """The one value, finite or text, of all cells under a key; None where they differ."""
        numbers = self.column(key)
        values = {*numbers[np.isfinite(numbers)].tolist(), *self._of(key).text.values()}
        return values.pop() if len(values) == 1 else None

    def _of(self, key: str | None) -> Column:
        return self._columns.get(key or "") or Column()

    def take(self, rows: npt.ArrayLike) -> Table:
        """Table of some rows, in the order given (indices, or a mask)."""
        if (given := np.asarray(rows)).dtype == bool and given.all():
            return self
        wanted = np.flatnonzero(given) if given.dtype == bool else given.astype(np.int64)
        new_place = np.full(len(self), -1, dtype=np.int64)
        new_place[wanted] = np.arange(wanted.size)
        columns = {}
        for key, column in self._columns.items():
            at = new_place[np.asarray(column.at, dtype=np.int64)]
            kept = at >= 0
            order = np.argsort(at[kept], kind="stable")
            columns[key] = Column(
                at[kept][order],
                np.asarray(column.value)[kept][order],
                {int(new_place[i]): t for i, t in column.text.items() if new_place[i] >= 0},
            )
        return Table(self.numbers[wanted], columns, self.cut[wanted])

    def joined(self, other: Table) -> Table:
        """Table of these rows and, below them, those of another."""
        size, columns = len(self), dict[str, Column]()
        for key in {**self._columns, **other._columns}:
            one, two = self._of(key), other._of(key)
            at = np.append(one.at, np.asarray(two.at, dtype=np.int64) + size).astype(np.int64)
            texts = {**one.text, **{row + size: text for row, text in two.text.items()}}
            columns[key] = Column(at, np.append(one.value, two.value), texts)
        numbers, cut = np.append(self.numbers, other.numbers), np.append(self.cut, other.cut)
        return Table(numbers, columns, cut)

    def averaged(self, starts: IntArray, key: str, count: FloatArray) -> Table:
        """Table of the means of stretches of rows, with a count under a key; texts are dropped."""
        columns = {}
        for name in self._columns:
            values, has = self.column(name), self.has(name)
            rows = np.add.reduceat(has.astype(int), starts)
            sums = np.add.reduceat(np.where(has, values, 0.0), starts)
            at = np.flatnonzero(rows)
            columns[name] = Column(at, sums[at] / rows[at])
        columns[key] = Column(np.arange(starts.size), count)
        cut = np.logical_or.reduceat(self.cut, starts)
        return Table(self.numbers[starts], columns, cut)

    def pop(self, key: str) -> Column:
        """Take a column out; an empty one where there is none."""
        return self._columns.pop(key, None) or Column()

    def renamed(self, names: Mapping[str, str]) -> Table:
        """Table with some keys under other names; a name that is taken keeps its column."""
        columns = dict(self._columns)
        for key, name in names.items():
            if name not in columns:
                columns[name] = columns.pop(key)
        return Table(self.numbers, columns, self.cut)

    def only(self, names: Mapping[str, str]) -> Table:
        """Table of some keys, each under the name that it maps to."""
        columns = {name: self._columns[key] for key, name in names.items()}
        return Table(self.numbers, columns, self.cut)

    def with_column(self, name: str, column: Column | str) -> Table:
        """Table with one more column, or with that of another key under one more name."""
        added = self._columns[column] if isinstance(column, str) else column
        return Table(self.numbers, {**self._columns, name: added}, self.cut)


class TableBuilder:
    """Fills a `Table` row by row, in bounded memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = array("q")
        self._cut = array("b")
        self._columns: dict[str, Column] = {}
        self._texts: dict[str, str] = {}
        self._cells = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def seen(self, keys: Iterable[str]) -> None:
        """Note keys that a header names, whether or not a row fills them."""
        for key in keys:
            self._columns.setdefault(key, Column())

    def add(self, number: int, cells: Mapping[str, Any], *, is_cut: bool = False) -> None:
        """Add a row."""
        row = len(self._numbers)
        self._numbers.append(number)
        self._cut.append(is_cut)
        if not row:
            self.seen(name for name, cell in cells.items() if type(cell) is not dict)
        self._fill(row, cells, "", 0)

    def build(self) -> Table:
        """The table filled so far."""
        numbers, cut = np.array(self._numbers, dtype=np.int64), np.array(self._cut, dtype=bool)
        return Table(numbers, self._columns, cut)

    def _fill(self, row: int, cells: Mapping[str, Any], prefix: str, depth: int) -> None:
        for name, cell in cells.items():
            key = f"{prefix}{name}" if prefix else name
            kind = type(cell)
            if kind is dict:
                if depth < 3 and "_type" not in cell:  # W&B's histograms, tables and pictures
                    self._fill(row, cell, f"{key}/", depth + 1)
                continue
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = Column()
            if cell is None:
                continue
            if kind is str:
                try:
                    cell = float(cell)
                except ValueError:
                    if short := cell.strip()[:60]:
                        column.text[row] = self._texts.setdefault(short, short)
                    continue
            elif kind is int:
                cell = as_float(cell)
            elif kind is bool:
                column.text[row] = str(cell).lower()
                continue
            elif kind is not float:
                continue
            if column.at and column.at[-1] == row:
                column.value[-1] = cell  # the later of two cells of one name, as JSON has it
                continue
            column.at.append(row)
            column.value.append(cell)
            self._cells += 1
        if self._cells + 30 * row > limits.most_table_cells:
            problem = f"the log holds more than {limits.most_table_cells:,} numbers, each row as 30"
            advice = "Export every tenth row, or split the file by run"
            raise InputError(problem, path=self.path, advice=advice)


def as_float(value: int | float | str) -> float:
    """Float of a number or text; an integer that is too large counts as infinite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if int(value) > 0 else float("-inf")


OPTIONS = ("step", "step_unit", "filter", "eval_reward", "eval_filter")


@dataclass(frozen=True)
class Columns:
    """A column map."""

    keys: Mapping[str, str] = field(default_factory=dict)
    filter: Mapping[str, str] = field(default_factory=dict)
    eval_filter: Mapping[str, str] = field(default_factory=dict)
    step_unit: str | None = None

    def __bool__(self) -> bool:
        return bool(self.keys or self.filter or self.eval_filter or self.step_unit)


def parse_columns(
    columns: Mapping[str, Any] | None, *, path: Path | None = None, row: int | None = None
) -> Columns:
    """Check a column map."""

    def refuse(name: str, problem: str, advice: str) -> NoReturn:
        raise InputError(problem, path=path, row=row, key=f"columns.{name}", advice=advice)

    def parse_filter(name: str) -> dict[str, str]:
        conditions: dict[str, str] = {}
        for part in filter(str.strip, given.pop(name, "").split(",")):
            key, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not key:
                advice = f'Write for example {name} = "type=rollout"'
                refuse(name, f"'{part.strip()}' is not of the form key=value", advice)
            conditions[key] = value
        return conditions

    allowed = (*PilotRun.SERIES, *OPTIONS)
    given: dict[str, str] = {}
    for name, value in (columns or {}).items():
        if name not in allowed:
            problem = "this column is not one that the package reads"
            refuse(name, problem, nearest(name, allowed))
        if not isinstance(value, str) or not value.strip():
            problem = f"the column map needs the name of a key of the log, not {value!r}"
            refuse(name, problem, f'For example {name} = "train/{name}"')
        given[name] = value.strip()
    unit = given.pop("step_unit", None)
    if unit not in (None, "optimizer", "refresh"):
        advice = "Use 'optimizer' (optimizer steps) or 'refresh' (batches of rollouts)"
        refuse("step_unit", f"'{unit}' is no unit of steps", advice)
    kept, evaluated = parse_filter("filter"), parse_filter("eval_filter")
    return Columns(given, kept, evaluated, unit)


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Advice that names the closest allowed name, or all of them where none is close."""
    names = sorted(allowed)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"The nearest is '{close[0]}'"
    more = f" or {len(names) - 30} more" if len(names) > 40 else ""
    return f"Use one of {', '.join(names[: 30 if more else 40])}{more}"


@dataclass(frozen=True)
class Logged:
    """One run as a file has it: its rows in the order of the file, under the trainer's keys."""

    table: Table
    # What tells this run apart where a file holds several (its name or place), and whether that is
    # a name which the log itself gives.
    label: str | None = None
    has_own_id: bool = False
    source: Path | None = None  # Its file, where those that are read together hold several runs
    # Name of the `KeyTable` where the format tells it; by default its keys do.
    framework: str | None = None
    # Settings that stand in the log itself, under the trainer's own names, flattened with dots.
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Settings in the package's names (``advisor.runs.logs.stated_settings.KEYS``).
    facts: Mapping[str, Any] = field(default_factory=dict)
    # Optimizer steps per row and of the whole run, where the log states or implies them.
    logging_steps: int | None = None
    planned_steps: int | None = None
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Claim(IntEnum):
    """By what a reader knows its format; the surest sign is asked for first."""

    FILE = 1  # a file name or first bytes that no other format has
    ROW = 2  # rows in a form that no other format has
    LINE = 3  # printed lines in a form that only one trainer prints
    DICT = 4  # printed dictionaries, which the reward functions of other trainers print too
    PAIRS = 5  # printed lines that count steps and state a reward
    TABLE = 6  # any table with a reward


class Reader(NamedTuple):
    """One log format; a trainer's own are listed in its `Trainer`, others in ``logs.readers``."""

    name: str  # What the format is called in messages
    # Whether a file is of this format, from its name and its first bytes. Never raises for what
    # the file holds.
    claims: Callable[[LogFile], object]
    # Raises nothing but `InputError`.
    read: Callable[[Sequence[LogFile], Columns], Iterable[Logged]]
    # Files of one group are one log and are read together; by default each is its own.
    group: Callable[[LogFile], Path] | None = None
    # File endings that the reader tries when the user named a file and no reader claims it; its
    # error then tells what the file lacks.
    suffixes: frozenset[str] = frozenset()
    claim: Claim = Claim.FILE  # Decides which reader is asked first


@dataclass(frozen=True)
class LogCandidate:
    """A file that may hold a log."""

    log: LogFile
    root: Path
    is_named: bool
    sidecar_top: Path
    reader: Reader | None = None

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.log.path

    @cached_property
    def whole_path(self) -> Path:
        """Path from the root of the file system."""
        return self.path.resolve()


class Unread(NamedTuple):
    """What was not read, and why: a ``log``, one of a run that is ``broken``, or none."""

    path: Path
    reason: str
    kind: Literal["log", "broken", "sidecar", "other"] = "log"


def is_of_system(path: Path) -> bool:
    """Whether a file is one of the system, which may have no end."""
    return str(path.resolve()).startswith(("/proc/", "/sys/", "/dev/"))


def find_files(paths: Iterable[Path], unread: list[Unread]) -> list[LogCandidate]:
    """Files named, and all files below the folders and in the archives named, sorted, each once."""
    found: dict[Path, LogCandidate] = {}
    for path in paths:
        try:
            is_folder, is_file = path.is_dir(), path.is_file()
        except (OSError, ValueError):  # a name longer than the system allows, or with a NUL
            is_folder = is_file = False
        if is_folder:
            files, seen, closed = list[Path](), set[str](), list[OSError]()
            walk = os.walk(path, followlinks=True, onerror=closed.append)
            for place, folders, names in walk:  # without hidden ones
                if (whole := os.path.realpath(place)) in seen:
                    folders[:] = []
                    continue
                seen.add(whole)
                if {"manifest.json", "recommendation.json", "posterior.nc"} <= {*names}:
                    if place == os.fspath(path):
                        problem = "the folder is a study, an answer of advisor advise, and no log"
                        advice = f"'advisor show {path}' prints it; name the folder of the logs"
                        raise InputError(problem, path=path, advice=advice)
                    folders[:], names = [], []
                if place.count(os.sep) > os.fspath(path).count(os.sep) + limits.most_folders_deep:
                    problem = f"folders lie more than {limits.most_folders_deep} deep in it"
                    raise InputError(problem, path=path, advice="Name the folder of the logs")
                folders[:] = [name for name in folders if not name.startswith(".")]
                files += [Path(place, name) for name in names if not name.startswith(".")]
            lost = (file for file in files if not os.path.exists(file))
            unread += [Unread(file, "a link that leads nowhere") for file in lost]
            for e in closed:
                why = f"the folder cannot be entered ({e.strerror}). Check its permissions"
                unread.append(Unread(Path(e.filename), why))
            for file in sorted(filter(os.path.isfile, files)):
                for log in _members(on_disk(file), unread):
                    found.setdefault(log.path.resolve(), LogCandidate(log, path, False, path))
        elif is_file:
            if is_of_system(path):
                advice = "Name the file that the trainer writes"
                raise InputError("a file of the system is no log", path=path, advice=advice)
            log = on_disk(path)
            top = path.resolve().parent.parent.parent
            for member in _members(log, unread):
                is_named = member is log
                root = path.parent if is_named else path
                found[member.path.resolve()] = LogCandidate(member, root, is_named, top)
        else:
            advice = "Check the path, relative to the folder you are in"
            raise InputError("there is no such file or folder", path=path, advice=advice)
    return list(found.values())


def _members(log: LogFile, unread: list[Unread]) -> list[LogFile]:
    try:
        is_archive = log.suffix == ".zip" and not log.is_packed and log.head(4) == b"PK\x03\x04"
        return open_archive(log) if is_archive else [log]
    except InputError as error:
        unread.append(Unread(log.path, error.problem))
        return []
