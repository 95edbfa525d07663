"""Histories of trackers, a row per log call: W&B's own run file, JSONL, JSON or CSV."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.logfiles.config_files import flatten
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Columns, Logged, Reader
from advisor.runs.logfiles.parsing import (
    cell_number,
    csv_header,
    csv_rows,
    json_list,
    json_rows,
)
from advisor.runs.logfiles.records import MARK, OWN_COUNTER, read_store
from advisor.runs.logfiles.table import Column, TableBuilder
from advisor.runs.trainers import key_tables, plain, spellings
from advisor.runs.trainers.key_table import COMMON_KEYS, UNSURE_STEPS
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.registry import cached

COUNTERS = ("train/global_step", "training/global_step", "trainer/global_step", "global_step")
"""Counters of trainers that log to trackers, best first; all count what ``step`` counts there."""

OF_WANDB = "W&B's own counter of log calls"

EARLY_ROWS = 200  # Rows whose keys decide by which counter a run is read

REGULAR_SHARE = 0.8  # Share of equal gaps below which a counter of log calls looks thinned out


class TrackedRun:
    """Rows of one run on the way to a table; ``counter`` names the tracker's own counter."""

    def __init__(
        self, path: Path, columns: Columns, counter: str, *, is_export: bool = False
    ) -> None:
        keeps = kept_keys(columns)
        self._builder = TableBuilder(path, lambda key: keeps(key) or key in COUNTERS)
        self._path, self._own, self._is_export = path, counter, is_export
        self._early: dict[str, None] = {}
        self._at, self._count = array("q"), array("d")

    def __len__(self) -> int:
        return len(self._builder)

    def add(self, number: int, cells: Mapping[str, Any], count: Any) -> None:
        """Add a row, and what the tracker's own counter says of it."""
        kept = {k: v for k, v in cells.items() if not (isinstance(v, Mapping) and "_type" in v)}
        if len(self) < EARLY_ROWS:
            self._early.update(dict.fromkeys(kept))
        at = cell_number(count)
        if at is not None:
            self._at.append(len(self))
            self._count.append(at)
        self._builder.add(number, kept)

    def logged(self, warnings: Sequence[str] = (), **fields: Any) -> Logged:
        """The run, with a step on each row that some counter has; with more fields of `Logged`."""
        if not len(self):
            raise InputError(
                "the history has no rows",
                path=self._path,
                advice="Export it again once the run has logged metrics",
            )
        table, assumed = self._builder.build(), list[str]()
        by_name = {plain(key): key for key in reversed(self._early)}
        counter = next((by_name[name] for name in COUNTERS if name in by_name), None)
        has_step = "step" in by_name or (not counter and any(map(is_counter, self._early)))
        if counter is not None:
            table = table if has_step else table.with_column("step", counter)
            assumed.append(f"steps are {counter}" + (f", not {self._own}" if self._own else ""))
        elif not has_step and self._at:
            table = table.with_column("step", Column(self._at, self._count))
            assumed.append(
                f"steps are {self._own}, as the trainer logged no counter; it counts optimizer "
                "steps only where each one was logged"
            )
        warnings = (*warnings, *self._thinned_out())
        return Logged(table, assumptions=tuple(assumed), warnings=warnings, **fields)

    def _thinned_out(self) -> list[str]:
        steps = np.diff(np.asarray(self._count))
        gaps, times = np.unique(steps[steps > 0], return_counts=True)
        total = int(times.sum())
        if not self._is_export or total < 50 or times.max() >= REGULAR_SHARE * total:
            return []
        return [
            f"{self._own} jumps unevenly (by {gaps[times.argmax()]:g} in only {times.max()} of "
            f"{total} rows), so the export may be a sample of the run; scan_history() gives "
            "every row"
        ]


@cached
def is_counter(key: str) -> bool:
    """Whether some trainer counts its steps or its batches of rollouts under a key."""
    names = set(spellings(plain(key)))
    return any(
        not names.isdisjoint((*table.optimizer_steps, *table.refreshes)) for table in key_tables()
    ) or not names.isdisjoint((*COMMON_KEYS.optimizer_steps, *UNSURE_STEPS))


COUNTER = f"{OF_WANDB} ({OWN_COUNTER})"
CONSOLE = ("files", "output.log")
"""Where W&B keeps, next to its own file, what the same run printed."""

LINE = re.compile(rb'"_step"\s*:\s*[-\d"]')


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


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the run of a history."""
    (log,) = logs
    notes: list[str] = []
    run = TrackedRun(log.path, columns, COUNTER, is_export=True)
    for cells in _rows(log, notes):
        run.add(len(run) + 1, cells, cells.pop(OWN_COUNTER, None))
    yield run.logged(warnings=notes)


def _rows(log: LogFile, notes: list[str]) -> Iterator[dict[str, Any]]:
    if log.suffix in (".csv", ".tsv"):
        table = csv_rows(log, notes)
        _, header = next(table)
        for _, row in table:
            yield {key: cell for key, cell in zip(header, row, strict=False) if key and cell}
    else:
        rows = json_list(log, None)[0] if log.suffix == ".json" else json_rows(log, notes)
        yield from (row.cells for row in rows)


STORE = Reader("W&B run file", is_store, read_run_file)
HISTORY = Reader("W&B history", is_history, read)
