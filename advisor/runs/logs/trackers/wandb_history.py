"""Histories with a row per log call: W&B's own run file, JSONL, JSON or CSV; tables in Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.config_files import flatten
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Logged, Reader
from advisor.runs.logfiles.parsing import (
    PARQUET,
    column_names,
    csv_header,
    csv_rows,
    json_list,
    json_rows,
    parquet_rows,
)
from advisor.runs.logfiles.records import MARK, OWN_COUNTER, read_store
from advisor.runs.logs.trackers.tracker import COUNTERS, OF_WANDB, TrackedRun, is_counter
from advisor.runs.trainers import all_key_tables
from advisor.runs.trainers.keys import kept_keys

COUNTER = f"{OF_WANDB} ({OWN_COUNTER})"
CONSOLE = ("files", "output.log")
"""Where W&B keeps, next to its own file, what the same run printed."""

LINE = re.compile(rb'"_step"\s*:\s*[-\d"]')
PART = re.compile(r"\d{1,6}")
SAMPLE_KEYS = {"prompt", "completion", "response", "messages", "conversations", "question"}
"""Columns of data sets and of logged samples, which hold one row per completion."""


def is_store(log: LogFile) -> bool:
    """Whether a file is W&B's own, by its name and first bytes."""
    return log.suffix == ".wandb" and log.readable_head().startswith(MARK)


def read_run_file(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of W&B's own file."""
    (log,) = logs
    notes: list[str] = []
    config: dict[str, Any] = {}
    run = TrackedRun(log.path, columns, COUNTER)
    for row in read_store(log, notes, config):
        cells = {key: text.strip('"') for key, text in row.items() if text != "null"}
        run.add(len(run) + 1, cells, cells.pop(OWN_COUNTER, None))
    yield run.logged(settings=flatten(config), warnings=notes)


def console_of(store: Path) -> Path:
    """Where the console of the run of W&B's own file lies."""
    return store.parent.joinpath(*CONSOLE)


def is_history(log: LogFile) -> bool:
    """Whether the rows of a text file have W&B's own keys."""
    if log.suffix in (".csv", ".tsv"):
        return len({OWN_COUNTER, "_runtime", "_timestamp"}.intersection(csv_header(log))) >= 2
    if log.suffix not in (".jsonl", ".ndjson", ".json"):
        return False
    # Charts and tables may fill the first lines of a long row; any line of the head will do.
    begins = re.match(rb"\[\s*\{" if log.suffix == ".json" else rb"\{", log.start())
    return begins is not None and LINE.search(log.head_text()) is not None


def is_parquet(log: LogFile) -> bool:
    """Whether a Parquet file names W&B's columns, or a reward and a counter."""
    names = set(column_names(log)) if log.suffix in PARQUET else set()
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
    names = column_names(logs[0]) if logs[0].suffix in PARQUET else [OWN_COUNTER]
    counter = COUNTER if OWN_COUNTER in names else ""
    run = TrackedRun(logs[0].path, columns, counter, is_export=bool(counter))
    for log in logs:
        for cells in _rows(log, notes, columns):
            run.add(len(run) + 1, cells, cells.pop(OWN_COUNTER, None))
        if log.suffix in PARQUET:
            run.seen(name for name in column_names(log) if name != OWN_COUNTER)
    yield run.logged(warnings=notes)


def _rows(log: LogFile, notes: list[str], columns: Columns) -> Iterator[dict[str, Any]]:
    if log.suffix in PARQUET:
        keeps, counters = kept_keys(columns), (*COUNTERS, OWN_COUNTER)
        yield from parquet_rows(log, lambda k: keeps(k) or is_counter(k) or k in counters)
    elif log.suffix in (".csv", ".tsv"):
        table = csv_rows(log, notes)
        _, header = next(table)
        for _, row in table:
            yield {key: cell for key, cell in zip(header, row, strict=False) if key and cell}
    else:
        rows = json_list(log, None)[0] if log.suffix == ".json" else json_rows(log, notes)
        yield from (row.cells for row in rows)


STORE = Reader("W&B run file", is_store, read_run_file)
HISTORY = Reader("W&B history", is_history, read)
PARQUET_HISTORY = Reader("Parquet history (W&B, tables with a reward)", is_parquet, read, group)
