"""Consoles of hand-written training loops: ``[tag] 12/100 | loss=-1.2 | reward=0.25``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.generic import keys as own_loop
from advisor.runs.trainers.generic.console_lines import (
    LONGEST,
    Step,
    is_of_another,
    is_reward,
    parse_settings,
    parse_step,
    parse_uncounted,
)
from advisor.runs.trainers.keys import kept_keys

SUFFIXES = frozenset({".log", ".txt", ".out", ".err"})
SEARCHED = 8 << 20
"""Bytes in which the first steps are sought: downloads may fill a console before them."""

LEAST_STEPS = 2
"""Lines with a step and a reward by which a console is known."""

LEAST_UNCOUNTED = 3
"""Lines with a reward and without a step by which a console is known that counts nowhere."""

MOST_TRIED = 400
"""Lines that mention a reward and are tried, before a file counts as another's."""

MOST_TAGS = 1_000
MOST_HEADERS = 5_000
LONGEST_HEADER = 400


def claims(log: LogFile) -> bool:
    """Whether the lines of a text log count steps and state a reward."""
    if log.suffix not in (*SUFFIXES, ""):
        return False
    head = log.head_text()
    if b"\0" in head:  # holes aside, which are out
        return False
    search = _Search()
    search.feed(head)
    if len(log.head()) < limits.HEAD_BYTES or search.is_over:
        search.feed(b"\n")
        return search.is_found
    try:
        with log.open() as stream:
            stream.read(limits.HEAD_BYTES)
            read_on = limits.HEAD_BYTES
            while read_on < SEARCHED and not search.is_over and (block := stream.read(1 << 20)):
                search.feed(block)
                read_on += len(block)
    except InputError:
        return False
    return search.is_found


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a console; lines of several may be mixed, told apart by their tags."""
    (log,) = logs
    console = _Console(log, columns)
    for line in log.lines(strict=False):
        *whole, last = line.text.split("\r")
        for text in whole:
            console.take(line.number, text)
        console.take(line.number, last, is_cut=line.is_cut or line.is_open)
    yield from console.runs()


class _Search:
    """Counts steps in blocks of a file."""

    def __init__(self) -> None:
        self.steps = self._uncounted = self._tried = 0
        self._is_another = False
        self._rest = b""

    @property
    def is_over(self) -> bool:
        return self._is_another or self.steps >= LEAST_STEPS or self._tried >= MOST_TRIED

    @property
    def is_found(self) -> bool:
        is_known = self.steps >= LEAST_STEPS or self._uncounted >= LEAST_UNCOUNTED
        return is_known and not self._is_another

    def feed(self, block: bytes) -> None:
        text = self._rest + block
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        self._rest = text[end:][:LONGEST]
        at = text.find(b"eward", 0, end)
        while at >= 0 and not self.is_over:
            start = max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at)) + 1
            stop = min(p for p in (text.find(b"\n", at), text.find(b"\r", at), end) if p >= 0)
            self._tried += 1
            line = text[start : min(stop, start + LONGEST)].decode("utf-8", "replace")
            step = parse_step(line)
            self.steps += step is not None and any(is_reward(key) for key in step.cells)
            self._uncounted += step is None and parse_uncounted(line) is not None
            self._is_another = is_of_another(line)
            at = text.find(b"eward", stop, end)


class _Run:
    """Rows and settings of one tag."""

    def __init__(self, log: LogFile, columns: Columns) -> None:
        self.builder = TableBuilder(log.path, kept_keys(columns))
        self.planned: int | None = None
        self.percents: set[str] = set()
        self._shape: tuple[object, ...] = ()
        self._before = self._last = 0
        self._epoch: int | None = None

    def add(self, number: int, step: Step, is_cut: bool) -> None:
        cells = dict(step.cells)
        shape = (*cells, len(step.last.partition(".")[2]))
        is_cut = is_cut and shape != self._shape  # printed like the row before it, it is whole
        if is_cut:
            cells.popitem()
        self._shape = shape
        count = self._counted(step)
        self.percents.update(step.percents)
        self.builder.add(number, {**cells, "step": count}, is_cut=is_cut)

    def _counted(self, step: Step) -> int:
        """Steps since the first epoch began; many loops count anew in each."""
        epoch = step.epoch
        if epoch is not None and self._epoch is not None:
            if epoch < self._epoch:
                self._before = 0
            elif epoch > self._epoch and step.step <= self._last:
                self._before += max(self._last, step.planned or 0)
        self._epoch, self._last = epoch, step.step
        if step.planned is not None:
            # Of how many steps an epoch is shows only when the next one begins.
            is_known = self._before or (step.epochs or 1) == 1
            times = step.epochs or 1 if self._before else 1
            self.planned = step.planned * times if is_known else self.planned
        return self._before + step.step


class _Console:
    """Sorts lines by the run that they belong to."""

    def __init__(self, log: LogFile, columns: Columns) -> None:
        self._log, self._columns = log, columns
        self._runs: dict[str | None, _Run] = {}
        self._settings: dict[str | None, dict[str, str]] = {}
        self._uncounted = TableBuilder(log.path, kept_keys(columns))
        self._headers = 0

    def take(self, number: int, text: str, *, is_cut: bool = False) -> None:
        step = parse_step(text)
        if step is None:
            cells = None if self._runs else parse_uncounted(text)
            # A line that ends in a digit may have lost others.
            if cells is not None and not (is_cut and text[-1:].isdigit()):
                self._uncounted.add(number, cells)
            else:
                self._take_header(text)
            return
        if step.tag not in self._runs:
            if len(self._runs) >= MOST_TAGS:
                raise InputError(
                    f"the lines name more than {MOST_TAGS:,} runs",
                    path=self._log.path,
                    row=number,
                    advice="Give one console per run",
                )
            self._runs[step.tag] = _Run(self._log, self._columns)
        self._runs[step.tag].add(number, step, is_cut)

    def runs(self) -> Iterator[Logged]:
        rows = {tag: run for tag, run in self._runs.items() if _has_reward(run)}
        if not rows and len(self._uncounted):
            yield Logged(
                self._uncounted.build(),
                framework=own_loop.NAME,
                settings=self._settings.get(None, {}),
            )
            return
        if not rows:
            raise InputError(
                "no line logs a step with a reward",
                path=self._log.path,
                advice="Print lines such as 'step 12/100 | loss=0.1 | reward=0.25'",
            )
        common: dict[str, str] = {}
        for tag, settings in self._settings.items():
            if tag not in rows or tag is None:
                common = {**settings, **common}
        for place, (tag, run) in enumerate(rows.items(), start=1):
            table = run.builder.build()
            several = len(rows) > 1
            percents = ", ".join(sorted(run.percents))
            yield Logged(
                table,
                label=(tag or str(place)) if several else None,
                has_own_id=several and tag is not None,
                framework=own_loop.unless_another(table.keys),
                settings={**common, **self._settings.get(tag, {})},
                planned_steps=run.planned,
                assumptions=(f"{percents}: percent was divided by 100",) if percents else (),
            )

    def _take_header(self, text: str) -> None:
        if len(text) > LONGEST_HEADER or ("=" not in text and ":" not in text):
            return
        self._headers += 1
        # Later on only lines with a tag, as final reports have, are worth the search.
        if self._headers > MOST_HEADERS and not text.startswith("["):
            return
        tag, settings = parse_settings(text)
        known = self._settings.setdefault(tag, {})
        for key, value in settings.items():
            known.setdefault(key, value)


def _has_reward(run: _Run) -> bool:
    return any(is_reward(key) for key in run.builder.build().keys)


READER = Reader(
    "console of a training loop (step 12/100 | loss=... | reward=...)",
    claims,
    read,
    claim=Claim.PAIRS,
)
