"""Text, JSON and table rows from a file, with every way in which a file can be broken."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import InputError

LFS_MARK = b"version https://git-lfs"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
GIVE_LOG = "Give trainer_state.json, or an export as CSV or JSONL in UTF-8"
CUT = "Copy the file again (it may have been cut while it was written)"


class Row(NamedTuple):
    """Cells of one logged row and the one-based place where they stand in the file."""

    number: int
    cells: dict[str, Any]


def read_head(path: Path, size: int = 65536) -> bytes:
    """First bytes of a file.

    Raises
    ------
    InputError
        The file is missing or may not be read.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except FileNotFoundError:
        raise InputError(
            "there is no such file", path=path, advice="Check the path, relative to this folder"
        ) from None
    except OSError as error:
        raise InputError(
            f"the file cannot be read ({error.strerror})", path=path, advice="Check its permissions"
        ) from None


def in_utf8(head: bytes) -> bytes:
    """First bytes of a file, in UTF-8 where they start with the mark of UTF-16."""
    if not head.startswith(UTF16_MARKS):
        return head
    return head.decode("utf-16", "ignore").encode("utf-8", "ignore")


def read_text(path: Path, *, give: str | None = None) -> str:
    """Text of a file in UTF-8 (or UTF-16 with its mark).

    Parameters
    ----------
    path : Path
        The file.
    give : str, optional
        Advice where it is empty or no text; by default what to do with a log.

    Raises
    ------
    InputError
        The file is missing, empty, binary, or a pointer to data kept elsewhere.
    """
    raw = read_head(path, size=-1)
    check_text(raw, path, give=give)
    encoding = "utf-16" if raw.startswith(UTF16_MARKS) else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        raise _binary(path, give) from None
    check_text(text.encode(), path, give=give)  # nothing may be left after the byte-order mark
    return text


def check_text(raw: bytes, path: Path, *, give: str | None = None) -> None:
    """Raise where the first bytes of a file already say that it is no text."""
    if not raw.strip():
        advice = give or "Give a log with at least 3 rows of rewards"
        raise InputError("the file is empty", path=path, advice=advice)
    if raw.startswith(LFS_MARK):
        raise InputError(
            "the file is a git-LFS pointer, not the data", path=path, advice="Run 'git lfs pull'"
        )
    if b"\0" in raw and not raw.startswith(UTF16_MARKS):
        raise _binary(path, give)


def _binary(path: Path, give: str | None) -> InputError:
    problem = "the file is binary, or text in an odd encoding"
    return InputError(problem, path=path, advice=give or GIVE_LOG)


def parse_json(text: str, path: Path, first_line: int = 1) -> Any:
    """Parse JSON; ``NaN`` and ``Infinity`` are let through as numbers that are not finite.

    Raises
    ------
    InputError
        With the line at which it breaks.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"this is not valid JSON ({error.msg}, column {error.colno})"
        raise InputError(
            problem, path=path, row=first_line - 1 + error.lineno, advice=CUT
        ) from None
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of 4,300 digits
        raise InputError(
            f"this JSON cannot be read ({error})", path=path, row=first_line, advice=CUT
        ) from None


def json_lines(text: str, path: Path) -> Iterator[Row]:
    """Objects of a JSONL file, one per line; blank lines are skipped.

    Raises
    ------
    InputError
        A line is not a JSON object.
    """
    # Not splitlines: JSON strings may hold other line ends, such as U+2028, as they are.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        cells = parse_json(line, path, number)
        if not isinstance(cells, dict):
            raise InputError(
                f"the line holds a {type(cells).__name__}, not an object",
                path=path,
                row=number,
                advice="Write one {...} per line",
            )
        yield Row(number, cells)


def csv_rows(text: str, path: Path) -> tuple[list[Row], bool]:
    """Rows of a CSV file (comma, semicolon or tab), and whether its last line is cut.

    An empty cell is absent, but the first row names the columns that are empty throughout. A cut
    last line is left out.

    Raises
    ------
    InputError
        No header, a column named twice, or a row longer than the header.
    """
    first = text.lstrip().splitlines()[0]
    delimiter = max(",;\t", key=first.count)
    # A quoted cell may span lines, so the parser, not splitlines, must find the rows.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    rows: list[Row] = []
    size = 0
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                _refuse_doubled(header, path, reader.line_num)
                continue
            if len(cells) > len(header):
                raise InputError(
                    f"the row has {len(cells)} cells and the header {len(header)}",
                    path=path,
                    row=reader.line_num,
                    advice="Quote cells that contain the separator",
                )
            named = {
                key: cell.strip()
                for key, cell in zip(header, cells, strict=False)
                if key and cell.strip()
            }
            rows.append(Row(reader.line_num, named))
            size = len(cells)
    except csv.Error as error:
        raise InputError(
            f"the table cannot be read ({error})", path=path, row=reader.line_num, advice=CUT
        ) from None
    cut = len(rows) > 1 and size < len(header) and not text.endswith(("\n", "\r"))
    if cut:
        del rows[-1]
    if not rows:
        raise InputError(
            "the table has a header and no rows", path=path, row=1, advice="Give a log with rows"
        )
    written = {key for row in rows for key in row.cells}
    rows[0].cells.update({key: None for key in header if key and key not in written})
    return rows, cut


def to_number(value: Any) -> float | None:
    """Float of a cell, ``None`` where it is absent.

    Raises
    ------
    ValueError
        The cell holds something that is no number.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _refuse_doubled(header: list[str], path: Path, row: int) -> None:
    doubled = next((key for key in header if key and header.count(key) > 1), None)
    if doubled is not None:
        raise InputError(
            "two columns have this name", path=path, row=row, key=doubled, advice="Rename one"
        )
