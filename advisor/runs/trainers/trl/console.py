"""What transformers trainers log: as ``trainer_state.json``, or a dict per event on a console."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from statistics import median
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles import parsing
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader, TableBuilder
from advisor.runs.trainers.trl.settings import CONSOLE, PrintedSettings

SUMMARY_KEY = "train_runtime"  # Key of the row that closes a run

OF_SUMMARY = ("train_", "total_flos", "epoch", "step")
"""Beginnings of that row's own keys; TRL adds to it the metrics that no other row has taken: the
mean reward of fewer steps than a row averages."""


def is_event(cells: Mapping[str, str]) -> bool:
    """Whether a dict is what a trainer logs, rather than some other that was printed."""
    if parsing.is_number(cells.get("loss")) or SUMMARY_KEY in cells or is_evaluation(cells):
        return True
    # A reward alone is no event: reward functions print what they found of a single completion.
    # Keys of which one stands next to the reward of a logged row, also where it has no loss.
    companions = {"epoch", "learning_rate", "grad_norm", "reward_std", "kl"}
    return parsing.is_number(cells.get("reward")) and not companions.isdisjoint(cells)


def is_evaluation(cells: Mapping[str, str]) -> bool:
    """Whether a dict is what a trainer logs of an evaluation."""
    return any(key.startswith("eval_") and parsing.is_number(value) for key, value in cells.items())


def claims_state(log: LogFile) -> bool:
    """Whether a file is a trainer state, by its name or its ``log_history``."""
    return log.name.endswith("trainer_state.json") or (
        log.suffix == ".json" and b'"log_history"' in log.head()
    )


def read_state(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of a trainer state."""
    (log,) = logs
    builder = TableBuilder(log.path)
    notes: list[str] = []
    rows, state = parsing.json_list(log, "log_history", notes)
    has_kl = False
    for number, cells in rows:
        has_kl = has_kl or "kl" in cells
        if SUMMARY_KEY in cells:
            cells = {key: cell for key, cell in cells.items() if key.startswith(OF_SUMMARY)}
        builder.add(number, cells)
    if not len(builder):
        problem = "the run logged no row yet"
        advice = "Lower logging_steps, or wait until the run has logged"
        raise InputError(problem, path=log.path, key="log_history", advice=advice)
    planned = _count(state.get("max_steps"))
    yield Logged(
        builder.build(),
        framework="TRL",
        # TRL computes and logs the KL term exactly when its coefficient is not zero.
        facts={} if has_kl else {"kl_coefficient": 0.0},
        logging_steps=_logging_steps(state, planned),
        planned_steps=planned,
        warnings=tuple(notes),
    )


def _logging_steps(state: Mapping[str, Any], planned: int | None) -> int | None:
    value = parsing.cell_number(state.get("logging_steps"))
    if value is not None and 0 < value < 1 and planned:  # a share of the run in transformers
        return max(1, math.ceil(value * planned))
    return _count(value)


def _count(value: Any) -> int | None:
    number = parsing.cell_number(value)
    return int(number) if number is not None and math.isfinite(number) and number >= 1 else None


STATE_READER = Reader("TRL trainer_state.json", claims_state, read_state)


class Plan(NamedTuple):
    """How to place the rows of a run when its log is read again."""

    every: int | None  # Optimizer steps per train row; None to leave the steps open
    # The first row stands at the first step, before those at multiples of ``every``.
    has_first: bool = False
    drops_repeats: bool = False  # Every row was printed several times, and is to be read once
    # Where rows are placed by bars that ran ahead of them: from which row on, how many rows the
    # log lacks before it.
    lost: tuple[tuple[int, int], ...] = ()
    arithmetic: str = ""  # How ``every`` was found

    def losses(self) -> Iterator[str]:
        """Warnings of the rows that the log lacks."""
        before = 0
        for first, lost in self.lost:
            if lost > before:
                yield f"by the progress bar {lost - before} rows are lost before row {first}"
            before = lost


