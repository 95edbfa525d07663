"""JSON and CSV out of a log, row by row, with every way in which they can be broken."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LogFile, check_text
from advisor.runs.logfiles.table import TableBuilder

CUT = "Copy the file again (it may have been cut while it was written)"
TOO_LONG = "Export the logged rows without texts, as CSV or JSONL"
DECODER = json.JSONDecoder()
SPACE = re.compile(r"[\s,]*")


class Row(NamedTuple):
    """Cells of one logged row and the one-based place where they stand in the file."""

    number: int
    cells: dict[str, Any]


def parse_json(text: str, path: Path, first_line: int = 1) -> Any:
    """Parse JSON; ``NaN`` and ``Infinity`` are let through as numbers that are not finite."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"this is not valid JSON ({error.msg}, column {error.colno})",
            path=path,
            row=first_line - 1 + error.lineno,
            advice=CUT,
        ) from None
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of 4,300 digits
        raise InputError(
            f"this JSON cannot be read ({error})", path=path, row=first_line, advice=CUT
        ) from None


def json_rows(log: LogFile, notes: list[str] | None = None) -> Iterator[Row]:
    """Objects of a JSONL file; a last line that is cut is noted, or without ``notes`` an error."""
    pending: InputError | None = None
    rows = 0
    for line in log.lines():
        number, text = line.number, line.text
        if not text.strip():
            continue
        if pending is not None:
            raise pending
        if line.is_cut:
            raise InputError(
                "the line is longer than a million characters",
                path=log.path,
                row=number,
                advice=TOO_LONG,
            )
        try:
            cells = parse_json(text, log.path, number)
        except InputError as error:
            # Only the last line can be one that was still being written.
            pending = error
            continue
        if not isinstance(cells, dict):
            raise InputError(
                f"the line holds a {type(cells).__name__}, not an object",
                path=log.path,
                row=number,
                advice="Write one {...} per line",
            )
        rows += 1
        yield Row(number, cells)
    if pending is not None:
        if not rows or notes is None:
            raise pending
        notes.append("the last line is cut and was left out")


def json_list(log: LogFile, key: str | None) -> tuple[Iterator[Row], dict[str, Any]]:
    """Objects of a JSON list, one at a time, and what stands round the list.

    Parameters
    ----------
    log : LogFile
    key : str or None
        Key of the list in the object that is the file; None where the file is the list.

    Returns
    -------
    rows : iterator of Row
        Numbered from 1. The list is read as the iterator runs.
    around : dict of str to object
        The rest of the object; complete once the iterator has ended.

    Raises
    ------
    InputError
        The file holds no such list, or an entry is no object.
    """
    around: dict[str, Any] = {}
    return itertools.chain.from_iterable(_list_rows(log, key, around)), around


def _list_rows(log: LogFile, key: str | None, around: dict[str, Any]) -> Iterator[list[Row]]:
    """Rows of a list, some at a time."""
    opening = re.compile(r"^\s*\[" if key is None else rf'"{re.escape(key)}"\s*:\s*\[')
    source = _Text(log)
    found = opening.search(source.text)
    while found is None and source.more():
        found = opening.search(source.text)
    if found is None:
        parse_json(source.text, log.path)
        raise InputError(
            "the file has no list of logged rows" if key else "the file holds no list of rows",
            path=log.path,
            key=key,
            advice="Give the file that the trainer wrote, or a list [{...}, {...}]",
        )
    before = source.text[: found.end()]
    source.drop(found.end())
    number = 0
    rows: list[Row] = []
    while True:
        source.drop(SPACE.match(source.text).end())  # type: ignore[union-attr]
        if source.text.startswith("]"):
            break
        if not source.text:
            if source.more():
                continue
            raise InputError("the list of rows has no end", path=log.path, row=number, advice=CUT)
        entry = source.decode(number + 1)
        number += 1
        if not isinstance(entry, dict):
            raise InputError(
                f"the entry is a {type(entry).__name__}, not an object",
                path=log.path,
                row=number,
                key=key,
                advice="Give a list of objects, one per logged row",
            )
        rows.append(Row(number, entry))
        if len(rows) == limits.JSON_ROWS_AT_ONCE:
            yield rows
            rows = []
    yield rows
    while source.more():
        pass
    rest = parse_json(before + source.text, log.path)
    if isinstance(rest, dict):
        around.update(rest)


