"""W&B histories row by row: ``wandb-history.jsonl``, and what ``scan_history()`` was saved as."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.csv_cells import csv_header, csv_rows
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Logged, Reader
from advisor.runs.logfiles.parsing import json_list, json_rows
from advisor.runs.logs.trackers.tracker import Counts, TrackedRuns

OWN_COUNTER = "_step"
OWN_KEYS = frozenset({"_step", "_runtime", "_timestamp"})
LINE = re.compile(rb'"_step"\s*:\s*[-\d"]')
LIST = re.compile(rb"\[\s*\{")
COUNTS = Counts("W&B's own counter of log calls (_step)", warns_of_samples=True)


def claims(log: LogFile) -> bool:
    """Whether the rows have W&B's own keys."""
    if log.suffix in (".jsonl", ".ndjson"):
        head = log.head_text().lstrip(b"\xef\xbb\xbf \t\r\n")
        # Charts and tables may fill the first lines of a long row; any line of the head will do.
        return head.startswith(b"{") and LINE.search(head) is not None
    if log.suffix == ".json":
        head = log.head_text().lstrip(b"\xef\xbb\xbf \t\r\n")
        return LIST.match(head) is not None and LINE.search(head) is not None
    if log.suffix in (".csv", ".tsv"):
        # run.history().to_csv(): one run, plain keys.
        return len(OWN_KEYS.intersection(csv_header(log))) >= 2
    return False


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a history."""
    log = logs[0]
    notes: list[str] = []
    runs = TrackedRuns(log.path, columns, COUNTS)
    for number, cells in _rows(log, notes):
        count = cells.pop(OWN_COUNTER, None)
        runs.add(number, cells, count=count)
    yield from runs.logged(warnings={None: notes})


def _rows(log: LogFile, notes: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    if log.suffix == ".json":
        rows, _ = json_list(log, None)
        yield from rows
    elif log.suffix in (".csv", ".tsv"):
        table = csv_rows(log, notes)
        header = [cell.strip() for cell in next(table)[1]]
        for number, cells in table:
            pairs = zip(header, cells, strict=False)
            yield number, {key: cell for key, cell in pairs if key and cell}
    else:
        yield from json_rows(log, notes)


READER = Reader("W&B history", claims, read)
