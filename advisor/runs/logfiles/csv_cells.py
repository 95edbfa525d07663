"""CSV as rows of cells, for headers that are more than a list of keys."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile, check_text


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
    """Rows of a CSV file that may name columns twice; the first is the header."""
    check_text(log.head(), log.path)
    lines = (line for line in log.lines() if line.text.strip())
    first = next(lines, None)
    if first is None:
        raise InputError("the file is empty", path=log.path, advice="Export it again")
    is_open = first.is_open

    def texts() -> Iterator[str]:
        nonlocal is_open
        for line in itertools.chain((first,), lines):
            is_open = line.is_open
            yield line.text + "\n"

    reader = csv.reader(texts(), delimiter=max(",;\t", key=first.text.count), strict=True)
    width = 0
    held: tuple[int, list[str]] | None = None
    try:
        for cells in reader:
            if held is not None:
                yield held
            width = width or len(cells)
            if len(cells) > width:
                raise InputError(
                    f"the row has {len(cells)} cells and the header {width}",
                    path=log.path,
                    row=reader.line_num,
                    advice="Export the file again; cells with the separator must be quoted",
                )
            held = (reader.line_num, cells)
    except csv.Error as error:
        raise InputError(
            f"the table cannot be read ({error})",
            path=log.path,
            row=reader.line_num,
            advice="Export it again (it may have been cut)",
        ) from None
    if held is not None:
        if is_open and len(held[1]) < width:
            notes.append("the last line is cut and was left out")
        else:
            yield held
