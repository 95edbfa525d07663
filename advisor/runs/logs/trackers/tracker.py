"""What histories of experiment trackers share: a counter of their own, and runs side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logfiles.parsing import cell_number
from advisor.runs.logfiles.table import Table, TableBuilder
from advisor.runs.trainers import key_tables, plain, spellings
from advisor.runs.trainers.key_table import COMMON_KEYS, UNSURE_STEPS
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.registry import cached

COUNTERS = ("train/global_step", "training/global_step", "trainer/global_step", "global_step")
"""Counters of trainers that log to trackers, best first; all count what ``step`` counts there."""

REGULAR_SHARE = 0.8
"""Share of equal gaps below which a counter of log calls looks thinned out."""


class Counts(NamedTuple):
    """What a tracker's own counter is called, and how it misleads."""

    name: str
    warns_of_samples: bool = False


class TrackedRun:
    """Rows of one run on the way to a table."""

    def __init__(self, path: Path, columns: Columns, counts: Counts) -> None:
        self._builder = TableBuilder(path, kept_keys(columns))
        self._counts = counts
        self._held: list[tuple[int, dict[str, Any], float | None]] = []
        self._counter: str | None = None
        self._is_settled = self._has_step = self._took_own = False
        self._gaps: Counter[float] = Counter()
        self._last: float | None = None

    def __len__(self) -> int:
        return len(self._builder) + len(self._held)

    def add(self, number: int, cells: Mapping[str, Any], count: Any) -> None:
        """Add a row."""
        kept = {k: v for k, v in cells.items() if not (isinstance(v, Mapping) and "_type" in v)}
        at = cell_number(count)
        self._watch(at)
        if self._is_settled:
            self._put(number, kept, at)
            return
        self._held.append((number, kept, at))
        if len(self._held) >= 200:
            self._settle()

    def build(self) -> tuple[Table, list[str], list[str]]:
        """Table, what was assumed of the steps, and warnings."""
        if not self._is_settled:
            self._settle()
        assumptions, warnings = [], []
        own = self._counts.name
        if self._counter is not None:
            assumptions.append(f"steps are {self._counter}" + (f", not {own}" if own else ""))
        elif self._took_own:
            assumptions.append(
                f"steps are {own}, as the trainer logged no counter; it counts optimizer steps "
                "only where each one was logged"
            )
        total = sum(self._gaps.values())
        if self._counts.warns_of_samples and total >= 50:
            gap, times = self._gaps.most_common(1)[0]
            if times < REGULAR_SHARE * total:
                warnings.append(
                    f"{own} jumps unevenly (by {gap:g} in only {times} of {total} rows), so the "
                    "export may be a sample of the run; scan_history() and the Parquet history "
                    "give every row"
                )
        return self._builder.build(), assumptions, warnings

    def seen(self, keys: Iterable[str]) -> None:
        """Note keys whose cells are not read."""
        self._builder.seen(keys)

    def _settle(self) -> None:
        logged: dict[str, None] = {}
        for _, cells, _ in self._held:
            logged.update(dict.fromkeys(cells))
        by_name = {plain(key): key for key in reversed(list(logged))}
        self._counter = next((by_name[name] for name in COUNTERS if name in by_name), None)
        self._has_step = "step" in by_name or (
            self._counter is None and any(is_counter(key) for key in logged)
        )
        self._is_settled = True
        held, self._held = self._held, []
        for row in held:
            self._put(*row)

    def _put(self, number: int, cells: dict[str, Any], at: float | None) -> None:
        if not self._has_step:
            step = at if self._counter is None else cells.get(self._counter)
            if step is not None:
                cells["step"] = step
                self._took_own = self._counter is None
        self._builder.add(number, cells)

    def _watch(self, at: float | None) -> None:
        if at is None or not math.isfinite(at):
            return
        if self._last is not None and at > self._last and len(self._gaps) < 1_000:
            self._gaps[at - self._last] += 1
        self._last = at


class TrackedRuns:
    """Runs of one history, told apart by name."""

    def __init__(self, path: Path, columns: Columns, counts: Counts) -> None:
        self._path, self._columns, self._counts = path, columns, counts
        self.runs: dict[str | None, TrackedRun] = {}

    def add(
        self, number: int, cells: Mapping[str, Any], *, count: Any, run: str | None = None
    ) -> None:
        """Add a row of a run; parameters as in `TrackedRun.add`."""
        self.run(run).add(number, cells, count)

    def run(self, name: str | None) -> TrackedRun:
        """Run of a name, new if need be."""
        if name not in self.runs:
            self.runs[name] = TrackedRun(self._path, self._columns, self._counts)
        return self.runs[name]

    def logged(
        self,
        labels: Mapping[str | None, str] | None = None,
        settings: Mapping[str | None, Mapping[str, Any]] | None = None,
        warnings: Mapping[str | None, list[str]] | None = None,
        assumptions: tuple[str, ...] = (),
        *,
        own_ids: bool = False,
    ) -> Iterator[Logged]:
        """Hand over all runs with rows."""
        if not any(len(run) for run in self.runs.values()):
            raise InputError(
                "the history has no rows",
                path=self._path,
                advice="Export it again once the run has logged metrics",
            )
        for name, run in self.runs.items():
            if not len(run):
                continue
            table, assumed, warned = run.build()
            yield Logged(
                table,
                label=(labels or {}).get(name, name),
                has_own_id=own_ids,
                settings=(settings or {}).get(name, {}),
                assumptions=(*assumptions, *assumed),
                warnings=(*(warnings or {}).get(name, []), *warned),
            )


@cached
def is_counter(key: str) -> bool:
    """Whether some trainer counts its steps or its batches of rollouts under a key."""
    names = set(spellings(plain(key)))
    return any(
        not names.isdisjoint((*framework.optimizer_steps, *framework.refreshes))
        for framework in key_tables()
    ) or not names.isdisjoint((*COMMON_KEYS.optimizer_steps, *UNSURE_STEPS))


def flat_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings flattened with dots; lists, long texts and a tracker's notes to itself left out."""
    flat: dict[str, Any] = {}
    stack: list[tuple[str, Mapping[str, Any], int]] = [("", config, 0)]
    while stack:
        prefix, level, depth = stack.pop()
        for name, value in level.items():
            key = f"{prefix}{name}"
            if len(flat) >= 5_000:
                return flat
            if isinstance(value, Mapping):
                if depth < 8:
                    stack.append((f"{key}.", value, depth + 1))
            elif isinstance(value, str):
                if len(value) <= 2_000:
                    flat[key] = value
            elif value is None or isinstance(value, bool | int | float):
                flat[key] = value
    return flat
