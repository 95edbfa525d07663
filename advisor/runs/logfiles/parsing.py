"""Rows out of a log: of JSON, of CSV, and what a console may have printed."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import Line, LogFile, check_text
from advisor.runs.logfiles.logged import as_float
from advisor.runs.pilot_run import IN_NO_RUN
from advisor.text import compiled, read_toml

CUT = "Copy the file again (it may have been cut while it was written)"

DELIMITED = (".csv", ".tsv")
TABLES = (*DELIMITED, ".md")
JSON_LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
PATTERNS = compiled(read_toml(__file__, "parsing.toml")["patterns"])


class Row(NamedTuple):
    """Cells of one logged row and the one-based place where they stand in the file."""

    number: int
    cells: dict[str, Any]


def parse_json(text: str, path: Path, first_line: int = 1) -> Any:
    """Parse JSON; ``NaN`` and ``Infinity`` are let through as numbers that are not finite."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        row = first_line - 1 + error.lineno
        problem = f"this is not valid JSON ({error.msg}, column {error.colno})"
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of 4,300 digits
        row, problem = first_line, f"this JSON cannot be read ({error})"
    raise InputError(problem, path=path, row=row, advice=CUT)


def json_rows(log: LogFile, notes: list[str] | None = None) -> Iterator[Row]:
    """Objects of a JSONL file; a last line that is cut is noted, or without ``notes`` an error."""
    pending: InputError | None = None
    rows, what = 0, "cut"
    for line in filter(lambda line: line.text.strip(), log.lines()):
        if pending is not None:
            raise pending
        if line.is_cut:  # as ms-swift's last one may be, which repeats all rows
            what = "longer than a million characters"
            give = "Export the logged rows without texts, as CSV or JSONL"
            pending = InputError(f"the line is {what}", path=log.path, row=line.number, advice=give)
            continue
        try:
            cells = parse_json(line.text, log.path, line.number)
        except InputError as error:
            # Only the last line can be one that was still being written.
            pending = error
            continue
        rows += 1
        yield _row(line.number, cells, "the line holds", log.path)
    if pending is not None:
        if not rows or notes is None:
            raise pending
        notes.append(f"the last line, row {pending.row}, is {what}: {IN_NO_RUN}")
    if notes is not None:
        _note_holes(log, notes)


def _note_holes(log: LogFile, notes: list[str]) -> None:
    if missing := sum(log.holes):
        notes.append(f"{missing:,} NUL bytes (a hole in the file) were passed over")


def json_list(
    log: LogFile, key: str | None, notes: list[str] | None = None
) -> tuple[list[Row], dict[str, Any]]:
    """Objects of a JSON list, under a key or the whole file, and what stands round the list.

    Of a list whose end is lost the whole objects count, where ``notes`` can say so.
    """
    check_text(log.head(), log.path)
    text = log.text(limit=limits.most_list_bytes)
    try:
        document = parse_json(text, log.path)
    except InputError as error:
        document = _whole_objects(text, key)
        if notes is None or not document[key or ""]:
            raise
        rows = f"{len(document[key or ''])} whole rows are read, and the rest is {IN_NO_RUN}"
        notes.append(f"the file is cut or damaged at line {error.row}: {rows}")
        document = document if key else document[""]
    around = dict(document) if key is not None and isinstance(document, dict) else {}
    entries = document if key is None else around.pop(key, None)
    if not isinstance(entries, list):
        problem = "the file has no list of logged rows" if key else "the file holds no list of rows"
        advice = "Give the file that the trainer wrote, or a list [{...}, {...}]"
        raise InputError(problem, path=log.path, key=key, advice=advice)
    return [_row(n, row, "the entry is", log.path, key) for n, row in enumerate(entries, 1)], around


def _whole_objects(text: str, key: str | None) -> dict[str, Any]:
    """Objects of a list, up to the first that is broken, under its key, next to what is before."""
    decoder, found = json.JSONDecoder(), list[Any]()
    head, _, _ = text.partition(f'"{key}"') if key else ("", "", "")
    at = text.find("[", len(head)) + 1
    with contextlib.suppress(ValueError, RecursionError):
        while at:
            between = re.compile(r"[\s,]*").match(text, at)
            cells, at = decoder.raw_decode(text, between.end() if between else at)
            found.append(cells)
    around: dict[str, Any] = {}
    with contextlib.suppress(ValueError, RecursionError):
        around = json.loads(head.rstrip().rstrip(",") + "}") if key else {}
    return {**around, key or "": found}


