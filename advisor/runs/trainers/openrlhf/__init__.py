"""OpenRLHF and its forks: consoles with ``Global step 12: {...}`` or progress bars, and export."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.console_text import find_dicts, find_in_console
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.derived import as_bytes, patterns, read_data
from advisor.runs.trainers.export import Launch, fill_template, from_environment, refuse
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.openrlhf.settings import PrintedArguments, derive, observe
from advisor.runs.trainers.registry import read_trainer

STEP = "global_step"
"""Key under which the count of rollouts is handed over."""

PATTERNS = patterns("openrlhf")


class Bar(NamedTuple):
    """A progress bar as drawn once: of which episode or epoch, its counter, its postfix."""

    # Whether it counts batches of rollouts, or the mini-batches of one.
    is_episode: bool
    turn: int
    turns: int
    done: int
    total: int
    pairs: tuple[tuple[str, str], ...]

    @property
    def cells(self) -> dict[str, float]:
        """Numbers of the postfix."""
        return {key: float(value) for key, value in self.pairs}

    @property
    def is_trained(self) -> bool:
        """Whether it tells of the policy; the critic has bars of its own."""
        return "reward" in self.cells or "rm" in self.cells


class Printed(NamedTuple):
    """A printed dict: the step before it, its cells, and whether its end is lost."""

    step: int
    cells: Mapping[str, str]
    is_cut: bool


def claims(log: LogFile) -> bool:
    """Whether a file is a console log with a step of OpenRLHF."""
    return find_in_console(log, b"_lr", as_bytes(PATTERNS["row"]), _holds_row)


def _holds_row(line: str) -> bool:
    marks = read_data("openrlhf")["console"]["marks"]
    if any(mark in row for _, row, _ in _steps(line) for mark in marks):
        return True
    bars = [bar.cells for bar in find_bars(line) if bar.is_trained]
    return any("act_lr" in cells or "actor_lr" in cells for cells in bars)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of a console log."""
    (log,) = logs
    rows, of_episodes, of_batches = (TableBuilder(log.path, kept_keys(columns)) for _ in range(3))
    episodes, batches, arguments = Episodes(of_episodes), Batches(of_batches), PrintedArguments()
    has_steps = False
    for number, text, is_long, *_ in log.lines(strict=False):
        arguments.feed(text)
        for step, cells, is_cut in _evaluations(text):
            rows.add(number, {STEP: step, **cells}, is_cut=is_cut)
        for step, cells, is_cut in _steps(text):
            rows.add(number, {STEP: step, **cells}, is_cut=is_cut or is_long)
            has_steps = True
        for bar in find_bars(text):
            arguments.settings.setdefault(
                "num_episodes" if bar.is_episode else "max_epochs", bar.turns
            )
            if bar.is_episode and bar.pairs:  # without a postfix it counts prompts (since 0.9.3)
                arguments.settings["num_rollouts_per_episodes"] = bar.total
            if not has_steps and bar.is_trained:
                (episodes if bar.is_episode else batches).see(number, bar)
    episodes.close()
    batches.close()
    planned, remarks = None, ["progress bars show three significant digits"]
    if has_steps:
        remarks = []
    elif len(of_episodes):
        rows, planned = of_episodes, episodes.planned
        remarks.append(episodes.remark)
    elif len(of_batches):
        rows = of_batches
        remarks.append(f"{STEP} = count of the bars 'Train epoch', one batch of rollouts each")
    else:
        raise InputError(
            "the log has no step of OpenRLHF (Global step 1: {...}, or a bar with a reward)",
            path=log.path,
            advice="Give the log once the first batch of rollouts was trained on",
        )
    yield Logged(
        rows.build(),
        framework="OpenRLHF",
        settings=arguments.settings,
        planned_steps=planned,
        assumptions=tuple(remarks),
    )


def _steps(text: str) -> Iterator[Printed]:
    """Steps printed as dicts."""
    return _printed("step", text) if "lobal step " in text else iter(())


def _evaluations(text: str) -> Iterator[Printed]:
    return _printed("evaluation", text) if "Eval" in text else iter(())


def _printed(name: str, text: str) -> Iterator[Printed]:
    for found in itertools.islice(PATTERNS[name].finditer(text), 4):
        printed = next(find_dicts(text[found.end() : found.end() + (1 << 16)]), None)
        if printed is not None:
            yield Printed(int(found[found.lastindex or 1]), printed.cells, printed.is_cut)


def find_bars(text: str) -> Iterator[Bar]:
    """Bars drawn on a line, in order."""
    if "%|" not in text:
        return
    for name, turn, turns, done, total, inside in PATTERNS["bar"].findall(text):
        pairs = tuple(PATTERNS["pair"].findall(inside)) if "=" in inside else ()
        yield Bar(name == "Episode", int(turn), int(turns), int(done), int(total), pairs)