class _Text:
    """Text of a log that is consumed from its front while more is read."""

    def __init__(self, log: LogFile) -> None:
        check_text(log.head(), log.path)
        self._path = log.path
        self._lines = log.lines()
        self.text = ""
        self.more()

    def more(self) -> bool:
        """Read on; False at the end of the file."""
        parts = [self.text]
        size = goal = len(self.text)
        goal += max(1 << 16, size // 2)  # in proportion, so that a long object costs no square
        for line in self._lines:
            parts.append(line.text + "\n")
            size += len(line.text) + 1
            if line.is_cut:
                raise InputError(
                    "the line is longer than a million characters",
                    path=self._path,
                    row=line.number,
                    advice="Write the file with one row per line, or indented",
                )
            if size >= goal:
                break
        else:
            if len(parts) == 1:
                return False
        if size > limits.MOST_DOCUMENT_BYTES:
            raise InputError(
                f"one object is larger than {limits.MOST_DOCUMENT_BYTES >> 20} MiB",
                path=self._path,
                advice=TOO_LONG,
            )
        self.text = "".join(parts)
        return True

    def drop(self, size: int) -> None:
        self.text = self.text[size:]

    def decode(self, number: int) -> Any:
        """Take one JSON value off the front."""
        while True:
            try:
                value, end = DECODER.raw_decode(self.text)
            except json.JSONDecodeError as error:
                at_end = error.pos >= len(self.text) - 16 or error.msg.startswith("Unterminated")
                if at_end and self.more():
                    continue
                raise InputError(
                    f"this is not valid JSON ({error.msg})",
                    path=self._path,
                    row=number,
                    advice=CUT,
                ) from None
            except (RecursionError, ValueError) as error:
                raise InputError(
                    f"this JSON cannot be read ({error})",
                    path=self._path,
                    row=number,
                    advice=CUT,
                ) from None
            if end == len(self.text) and self.more():
                continue  # a number may go on
            self.drop(end)
            return value


def fill_from_csv(log: LogFile, builder: TableBuilder) -> bool:
    """Read a CSV file (comma, semicolon or tab); True where its last line was cut and left out."""
    check_text(log.head(), log.path)
    lines = log.lines()
    first = next((line for line in lines if line.text.strip()), None)
    if first is None:
        raise InputError("the file is empty", path=log.path, advice="Give a log with rows")
    is_open = first.is_open

    def texts() -> Iterator[str]:
        nonlocal is_open
        for line in itertools.chain((first,), lines):
            is_open = line.is_open
            yield line.text + "\n"

    # A quoted cell may span lines, so the parser, not the line ends, must find the rows.
    delimiter = max(",;\t", key=first.text.count)
    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    header: list[str] = []
    used: list[tuple[int, str]] = []
    offset = first.number - 1
    held: tuple[int, list[str]] | None = None
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            number = offset + reader.line_num
            if not header:
                header = [cell.strip() for cell in cells]
                _refuse_doubled(header, log.path, number)
                builder.seen(key for key in header if key)
                used = [(i, key) for i, key in enumerate(header) if key and builder.wants(key)]
                continue
            if len(cells) > len(header):
                raise InputError(
                    f"the row has {len(cells)} cells and the header {len(header)}",
                    path=log.path,
                    row=number,
                    advice="Quote cells that contain the separator",
                )
            if held is not None:
                _add(builder, used, held)
            held = (number, cells)
    except csv.Error as error:
        raise InputError(
            f"the table cannot be read ({error})",
            path=log.path,
            row=offset + reader.line_num,
            advice=CUT,
        ) from None
    # Shorter than the header and without a line end: it was still being written.
    is_cut = held is not None and len(builder) > 0 and len(held[1]) < len(header) and is_open
    if held is not None and not is_cut:
        _add(builder, used, held)
    if not len(builder):
        raise InputError(
            "the table has a header and no rows",
            path=log.path,
            row=1,
            advice="Give a log with rows",
        )
    return is_cut


def _add(builder: TableBuilder, used: list[tuple[int, str]], row: tuple[int, list[str]]) -> None:
    number, cells = row
    there = len(cells)
    builder.add(number, {key: cells[i] for i, key in used if i < there})


def _refuse_doubled(header: list[str], path: Path, row: int) -> None:
    doubled = next((key for key in header if key and header.count(key) > 1), None)
    if doubled is not None:
        raise InputError(
            "two columns have this name", path=path, row=row, key=doubled, advice="Rename one"
        )


def to_number(value: Any) -> float | None:
    """Float of a cell, ``None`` where it is absent; `ValueError` of any other text."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def cell_number(cell: Any) -> float | None:
    """Number of a cell that is not vital: text counts as absent."""
    try:
        return to_number(cell)
    except ValueError:
        return None