def _row(number: int, cells: Any, what: str, path: Path, key: str | None = None) -> Row:
    if isinstance(cells, dict):
        return Row(number, cells)
    if _is_pair(cells):
        return Row(number, {"step": cells[0], "reward": cells[1]})
    problem = f"{what} a {type(cells).__name__}, not an object"
    advice = "Give one object {...} per logged row"
    raise InputError(problem, path=path, row=number, key=key, advice=advice)


def csv_header(log: LogFile) -> list[str]:
    """Names of the columns of a CSV, as far as they lie in the head; none where it is no CSV."""
    if log.suffix == ".md":
        rows = _markdown(log)
        return rows[0].text.split("\t") if len(rows) > LEAST_PASTED else []
    text = log.head_text().lstrip(b"\xef\xbb\xbf\r\n ").decode("utf-8", "replace")
    first = _table_from([line.rstrip("\r") for line in text.split("\n")])[0]
    try:
        return [cell.strip() for cell in next(csv.reader([first], delimiter=_separator(first)), [])]
    except csv.Error:
        return []


def _markdown(log: LogFile) -> list[Line]:
    """Rows of the longest table of a page, with tabs between their cells; none without a table."""
    tables: list[list[Line]] = [[]]
    with contextlib.suppress(InputError):
        for line in itertools.islice(log.lines(strict=False), limits.most_json_objects):
            row = line.text.strip().strip("|")
            if not line.text.lstrip().startswith("|"):
                tables.append([])
            elif row.strip("|-: "):
                cells = "\t".join(cell.strip(" *`") for cell in row.split("|"))
                tables[-1].append(line._replace(text=cells))
    return max(tables, key=len)


