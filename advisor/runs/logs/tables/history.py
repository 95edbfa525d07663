"""Histories with a row per log call: W&B's as JSONL, JSON or CSV, and tables in Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Logged, Reader
from advisor.runs.logfiles.parquet_file import SUFFIXES, column_names, parquet_rows
from advisor.runs.logfiles.parsing import csv_header, csv_rows, json_list, json_rows
from advisor.runs.logs.trackers.tracker import COUNTERS, Counts, TrackedRuns, is_counter
from advisor.runs.trainers import all_key_tables
from advisor.runs.trainers.keys import kept_keys

OWN_COUNTER = "_step"
WANDB = Counts("W&B's own counter of log calls (_step)", warns_of_samples=True)
LINE = re.compile(rb'"_step"\s*:\s*[-\d"]')

PART = re.compile(r"\d{1,6}")
SAMPLE_KEYS = {"prompt", "completion", "response", "messages", "conversations", "question"}
"""Columns of data sets and of logged samples, which hold one row per completion."""


def is_history(log: LogFile) -> bool:
    """Whether the rows of a text file have W&B's own keys."""
    if log.suffix in (".csv", ".tsv"):
        return len({OWN_COUNTER, "_runtime", "_timestamp"}.intersection(csv_header(log))) >= 2
    if log.suffix not in (".jsonl", ".ndjson", ".json"):
        return False
    # Charts and tables may fill the first lines of a long row; any line of the head will do.
    head = log.head_text().lstrip(b"\xef\xbb\xbf \t\r\n")
    begins = re.match(rb"\[\s*\{" if log.suffix == ".json" else rb"\{", head)
    return begins is not None and LINE.search(head) is not None


def is_parquet(log: LogFile) -> bool:
    """Whether a Parquet file names W&B's columns, or a reward and a counter."""
    names = set(column_names(log)) if log.suffix in SUFFIXES else set()
    if not names or names & SAMPLE_KEYS:
        return False
    if OWN_COUNTER in names and names & {"_timestamp", "_runtime"}:
        return True
    tables = all_key_tables()
    plain = names | {name.removeprefix("train/") for name in names}
    rewards = {key for table in tables for level in table.reward for key in level}
    steps = {key for table in tables for key in (*table.optimizer_steps, *table.refreshes)}
    return bool(plain & rewards) and bool(plain & {*steps, *COUNTERS})


def group(log: LogFile) -> Path:
    """Folder of a part (``0000.parquet``), the file itself otherwise."""
    is_part = PART.fullmatch(PurePosixPath(log.name).stem)
    return log.path.parent if is_part else log.path


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the run of a history, or of all parts of one."""
    notes: list[str] = []
    logs = sorted(logs, key=lambda log: log.path)
    names = column_names(logs[0]) if logs[0].suffix in SUFFIXES else [OWN_COUNTER]
    counts = WANDB if OWN_COUNTER in names else Counts("")
    runs = TrackedRuns(logs[0].path, columns, counts)
    for log in logs:
        for cells in _rows(log, notes, columns):
            number = len(runs.run(None)) + 1
            runs.add(number, cells, count=cells.pop(OWN_COUNTER, None))
        if log.suffix in SUFFIXES:
            runs.run(None).seen(name for name in column_names(log) if name != OWN_COUNTER)
    yield from runs.logged(warnings={None: notes})


def _rows(log: LogFile, notes: list[str], columns: Columns) -> Iterator[dict[str, Any]]:
    if log.suffix in SUFFIXES:
        keeps = kept_keys(columns)
        yield from parquet_rows(
            log,
            lambda name: keeps(name) or is_counter(name) or name in (*COUNTERS, OWN_COUNTER),
        )
    elif log.suffix in (".csv", ".tsv"):
        table = csv_rows(log, notes)
        header = next(table)[1]
        for _, row in table:
            yield {key: cell for key, cell in zip(header, row, strict=False) if key and cell}
    else:
        rows = json_list(log, None)[0] if log.suffix == ".json" else json_rows(log, notes)
        yield from (row.cells for row in rows)


READERS = (
    Reader("W&B history", is_history, read),
    Reader("Parquet history (W&B, tables with a reward)", is_parquet, read, group),
)
