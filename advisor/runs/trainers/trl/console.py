"""Console logs of TRL, Unsloth and other transformers trainers: one printed dict per log event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.console_text import (
    Bar,
    find_bars,
    find_dicts,
    find_in_console,
    is_number,
)
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.trl.console_run import ConsoleRun, Plan, logged_runs
from advisor.runs.trainers.trl.log_events import SUMMARY_KEY, is_evaluation, is_event
from advisor.runs.trainers.trl.printed_settings import PrintedSettings

ROW = re.compile(rb"\{'[^{}\n]{0,8000}'reward':")

FOREIGN = frozenset({"global_step/max_steps", "iteration", "policy_loss", "actor_lr", "pg_loss"})
"""Keys of printed dicts that other readers know better: ms-swift's, OpenRLHF's."""

MOST_BARS = 64
"""Progress bars, told apart by their length, that are followed at a time."""


def claims(log: LogFile) -> bool:
    """Whether a file is a console log with printed dicts that hold a reward."""
    return find_in_console(log, b"'reward':", ROW, _holds_row)


def _holds_row(line: str) -> bool:
    return any(
        is_event(row.cells) and is_number(row.cells.get("reward")) and FOREIGN.isdisjoint(row.cells)
        for row in find_dicts(line)
    )


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a console log."""
    (log,) = logs

    def lines() -> Iterator[tuple[int, str]]:
        return ((line.number, line.text) for line in log.lines(strict=False))

    runs = read_console(lines, log.path, columns)
    if not runs:
        raise InputError(
            "no line holds a logged row ({'loss': ..., 'reward': ...})",
            path=log.path,
            advice="Give the console output of the trainer, or its trainer_state.json",
        )
    yield from logged_runs(runs)


def read_console(
    lines: Callable[[], Iterator[tuple[int, str]]], path: Path, columns: Columns
) -> list[ConsoleRun]:
    """Runs that were printed on a console."""
    runs = _Console(path, columns, {}).read(lines())
    plans = {place: plan for place, run in enumerate(runs) if (plan := run.revise()) is not None}
    if plans:
        # Whether bars can be trusted, and how far apart rows stand, shows only at the end.
        runs = _Console(path, columns, plans).read(lines())
    return runs


class _Console:
    """One reading of a console."""

    def __init__(self, path: Path, columns: Columns, plans: Mapping[int, Plan]) -> None:
        self._path, self._columns, self._plans = path, columns, plans
        self._printed = PrintedSettings()
        self._begun = 0
        self._runs: list[ConsoleRun] = []
        self._bars: dict[int, int] = {}
        self._last_total: int | None = None

    def read(self, lines: Iterable[tuple[int, str]]) -> list[ConsoleRun]:
        for number, text in lines:
            at = 0
            for row in find_dicts(text):
                self._between(text[at : row.start])
                at = row.end
                if is_event(row.cells):
                    self._row(number, row.cells, text[row.start : row.end], row.is_cut)
                else:
                    self._printed.take(row.cells)
            self._between(text[at:])
        return self._runs

    def _between(self, text: str) -> None:
        """Take what stands outside of logged rows."""
        if not text:
            return
        for bar in find_bars(text):
            self._bar(bar)
        self._printed.feed(text)
        run = self._runs[-1] if self._runs else None
        goes_on = self._is_announced and self._printed.resumed_at
        if run is not None and goes_on and not run.is_closed:
            # After a crash the same run goes on, rather than another one starting.
            run.is_resumed = True
            self._begun = self._printed.announced

    @property
    def _is_announced(self) -> bool:
        return self._begun < self._printed.announced

    def _bar(self, bar: Bar) -> None:
        # Bars of vLLM and of data preparation say what they are of; that of training does not.
        if bar.description:
            return
        run = self._runs[-1] if self._runs else None
        if run is not None and bar.done == 0 and bar.total == run.total:
            run.was_reset = True
        if len(self._bars) < MOST_BARS or bar.total in self._bars:
            self._bars[bar.total] = bar.done
        self._last_total = bar.total

    def _row(self, number: int, cells: dict[str, str], text: str, is_cut: bool) -> None:
        is_train = SUMMARY_KEY not in cells and ("loss" in cells or not is_evaluation(cells))
        if not self._runs or (is_train and self._is_new(self._runs[-1])):
            self._begin()
        run = self._runs[-1]
        if is_train:
            run.total = run.total or self._last_total
            count = self._bars.get(run.total or 0)
            run.train_row(number, cells, text, is_cut, count)
        else:
            run.other_row(number, cells, is_cut)

    def _is_new(self, run: ConsoleRun) -> bool:
        return run.rows > 0 and (run.is_closed or self._is_announced)

    def _begin(self) -> None:
        printed = self._printed
        self._runs.append(
            ConsoleRun(
                TableBuilder(self._path, kept_keys(self._columns)),
                dict(printed.settings),
                printed.planned_steps if self._is_announced else None,
                printed.resumed_at if self._is_announced else 0,
                self._plans.get(len(self._runs)),
                self._columns.keys.get("reward", "reward"),
            )
        )
        self._begun = printed.announced
        printed.began()


READER = Reader("TRL console log", claims, read, claim=Claim.DICT)