def csv_rows(log: LogFile, notes: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of each row of a CSV (comma, semicolon, tab, or bars of Markdown).

    The header comes first.
    """
    check_text(log.head(), log.path)
    lines = iter(_markdown(log)) if log.suffix == ".md" else log.lines()
    top = [*itertools.islice(lines, 200)]  # among which the header is
    header, start = _table_from([line.text for line in top])
    if not header:
        what = "page has no table" if log.suffix == ".md" else "file is empty"
        raise InputError(f"the {what}", path=log.path, advice="Give a log with rows")
    first = last = top[max(0, start - 1)]

    def texts() -> Iterator[str]:
        nonlocal last
        yield header + "\n"
        for last in itertools.chain(top[start:], lines):
            if not last.text.startswith(REMARKS) or any(sign in last.text for sign in ",;\t"):
                yield last.text + "\n"

    # A quoted cell may span lines, so the parser, not the line ends, must find the rows.
    reader = csv.reader(texts(), delimiter=_separator(header), strict=True)
    width, problem, held, is_even = 0, "", list[tuple[int, list[str]]](), True
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            yield from held
            is_even = is_even and not (held and len(held[0][1]) < width)
            if not width:
                width, cells = len(cells), [cell.strip() for cell in cells]
            if len(cells) > width:
                problem = f"the row has {len(cells)} cells and the header {width}"
                break
            held = [(first.number - 1 + reader.line_num, cells)]
    except csv.Error as error:
        problem = f"the table cannot be read ({error})"
    if problem:
        row = first.number - 1 + reader.line_num
        advice = "Quote cells that contain the separator, or copy the file again"
        raise InputError(problem, path=log.path, row=row, advice=advice)
    _note_holes(log, notes)
    # Shorter than the header and all else: still being written, or a summary under other names.
    if held and (last.is_open or is_even) and len(held[0][1]) < width:
        notes.append(f"the last line, row {held[0][0]}, is cut: {IN_NO_RUN}")
    else:
        yield from held


REMARKS = ("#", "//")  # How lines of a table begin that have no cells


def _table_from(lines: Sequence[str]) -> tuple[str, int]:
    """Header of a table, below any remarks, and the place of its first row; "" without one."""
    remark = ""
    for place, line in enumerate(lines):
        if line.startswith(REMARKS):
            remark = line.lstrip("#/ \t")
        elif line.strip(" \t\r,;"):
            sign = _separator(line)
            below = [each.count(_separator(each)) for each in lines[place + 1 : place + 4]]
            if sign not in line and min(filter(None, below), default=0):
                continue  # a title
            is_row = cell_number(line.split(sign)[0]) is not None
            # numpy writes its header as a remark.
            if is_row and remark and remark.count(sign) == line.count(sign):
                return remark, place
            return line, place + 1
    return "", len(lines)


def _separator(line: str) -> str:
    return max(",;\t", key=line.count)


def cell_number(cell: Any) -> float | None:
    """Number of a cell; any other text counts as absent."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    try:
        return float(cell)
    except OverflowError:
        return as_float(cell)
    except ValueError:
        return None


def unpaired(cells: dict[str, Any]) -> dict[str, Any]:
    """Cells in which lists of [step, value] are lists of values, next to one list of steps."""
    pairs = {
        key: {pair[0]: pair[1] for pair in value}
        for key, value in cells.items()
        if isinstance(value, list) and value and all(map(_is_pair, value))
    }
    if not pairs or "step" in cells:
        return cells
    steps = sorted({step for values in pairs.values() for step in values})
    lists = {key: [values.get(step) for step in steps] for key, values in pairs.items()}
    return {**cells, "step": steps, **lists}


def _is_pair(value: Any) -> bool:
    numbers = isinstance(value, list) and len(value) == 2
    return numbers and isinstance(value[0], int) and isinstance(value[1], int | float | None)


SUFFIXES = frozenset({"", ".md", ".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".console"})

LEAST_PASTED = 15  # Rows from which on a page of Markdown is a console that was pasted


def lines_with(log: LogFile, sign: str) -> Iterator[str]:
    """Lines that hold a sign, among the first megabytes of a text log; none of another file."""
    # A digit behind the last dot is part of a name: "train_qwen2.5-7b".
    if log.suffix not in SUFFIXES and not log.suffix[1:2].isdigit():
        return
    found = _lines_with(log, sign)
    if log.suffix == ".md":  # which mostly tells of a log, and may be one that was pasted
        first = [*itertools.islice(found, LEAST_PASTED)]
        found = itertools.chain(first, found) if len(first) == LEAST_PASTED else iter(())
    yield from found


def _lines_with(log: LogFile, sign: str) -> Iterator[str]:
    left = limits.searched_bytes
    with contextlib.suppress(InputError):
        for line in log.lines(strict=False):
            # Progress bars are drawn over each other.
            for part in line.text.split("\r") if sign in line.text else ():
                if sign in part:
                    first = max(0, part.find(sign) - limits.longest_line // 4)
                    yield part[first : first + limits.longest_line]
            left -= len(line.text)
            # Downloads and samples that a reward function prints may fill a console before a row.
            if left < 0:
                return


class Printed(NamedTuple):
    """A printed dict: where it starts, its cells as text, and whether its end is lost."""

    start: int
    end: int
    cells: dict[str, str]
    is_cut: bool


def find_dicts(text: str) -> Iterator[Printed]:
    """Dicts of a line that are not empty; what is nested in them is passed over."""
    start = text.find("{'")
    while start >= 0:
        end = text.find("}", start) + 1
        if end and text.find("{", start + 1, end) < 0:
            yield Printed(start, end, _cells(text[start:end]), False)
        else:
            end = _closing(text, start)
            body = text[start + 1 : end or len(text)]
            for _ in range(8):
                body, replaced = PATTERNS["innermost"].subn("None", body)
                if not replaced:
                    break
            # What follows a bracket that is left open is not known to be of this dict.
            yield Printed(start, end or len(text), _cells(body.partition("{")[0]), not end)
            if not end:
                return
        start = text.find("{'", end)


def is_number(text: str | None) -> bool:
    """Whether a cell is a number, finite or not."""
    return cell_number(text) is not None


def _cells(body: str) -> dict[str, str]:
    return {
        key: single or double or bare
        for key, single, double, bare in PATTERNS["item"].findall(body)
        if bare != "None"
    }


def _closing(text: str, start: int) -> int:
    """Place after the bracket that closes the one at ``start``, 0 where none does."""
    depth = 0
    for bracket in PATTERNS["bracket"].finditer(text, start):
        depth += 1 if bracket.group() == "{" else -1
        if depth == 0:
            return bracket.end()
    return 0
