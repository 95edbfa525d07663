"""One run of a console log: its rows, and the optimizer step of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple, Protocol

from advisor.runs.logfiles import limits
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.trl.log_events import OF_SUMMARY, SUMMARY_KEY

STEP = "step"

LEAST_BURSTS = 3
"""Bursts of rows from which their distance in steps is told."""

MOST_HOLES = 4
"""Places where a log lacks rows, above which its rows are not placed by the bar."""


class PrintedRun(Protocol):
    """A run that was printed, with the number of its rewards."""

    rewards: int

    def logged(self, label: str | None) -> Logged:
        """The run under its label."""


class Plan(NamedTuple):
    """How to place the rows of a run when its log is read again.

    Attributes
    ----------
    every : int or None
        Optimizer steps per train row; None to leave the steps open.
    has_first : bool
        The first row stands at the first step, before those at multiples of ``every``.
    drops_repeats : bool
        Every row was printed several times, and is to be read once.
    lost : tuple of (int, int)
        Where rows are placed by bars that ran ahead of them: from which row on, how many rows
        the log lacks before it.
    """

    every: int | None
    has_first: bool = False
    drops_repeats: bool = False
    lost: tuple[tuple[int, int], ...] = ()

    def losses(self) -> Iterator[str]:
        """What to say of the rows that the log lacks."""
        before = 0
        for first, lost in self.lost:
            if lost > before:
                yield f"by the progress bar {lost - before} rows are lost before row {first}"
            before = lost


class Spacing(NamedTuple):
    """Optimizer steps per train row, whether the first step has a row too, and the arithmetic."""

    every: int
    has_first: bool
    arithmetic: str


@dataclass
class ConsoleRun:
    """A run without a step key.

    Attributes
    ----------
    builder : TableBuilder
    settings : dict of str to object
        What was printed before its first row.
    total, start : int or None, int
        Planned steps, and the step from which it was resumed.
    plan : Plan or None
        What an earlier reading of the log found out.
    reward_key : str
    rows, rewards : int
        Train rows, and those with a reward.
    is_closed, is_resumed : bool
        The row that closes a run was printed; it went on after a crash in the same log.
    was_reset : bool
        Its progress bar has started anew since the last row.
    """

    builder: TableBuilder
    settings: dict[str, Any]
    total: int | None
    start: int
    plan: Plan | None
    reward_key: str
    rows: int = 0
    rewards: int = 0
    is_closed: bool = False
    is_resumed: bool = False
    was_reset: bool = False
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
        """Add a row of training.

        Parameters
        ----------
        number : int
            Its line.
        cells, text : mapping, str
            The row, and how it was printed.
        is_cut : bool
        count : int or None
            What the progress bar showed before it.
        """
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
        self._keeps_kl = self._keeps_kl and not is_cut and "reward_std" in cells
        self._keeps_kl = self._keeps_kl and "kl" not in cells
        self._follow(count)
        self.builder.add(number, self._placed(cells), is_cut=is_cut)

    def other_row(self, number: int, cells: Mapping[str, str], is_cut: bool) -> None:
        """Add an evaluation, or the row that closes the run."""
        closes = SUMMARY_KEY in cells
        self.is_closed = self.is_closed or closes
        kept = {key: cell for key, cell in cells.items() if key.startswith(OF_SUMMARY)}
        self.builder.add(number, kept if closes else self._placed(cells), is_cut=is_cut)

    def revise(self) -> Plan | None:
        """How a second reading must place the rows; None where the first was right."""
        times = self._printed_times()
        if times > 1:
            self.rows //= times
            spacing = self._spacing()
            return Plan(spacing and spacing.every, bool(spacing and spacing.has_first), True)
        if self._counts_well:
            return None
        spacing = self._spacing()
        burst_plan = self._burst_plan()
        if burst_plan is not None and (
            spacing is None or burst_plan != Plan(spacing.every, lost=((1, 0),))
        ):
            return burst_plan
        if spacing is not None and (
            self.start or spacing.has_first or 0 < self.rewards < self.rows
        ):
            return Plan(spacing.every, spacing.has_first)
        return Plan(None) if self._first_count else None

    def logged(self, label: str | None) -> Logged:
        """The run as the assembly takes it."""
        assumptions = []
        every = None
        spacing = self._spacing()
        if self.plan is None and self._counts_well and self.rows:
            every = self._gaps.most_common(1)[0][0] if self._gaps else None
            assumptions.append(
                f"steps are those of the progress bar ({self._first_count}/{self.total} at the "
                "first row)"
            )
        elif self.plan is not None and self.plan.lost:
            every = self.plan.every
            assumptions.append(
                f"steps follow the progress bar, which moves {every} steps a row; the rows were "
                "printed several at a time, behind it"
            )
        elif spacing is not None:
            every = spacing.every
            assumptions.append(spacing.arithmetic)
        if self.plan is not None and self.plan.drops_repeats:
            assumptions.append("every row was printed several times and was read once")
        return Logged(
            self.builder.build(),
            label=label,
            settings=self.settings,
            facts={"kl_coefficient": 0.0} if self._keeps_kl and self.rewards else {},
            logging_steps=every,
            planned_steps=self.total,
            assumptions=tuple(assumptions),
            warnings=() if self.plan is None else tuple(self.plan.losses()),
        )

    def _follow(self, count: int | None) -> None:
        """Note how the progress bar has moved on since the last row.

        A console whose two streams are buffered apart shows the bars first and the rows later:
        then rows share a count.
        """
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
        if STEP in cells:
            return cells
        if self.plan is None:
            return {**cells, STEP: self._count} if self._counts_well and self._count else cells
        if self.plan.every is None:
            return cells
        if self.plan.lost:
            lost = max(lost for first, lost in self.plan.lost if first <= self.rows)
            return {**cells, STEP: self.plan.every * (self.rows + lost)}
        done = self.plan.every * (self.rows - self.plan.has_first)
        return {**cells, STEP: self.start + (done or min(self.rows, 1))}

    def _spacing(self) -> Spacing | None:
        """Spacing of the rows of a run that was logged to its end."""
        rows, total, span = self.rows, self.total, (self.total or 0) - self.start
        if self.is_resumed or not self.is_closed or rows < 1 or span < rows:
            return None
        steps = f"{total} optimization steps"
        if self.start:
            steps = f"({steps} - {self.start} before it was resumed)"
        if span % rows == 0:
            every = span // rows
            return Spacing(every, False, f"logging_steps = {steps} / {rows} rows = {every}")
        # Fewer steps than a window are left at the end without a row.
        least, most = span // (rows + 1) + 1, span // rows
        if least == most:
            what = f"logging_steps = {steps} / {rows} rows = {most}, rounded down"
            return Spacing(most, False, what)
        if least > most and rows > 1 and span % (rows - 1) == 0:
            every = span // (rows - 1)
            what = f"logging_steps = {steps} / {rows - 1} rows = {every}, with a row at step 1"
            return Spacing(every, True, what)
        return None

    def _burst_plan(self) -> Plan | None:
        """Steps of rows that were printed several at a time, from the bars between the bursts.

        A stream that goes to a file is written when its buffer is full: the bar then stands at
        the last row's step or, as long as one row is still held back, up to two rows ahead. Where
        it stands further ahead, rows are lost.
        """
        bursts = self._bursts
        if len(bursts) < LEAST_BURSTS or self.is_resumed:
            return None
        gaps = [(count - was, rows - seen) for (seen, was), (rows, count) in pairwise(bursts)]
        if any(steps <= 0 for steps, _ in gaps):
            return None
        every = round(median(steps / rows for steps, rows in gaps))
        if every < 1:
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
        return Plan(every, lost=tuple(lost)) if len(lost) <= MOST_HOLES else None

    def _printed_times(self) -> int:
        """How often each row was printed: by every node of a cluster, once."""
        if self.plan is not None or self.rows < 2 * limits.LEAST_REPEATED_ROWS:
            return 1
        return self._times if self._repeats == {self._times} else 1


def logged_runs(runs: Sequence[PrintedRun]) -> Iterator[Logged]:
    """Runs with rewards, else all of them, numbered where there are several."""
    shown = [run for run in runs if run.rewards] or runs
    for place, run in enumerate(shown, start=1):
        yield run.logged(str(place) if len(shown) > 1 else None)
