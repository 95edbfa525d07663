"""What histories of experiment trackers share: a counter of their own, and rows on its way."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logfiles.parsing import cell_number
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

    def seen(self, keys: Iterable[str]) -> None:
        """Note keys whose cells are not read."""
        self._builder.seen(keys)

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
            f"{total} rows), so the export may be a sample of the run; scan_history() and the "
            "Parquet history give every row"
        ]


@cached
def is_counter(key: str) -> bool:
    """Whether some trainer counts its steps or its batches of rollouts under a key."""
    names = set(spellings(plain(key)))
    return any(
        not names.isdisjoint((*table.optimizer_steps, *table.refreshes)) for table in key_tables()
    ) or not names.isdisjoint((*COMMON_KEYS.optimizer_steps, *UNSURE_STEPS))