class Episodes:
    """Means of whole batches of rollouts, from the bar of an episode."""

    # The postfix of a batch is set before the counter moves on, and stands until the next.
    def __init__(self, builder: TableBuilder) -> None:
        self._builder = builder
        self._held: Bar | None = None
        self._line = self._last = self._before = 0
        self._size = (0, 0)

    @property
    def planned(self) -> int | None:
        """Batches of rollouts of the whole run."""
        return self._size[0] * self._size[1] or None

    @property
    def remark(self) -> str:
        """Where the length is from."""
        turns, total = self._size
        return (
            f"{self.planned} batches of rollouts planned = {turns} episodes x {total} "
            "(the bar 'Episode')"
        )

    def see(self, line: int, bar: Bar) -> None:
        """Take a bar that has a postfix."""
        place, held = (bar.turn - 1) * bar.total + bar.done, self._held
        self._size = bar.turns, bar.total
        if held is not None and held.pairs == bar.pairs and place >= self._last:
            self._line, self._last = line, place
            return
        self.close()
        if held is None or place < self._last:
            self._before = max(place - 1, 0)
        self._held, self._line, self._last = bar, line, place

    def close(self) -> None:
        """Hand over the batch that is held."""
        if self._held is not None:
            self._before = max(self._last, self._before + 1)
            self._builder.add(self._line, {STEP: self._before, **self._held.cells})
            self._held = None


class Batches:
    """Means over the mini-batches of each batch of rollouts, from their bars."""

    def __init__(self, builder: TableBuilder) -> None:
        self._builder = builder
        self._held: Bar | None = None
        self._line = self._count = self._size = 0
        self._sums: dict[str, float] = {}

    def see(self, line: int, bar: Bar) -> None:
        """Take a bar that has a postfix."""
        if self._held is not None and self._is_next_batch(self._held, bar):
            self.close()
        self._line = line
        if self._held is None or self._held.pairs != bar.pairs:
            self._size += 1
            for key, value in bar.cells.items():
                self._sums[key] = self._sums.get(key, 0.0) + value
        self._held = bar

    def close(self) -> None:
        """Hand over the batch that is held."""
        if self._size:
            self._count += 1
            means = {key: total / self._size for key, total in self._sums.items()}
            self._builder.add(self._line, {STEP: self._count, **means})
        self._sums, self._size, self._held = {}, 0, None

    @staticmethod
    def _is_next_batch(held: Bar, bar: Bar) -> bool:
        if bar.turn != held.turn:
            return bar.turn < held.turn
        is_full = held.done == held.total == bar.done
        return bar.done < held.done or (is_full and bar.pairs != held.pairs)


READER = Reader("OpenRLHF console log", claims, read, claim=Claim.LINE)


def render(launch: Launch, model: str | None) -> str:
    """Write the flags as a script."""
    launch.check_corrected("OpenRLHF")
    settings = launch.settings
    if settings.optimizer == "sgd":
        refuse("sgd", "openrlhf")
    limit, prompt = settings.max_completion_length, settings.max_prompt_length
    is_lora, has_kl = settings.adapter == "lora", bool(settings.kl_coefficient)
    refreshes, lag = launch.refreshes("OpenRLHF"), settings.lag
    queue = launch.in_refreshes("queue", lag, "OpenRLHF") if lag else None
    return fill_template(
        "openrlhf",
        launch,
        # The flag of the prompt's limit is of both limits together.
        unknown=("max_prompt_length",) if limit is None else (),
        model=from_environment(model),
        samples=launch.rollout_prompts * refreshes,
        both_lengths=None if limit is None or prompt is None else prompt + limit,
        warmup_ratio=warmup_ratio(launch.steps, settings.warmup_steps),
        # AdamW without decay is Adam.
        weight_decay=0.0 if settings.optimizer == "adam" else None,
        use_loss="use_loss" if has_kl else None,
        kl_estimator="k3" if has_kl else None,
        targets=(settings.adapter_targets or "").replace(",", " ") or None if is_lora else None,
        # Engines share the trainer's devices, or run ahead on devices of their own.
        engine_sleep=None if queue else "enable_sleep",
        shared_memory=None if queue else 0.6,
        async_enable="async_enable" if queue else None,
        own_devices=launch.devices if queue else None,
        steps_ahead=f"{settings.lag:g}" if queue else None,
        queue=queue,
    )


def warmup_ratio(steps: int, warmup_steps: int) -> float:
    """Share of the run that OpenRLHF turns back into a number of warm-up steps."""
    # The plain quotient misses it where ceil(steps * ratio) is a rounding error too large.
    ratio = warmup_steps / steps
    return ratio if math.ceil(steps * ratio) == warmup_steps else math.nextafter(ratio, 0.0)


TRAINER = read_trainer(
    "openrlhf",
    readers=(READER,),
    export=render,
    derive=derive,
    observe=observe,
)