@dataclass
class ConsoleRun:
    """A run of a console log, whose rows have no step of their own, and the step of each."""

    builder: TableBuilder
    settings: dict[str, Any]  # What was printed before its first row
    total: int | None  # Planned steps, and the step from which it was resumed
    start: int
    plan: Plan | None  # What an earlier reading of the log found out
    reward_key: str
    rows: int = 0  # Train rows, and those with a reward
    rewards: int = 0
    # The row that closes a run was printed; it went on after a crash in the same log.
    is_closed: bool = False
    is_resumed: bool = False
    was_reset: bool = False  # Its progress bar has started again since the last row
    _keeps_kl: bool = True
    _first_count: int = 0
    _count: int = 0
    _counts_well: bool = True
    _gaps: Counter[int] = field(default_factory=Counter)
    _last_text: str = ""
    _times: int = 0
    _repeats: set[int] = field(default_factory=set)
    _bursts: list[tuple[int, int]] = field(default_factory=list)

    def train_row(
        self, number: int, cells: Mapping[str, str], text: str, is_cut: bool, count: int | None
    ) -> None:
        """Add a row of training, as it was printed and after what the progress bar showed."""
        if text == self._last_text:
            self._times += 1
            if self.plan is not None and self.plan.drops_repeats:
                return
        else:
            if self._times and len(self._repeats) < 2:
                self._repeats.add(self._times)
            self._last_text, self._times = text, 1
        self.rows += 1
        self.rewards += self.reward_key in cells
        # TRL computes and logs the KL term exactly when its coefficient is not zero.
        self._keeps_kl &= not is_cut and "reward_std" in cells and "kl" not in cells
        self._follow(count)
        self.builder.add(number, self._placed(cells), is_cut=is_cut)

    def other_row(self, number: int, cells: Mapping[str, str], is_cut: bool) -> None:
        """Add an evaluation, or the row that closes the run."""
        closes = SUMMARY_KEY in cells
        self.is_closed |= closes
        kept = {key: cell for key, cell in cells.items() if key.startswith(OF_SUMMARY)}
        self.builder.add(number, kept if closes else self._placed(cells), is_cut=is_cut)

    def revise(self) -> Plan | None:
        """How a second reading must place the rows; None where the first was right."""
        # Each row is printed by every node of a cluster.
        times = self._times if self._repeats == {self._times} else 1
        if self.rows >= 2 * limits.least_repeated_rows and self.plan is None and times > 1:
            self.rows //= times
            return (self._spacing() or Plan(None))._replace(drops_repeats=True)
        if self._counts_well:
            return None
        spacing, bursts = self._spacing(), self._burst_plan()
        even = None if spacing is None else Plan(spacing.every, lost=((1, 0),))
        if bursts is not None and bursts != even:
            return bursts
        is_partial = 0 < self.rewards < self.rows
        if spacing is not None and (self.start or spacing.has_first or is_partial):
            return spacing
        return Plan(None) if self._first_count else None

    def logged(self, label: str | None) -> Logged:
        """The run as the assembly takes it."""
        plan, spacing = self.plan, self._spacing()
        every, assumptions = None, []
        if plan is None and self._counts_well and self.rows:
            every = self._gaps.most_common(1)[0][0] if self._gaps else None
            assumptions.append(
                f"steps are those of the progress bar ({self._first_count}/{self.total} at the "
                "first row)"
            )
        elif plan is not None and plan.lost:
            every = plan.every
            assumptions.append(
                f"steps follow the progress bar, which moves {every} steps a row; the rows were "
                "printed several at a time, behind it"
            )
        elif spacing is not None:
            every = spacing.every
            assumptions.append(spacing.arithmetic)
        if plan is not None and plan.drops_repeats:
            assumptions.append("every row was printed several times and was read once")
        return Logged(
            self.builder.build(),
            label=label,
            settings=self.settings,
            facts={"kl_coefficient": 0.0} if self._keeps_kl and self.rewards else {},
            logging_steps=every,
            planned_steps=self.total,
            assumptions=tuple(assumptions),
            warnings=() if plan is None else tuple(plan.losses()),
        )

    def _follow(self, count: int | None) -> None:
        """Note how the progress bar has moved on since the last row."""
        # A console whose two streams are buffered apart shows the bars first and the rows later:
        # then rows share a count.
        if count:
            if self._bursts and self._bursts[-1][1] == count:
                self._bursts.pop()
            self._bursts.append((self.rows, count))
        if not count or count == self._count or (count < self._count and not self.was_reset):
            self._counts_well = False
        elif not self._count:
            self._first_count = count
        elif count > self._count:
            self._gaps[count - self._count] += 1
        self._count, self.was_reset = count or 0, False

    def _placed(self, cells: Mapping[str, str]) -> Mapping[str, str | int]:
        plan, step = self.plan, None
        if plan is None:
            step = self._count if self._counts_well and self._count else None
        elif plan.lost and plan.every:
            lost = max(lost for first, lost in plan.lost if first <= self.rows)
            step = plan.every * (self.rows + lost)
        elif plan.every is not None:
            done = plan.every * (self.rows - plan.has_first)
            step = self.start + (done or min(self.rows, 1))
        return cells if "step" in cells or step is None else {**cells, "step": step}

    def _spacing(self) -> Plan | None:
        """Spacing of the rows of a run that was logged to its end."""
        rows, total, span = self.rows, self.total, (self.total or 0) - self.start
        if self.is_resumed or not self.is_closed or rows < 1 or span < rows:
            return None
        steps = f"{total} optimization steps"
        if self.start:
            steps = f"({steps} - {self.start} before it was resumed)"
        # Fewer steps than a window are left at the end without a row.
        least, most = span // (rows + 1) + 1, span // rows
        if span % rows == 0:
            every, counted, remark = most, rows, ""
        elif least == most:
            every, counted, remark = most, rows, ", rounded down"
        elif least > most and rows > 1 and span % (rows - 1) == 0:
            every, counted, remark = span // (rows - 1), rows - 1, ", with a row at step 1"
        else:
            return None
        arithmetic = f"logging_steps = {steps} / {counted} rows = {every}{remark}"
        return Plan(every, counted < rows, arithmetic=arithmetic)

    def _burst_plan(self) -> Plan | None:
        """Steps of rows that were printed several at a time, from the bars between the bursts."""
        # A stream that goes to a file is written when its buffer is full: the bar then stands at
        # the last row's step or, as long as one row is still held back, up to two rows ahead.
        # Where it stands further ahead, rows are lost.
        bursts = self._bursts
        if len(bursts) < 3 or self.is_resumed:
            return None
        gaps = [(count - was, rows - seen) for (seen, was), (rows, count) in pairwise(bursts)]
        every = round(median(steps / rows for steps, rows in gaps))
        if every < 1 or any(steps <= 0 for steps, _ in gaps):
            return None
        ahead = [count // every - rows for rows, count in bursts]
        lost: list[tuple[int, int]] = []
        first = 1
        for place, (rows, _) in enumerate(bursts):
            missing = min(ahead[place:])
            if missing < 0:
                return None
            if not lost or missing > lost[-1][1] + 1:
                lost.append((first, missing))
            first = rows + 1
        # More than a few holes are no holes, but rows that do not keep step with the bar.
        return Plan(every, lost=tuple(lost)) if len(lost) <= 4 else None


def claims(log: LogFile) -> bool:
    """Whether a file is a console log with printed dicts that hold a reward."""
    # Lines that only look like rows; where so many stand none is sought any longer.
    return any(map(_holds_row, islice(parsing.lines_with(log, "'reward':"), 200)))


def _holds_row(line: str) -> bool:
    return any(
        is_event(cells) and parsing.is_number(cells.get("reward"))
        for _, _, cells, _ in parsing.find_dicts(line)
        if cells.keys().isdisjoint(CONSOLE["foreign"])
    )


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a console log: those with rewards, else all of them."""
    (log,) = logs
    runs = _Console(log, columns, {}).read()
    plans = {place: plan for place, run in enumerate(runs) if (plan := run.revise()) is not None}
    # Whether bars can be trusted, and how far apart rows stand, shows only at the end.
    runs = _Console(log, columns, plans).read() if plans else runs
    if not runs:
        problem = "no line holds a logged row ({'loss': ..., 'reward': ...})"
        advice = "Give the console output of the trainer, or its trainer_state.json"
        raise InputError(problem, path=log.path, advice=advice)
    shown = [run for run in runs if run.rewards] or runs
    for place, run in enumerate(shown, start=1):
        yield run.logged(str(place) if len(shown) > 1 else None)


class _Console:
    """One reading of a console."""

    def __init__(self, log: LogFile, columns: Columns, plans: Mapping[int, Plan]) -> None:
        self._log, self._columns, self._plans = log, columns, plans
        self._printed = PrintedSettings()
        self._begun = 0
        self._runs: list[ConsoleRun] = []
        self._bars: dict[int, int] = {}
        self._last_total: int | None = None

    def read(self) -> list[ConsoleRun]:
        for number, text, *_ in self._log.lines(strict=False):
            at = 0
            for row in parsing.find_dicts(text):
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
        bars = parsing.PATTERNS["bar"].findall(text) if "%|" in text else ()
        for description, done, total in bars:
            # Bars of vLLM and of data preparation say what they are of; that of training does not.
            if not description.strip():
                self._bar(int(done), int(total))
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

    def _bar(self, done: int, total: int) -> None:
        """Take a progress bar of training as drawn once."""
        run = self._runs[-1] if self._runs else None
        if run is not None and done == 0 and total == run.total:
            run.was_reset = True
        if len(self._bars) < 64 or total in self._bars:
            self._bars[total] = done
        self._last_total = total

    def _row(self, number: int, cells: dict[str, str], text: str, is_cut: bool) -> None:
        is_train = SUMMARY_KEY not in cells and ("loss" in cells or not is_evaluation(cells))
        run = self._runs[-1] if self._runs else None
        if run is None or (is_train and run.rows and (run.is_closed or self._is_announced)):
            run = self._begin()
        if is_train:
            run.total = run.total or self._last_total
            run.train_row(number, cells, text, is_cut, self._bars.get(run.total or 0))
        else:
            run.other_row(number, cells, is_cut)

    def _begin(self) -> ConsoleRun:
        printed = self._printed
        run = ConsoleRun(
            TableBuilder(self._log.path),
            dict(printed.settings),
            printed.planned_steps if self._is_announced else None,
            printed.resumed_at if self._is_announced else 0,
            self._plans.get(len(self._runs)),
            self._columns.keys.get("reward", "reward"),
        )
        self._runs.append(run)
        self._begun = printed.announced
        printed.began()
        return run


READER = Reader("TRL console log", claims, read, claim=Claim.DICT)
