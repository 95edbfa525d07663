"""W&B's own file of a run: ``wandb/run-<time>-<id>/run-<id>.wandb``, also of an offline run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Logged, Reader
from advisor.runs.logfiles.wandb_records import OWN_COUNTER, is_store, put_settings, read_store
from advisor.runs.logs.trackers.tracker import Counts, TrackedRuns, flat_settings

COUNTS = Counts("W&B's own counter of log calls (_step)")
CONSOLE = ("files", "output.log")
"""Where W&B keeps, beside the file, what the same run printed."""


def claims(log: LogFile) -> bool:
    """Whether a file is W&B's own, by its name and first bytes."""
    if log.suffix != ".wandb":
        return False
    try:
        return is_store(log.head())
    except InputError:
        return False


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of a file."""
    (log,) = logs
    notes: list[str] = []
    config: dict[str, Any] = {}
    runs = TrackedRuns(log.path, columns, COUNTS)
    number = 0
    for stored in read_store(log, notes):
        put_settings(config, stored)
        if stored.cells:
            number += 1
            cells = {key: text.strip('"') for key, text in stored.cells.items() if text != "null"}
            runs.add(number, cells, count=cells.pop(OWN_COUNTER, None))
    yield from runs.logged(settings={None: flat_settings(config)}, warnings={None: notes})


def console_of(store: Path) -> Path:
    """Where the console of the run lies."""
    return store.parent.joinpath(*CONSOLE)


READER = Reader("W&B run file", claims, read)
