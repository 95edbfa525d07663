"""JSON and CSV out of a log, row by row, with every way in which they can be broken."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LogFile, check_text
from advisor.runs.logfiles.table import TableBuilder

CUT = "Copy the file again (it may have been cut while it was written)"
TOO_LONG = "Export the logged rows without texts, as CSV or JSONL"


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
    """Objects of a JSON list, under a key or the whole file, and what stands round the list."""
    check_text(log.head(), log.path)
    document = parse_json(log.text(limit=limits.MOST_LIST_BYTES), log.path)
    around = dict(document) if key is not None and isinstance(document, dict) else {}
    entries = document if key is None else around.pop(key, None)
    if not isinstance(entries, list):
        raise InputError(
            "the file has no list of logged rows" if key else "the file holds no list of rows",
            path=log.path,
            key=key,
            advice="Give the file that the trainer wrote, or a list [{...}, {...}]",
        )
    return _list_rows(entries, log.path, key), around


def _list_rows(entries: list[Any], path: Path, key: str | None) -> Iterator[Row]:
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise InputError(
                f"the entry is a {type(entry).__name__}, not an object",
                path=path,
                row=number,
                key=key,
                advice="Give a list of objects, one per logged row",
            )
        yield Row(number, entry)


def csv_header(log: LogFile) -> list[str]:
    """Cells of the first line, as far as it lies in the head; nothing where it is no CSV."""
    lines = log.head_text().lstrip(b"\xef\xbb\xbf\r\n ").split(b"\n", 1)
    text = lines[0].decode("utf-8", "replace").rstrip("\r")
    try:
        rows = list(csv.reader([text], delimiter=max(",;\t", key=text.count)))
    except csv.Error:
        return []
    return [cell.strip() for cell in rows[0]] if rows else []


def csv_rows(log: LogFile, notes: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of each row of a CSV (comma, semicolon or tab); the header comes first."""
    check_text(log.head(), log.path)
    lines = log.lines()
    first = next((line for line in lines if line.text.strip(" \t\r,;")), None)
    if first is None:
        raise InputError("the file is empty", path=log.path, advice="Give a log with rows")
    last = first

    def texts() -> Iterator[str]:
        nonlocal last
        for last in itertools.chain((first,), lines):
            yield last.text + "\n"

    # A quoted cell may span lines, so the parser, not the line ends, must find the rows.
    reader = csv.reader(texts(), delimiter=max(",;\t", key=first.text.count), strict=True)
    width = 0
    held: tuple[int, list[str]] | None = None
    try:
        for cells in reader:
            number = first.number - 1 + reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if held is not None:
                yield held
            if not width:
                width, cells = len(cells), [cell.strip() for cell in cells]
            if len(cells) > width:
                raise InputError(
                    f"the row has {len(cells)} cells and the header {width}",
                    path=log.path,
                    row=number,
                    advice="Quote cells that contain the separator",
                )
            held = (number, cells)
    except csv.Error as error:
        raise InputError(
            f"the table cannot be read ({error})",
            path=log.path,
            row=first.number - 1 + reader.line_num,
            advice=CUT,
        ) from None
    # Shorter than the header and without a line end: it was still being written.
    if held is not None and last.is_open and len(held[1]) < width:
        notes.append("the last line is cut and was left out")
    elif held is not None:
        yield held


def fill_from_csv(log: LogFile, builder: TableBuilder, notes: list[str]) -> None:
    """Read a CSV file whose header is a list of keys."""
    rows = csv_rows(log, notes)
    row, header = next(rows)
    doubled = next((key for key in header if key and header.count(key) > 1), None)
    if doubled is not None:
        raise InputError(
            "two columns have this name", path=log.path, row=row, key=doubled, advice="Rename one"
        )
    builder.seen(key for key in header if key)
    used = [(i, key) for i, key in enumerate(header) if key and builder.wants(key)]
    for number, cells in rows:
        builder.add(number, {key: cells[i] for i, key in used if i < len(cells)})
    if not len(builder):
        raise InputError(
            "the table has a header and no rows",
            path=log.path,
            row=1,
            advice="Give a log with rows",
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
