"""JSONL of verl's file logger, ``{"step": 12, "data": {...}}``, and of EasyR1's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.parsing import Row, json_rows
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.keys import kept_keys

EASYR1_NAME = "experiment_log.jsonl"
EASYR1_GROUPS = ("actor", "critic", "timing_s", "response_length", "val_response_length")
"""Nested groups of metrics, of which each row of EasyR1 has some."""


def claims(log: LogFile) -> bool:
    """Whether the first object has a step, and the metrics one level down."""
    if log.suffix not in (".jsonl", ".ndjson", ".json", ".log", ".txt"):
        return False
    try:
        head = log.head_text().lstrip(b"\xef\xbb\xbf \t\r\n")
    except InputError:
        return False
    if not head.startswith(b"{") or b'"step"' not in head:
        return False
    try:
        row = json.loads(head.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return _is_row(row, log.name)


def _is_row(row: Any, name: str) -> bool:
    step = row.get("step") if isinstance(row, dict) else None
    if isinstance(step, bool) or not isinstance(step, int | float):
        return False
    data = row.get("data")
    if isinstance(data, dict) and len(row) == 2:
        return any("/" in key for key in data)
    groups = sum(isinstance(row.get(group), dict) for group in EASYR1_GROUPS)
    return groups >= 2 or (groups == 1 and name == EASYR1_NAME)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of a file."""
    (log,) = logs
    builder = TableBuilder(log.path, kept_keys(columns))
    notes: list[str] = []
    for row in json_rows(log, notes):
        builder.add(row.number, _cells(row))
    if not len(builder):
        raise InputError(
            "the log has no row", path=log.path, advice="Wait until the run has logged some steps"
        )
    yield Logged(builder.build(), warnings=tuple(notes))


def _cells(row: Row) -> dict[str, Any]:
    """Cells of a row by the trainer's keys; nested groups are joined by the table."""
    data = row.cells.get("data")
    if not isinstance(data, dict):
        return row.cells
    rest = {key: cell for key, cell in row.cells.items() if key != "data"}
    return {**data, **rest}


READER = Reader("verl file logger (JSONL)", claims, read, claim=Claim.ROW)
