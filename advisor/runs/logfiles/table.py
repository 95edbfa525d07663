"""Logged rows as sparse columns: what every reader fills and the assembly reads."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.theory import BoolArray, FloatArray, IntArray


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

    def cell(self, row: int, key: str) -> float | str | None:
        """One cell."""
        if row in self._of(key).text:
            return self._of(key).text[row]
        return float(self.column(key)[row]) if self.has(key)[row] else None

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
        if self._cells > limits.MOST_TABLE_CELLS:
            problem = f"the log holds more than {limits.MOST_TABLE_CELLS:,} numbers"
            advice = "Export every tenth row, or split the file by run"
            raise InputError(problem, path=self.path, advice=advice)


def as_float(value: int | float | str) -> float:
    """Float of a number or text; an integer that is too large counts as infinite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if int(value) > 0 else float("-inf")
