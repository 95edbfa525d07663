"""Parquet: W&B histories in parts, tables with a reward."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Logged, Reader
from advisor.runs.logfiles.parquet_file import (
    SUFFIXES,
    column_test,
    open_columnar,
    open_stream,
    read_rows,
)
from advisor.runs.logs.trackers.tracker import COUNTERS, Counts, TrackedRuns, is_counter
from advisor.runs.trainers import all_key_tables
from advisor.runs.trainers.keys import kept_keys

PART = re.compile(r"\d{1,6}")
SAMPLE_KEYS = ("prompt", "completion", "response", "messages", "conversations", "question")
"""Columns of data sets and of logged samples, which hold one row per completion."""

OWN_COUNTER = "_step"
WANDB = Counts("W&B's own counter of log calls (_step)", warns_of_samples=True)
TABLE = Counts("")


def claims(log: LogFile) -> bool:
    """Whether a Parquet file names W&B's columns, or a reward and a counter."""
    has = column_test(log) if log.suffix in SUFFIXES else None
    if has is None or any(map(has, SAMPLE_KEYS)):
        return False
    if has(OWN_COUNTER) and (has("_timestamp") or has("_runtime")):
        return True
    return _has_reward(has)


def group(log: LogFile) -> Path:
    """Folder of a part (``0000.parquet``), the file itself otherwise."""
    stem = PurePosixPath(log.name).stem
    return log.path.parent if PART.fullmatch(stem) else log.path


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a Parquet file, or of all parts of one history."""
    keeps = kept_keys(columns)
    runs: TrackedRuns | None = None
    number = 0
    for log in sorted(logs, key=lambda log: log.path):
        with open_stream(log) as stream:
            columnar = open_columnar(log, stream)
            if runs is None:
                counts = WANDB if OWN_COUNTER in columnar.names else TABLE
                runs = TrackedRuns(log.path, columns, counts)
            wanted = [
                name
                for name in columnar.scalars
                if keeps(name) or is_counter(name) or name in (*COUNTERS, OWN_COUNTER)
            ]
            for cells in read_rows(columnar, wanted):
                number += 1
                runs.add(number, cells, count=cells.pop(OWN_COUNTER, None))
            runs.run(None).seen(name for name in columnar.names if name != OWN_COUNTER)
    if runs is not None:
        yield from runs.logged()


def _has_reward(has: Callable[[str], bool]) -> bool:
    """Whether a known reward stands beside a counter of steps."""
    tables = all_key_tables()
    rewards = [key for f in tables for level in f.reward for key in level]
    steps = [key for f in tables for key in (*f.optimizer_steps, *f.refreshes)]

    def has_any(keys: list[str]) -> bool:
        return any(has(key) or has(f"train/{key}") for key in dict.fromkeys(keys))

    return has_any(rewards) and has_any([*steps, *COUNTERS])


READER = Reader(
    "Parquet history (W&B, tables with a reward)", claims, read, group, frozenset(SUFFIXES)
)
