"""Hand-written loops: keys, settings, and consoles (``12/100 | loss=-1.2 | reward=0.25``)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader, TableBuilder
from advisor.runs.logfiles.parsing import LEAST_PASTED, lines_with
from advisor.runs.trainers.derived import Derived, SettingsExtractor, patterns, read_data
from advisor.runs.trainers.key_table import passes, plain, read_key_table, spellings
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key, words
from advisor.runs.trainers.registry import Trainer, key_tables


def unless_another(keys: Iterable[str]) -> str | None:
    """Name of the hand-written loop, unless some keys are the marks of another trainer."""
    names = [name for key in keys for name in spellings(plain(key))]
    others = (other for other in key_tables() if other.name != NAME)
    return None if any(other.score(names) for other in others) else NAME


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a hand-written loop, beyond the names that many loops share."""
    inside = {
        key.rpartition(".")[2]: value
        for key, value in settings.items()
        if key.partition(".")[0] in read_data("own_loop")["sections"]
    }
    extractor = SettingsExtractor({**inside, **settings}, "own_loop")
    prompts = extractor.amount("prompts_per_step")
    if prompts is not None and prompts.value > 0:
        extractor.take("prompts_per_step", prompts)
        if prompts.name == "batch":
            extractor.assume(f"{prompts} taken as prompts per optimizer step (not completions)")
    extractor.take("epochs_per_refresh", passes(extractor, "epochs_per_refresh", settings))
    extractor.take_trained()
    for ours in ("clip_low", "clip_high"):
        bound = extractor.amount(ours)
        # Below it an ``epsilon`` is Adam's, not a trust region.
        if bound is not None and bound.value >= 0.01:
            extractor.take(ours, bound)
    return extractor.derived()


_TABLE = read_key_table("own_loop", derive=derive)
KEY_TABLE = replace(
    _TABLE,
    series={
        series: (*names, *(name.replace("_", " ") for name in names))
        for series, names in _TABLE.series.items()
    },
)
NAME = KEY_TABLE.name
TRACES = tuple(name for (name,) in KEY_TABLE.reward[8:])
"""Names of a list that holds the mean reward of each step."""

PATTERNS = patterns("own_loop")
WORDS = read_data("own_loop")["console"]


def claims(log: LogFile) -> bool:
    """Whether the lines of a text log count steps and state a reward."""
    if not set(WORDS["of_texts"]).isdisjoint(words(log.name)):
        return False
    steps = uncounted = 0
    least = LEAST_PASTED if log.suffix == ".md" else 2  # a page shows examples
    # So many lines that mention a reward and log no step are another's.
    for line in itertools.islice(lines_with(log, "eward"), 400):
        step = parse_step(line)
        steps += step is not None and _has_reward(step.cells)
        uncounted += step is None and parse_uncounted(line) is not None
        if is_of_another(line):
            return False
        if steps >= least:
            return True
    return uncounted > least


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a console; lines of several may be mixed, told apart by their tags."""
    (log,) = logs
    console = _OwnConsole(log)
    for line in log.lines(strict=False):
        *whole, last = line.text.split("\r")
        for text in whole:
            console.take(line.number, text)
        console.take(line.number, last, is_cut=line.is_cut or line.is_open)
    yield from console.runs()


class _Run:
    """Rows and settings of one tag."""

    def __init__(self, log: LogFile) -> None:
        self.builder = TableBuilder(log.path)
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


class _OwnConsole:
    """Sorts lines by the run that they belong to."""

    def __init__(self, log: LogFile) -> None:
        self._log = log
        self._runs: dict[str | None, _Run] = {}
        self._settings: dict[str | None, dict[str, str]] = {}
        self._uncounted = TableBuilder(log.path)
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
            if len(self._runs) >= limits.most_tags:
                problem = f"the lines name more than {limits.most_tags:,} runs"
                advice = "Give one console per run"
                raise InputError(problem, path=self._log.path, row=number, advice=advice)
            self._runs[step.tag] = _Run(self._log)
        self._runs[step.tag].add(number, step, is_cut)

    def runs(self) -> Iterator[Logged]:
        built = {tag: run.builder.build() for tag, run in self._runs.items()}
        rows = {tag: self._runs[tag] for tag, table in built.items() if _has_reward(table.keys)}
        if not rows and len(self._uncounted):
            settings = self._settings.get(None, {})
            yield Logged(self._uncounted.build(), framework=NAME, settings=settings)
            return
        if not rows:
            problem = "no line logs a step with a reward"
            advice = "Print lines such as 'step 12/100 | loss=0.1 | reward=0.25'"
            raise InputError(problem, path=self._log.path, advice=advice)
        common: dict[str, str] = {}
        for tag, settings in self._settings.items():
            if tag not in rows or tag is None:
                common = {**settings, **common}
        for place, (tag, run) in enumerate(rows.items(), start=1):
            several = len(rows) > 1
            percents = ", ".join(sorted(run.percents))
            yield Logged(
                built[tag],
                label=(tag or str(place)) if several else None,
                has_own_id=several and tag is not None,
                framework=unless_another(built[tag].keys),
                settings={**common, **self._settings.get(tag, {})},
                planned_steps=run.planned,
                assumptions=(f"{percents}: percent was divided by 100",) if percents else (),
            )

    def _take_header(self, text: str) -> None:
        if len(text) > 400 or ("=" not in text and ":" not in text):
            return
        self._headers += 1
        # Later on only lines with a tag, as final reports have, are worth the search.
        if self._headers > 5_000 and not text.startswith("["):
            return
        tag, settings = parse_settings(text)
        known = self._settings.setdefault(tag, {})
        for key, value in settings.items():
            known.setdefault(key, value)


class Step(NamedTuple):
    """A logged step, of the run whose name the line begins with."""

    tag: str | None
    step: int  # Of the epoch, where the counter starts again in each
    planned: int | None
    cells: dict[str, float]  # Percentages as fractions, and the keys of those
    percents: tuple[str, ...]
    last: str  # The last value as it is written
    epoch: int | None = None
    epochs: int | None = None


def parse_step(line: str) -> Step | None:
    """A step with a reward or an evaluation, if the line logs one."""
    if not PATTERNS["hint"].search(line, 0, limits.longest_pairs):
        return None
    text = PATTERNS["ansi"].sub("", line[: limits.longest_pairs])
    epoch = PATTERNS["epoch"].search(text, 0, limits.latest_counter)
    counter = PATTERNS["bare"].match(text) or PATTERNS["worded"].search(
        text, 0, limits.latest_counter
    )
    if counter is None and epoch is not None:
        counter = PATTERNS["within"].match(text, epoch.end())
    if counter is None or is_of_another(text) or PATTERNS["of_episodes"].search(text) is not None:
        return None
    cells: dict[str, float] = {}
    percents: list[str] = []
    last = ""
    for key, value, unit in _pairs(text[counter.end() :]):
        number = float(value)
        if unit.strip() == "%":
            number /= 100
            percents.append(key)
        cells[key], last = number, value
    if not (_has_reward(cells) or has_evaluation_key(cells)):
        return None
    planned = counter.group("planned")
    return Step(
        _tag(text, counter),
        int(counter.group("step")),
        int(planned) if planned else None,
        cells,
        tuple(percents),
        last,
        int(epoch.group("epoch")) if epoch is not None else None,
        int(epoch.group("epochs")) if epoch is not None and epoch.group("epochs") else None,
    )


def parse_uncounted(line: str) -> dict[str, float] | None:
    """Cells of a line that logs an update or an evaluation and does not say of which step."""
    if not PATTERNS["hint"].search(line, 0, limits.longest_pairs) or is_of_another(line):
        return None
    text = PATTERNS["ansi"].sub("", line[: limits.longest_pairs])
    inside = {key: float(value) for key, value in PATTERNS["in_dict"].findall(text)}
    cells = {
        key: float(value) / (100 if unit.strip() == "%" else 1)
        for key, value, unit in _pairs(PATTERNS["in_braces"].sub(" ", text))
    }
    if not inside and not cells:
        return None
    cells = {**inside, **cells}
    is_evaluation = has_evaluation_key(cells) and not _has_reward(cells)
    if is_evaluation and PATTERNS["not_of_a_step"].search(text) is None:
        return cells
    if not any(word in WORDS["of_an_update"] for key in cells for word in words(key)):
        return None
    count = next((cells[key] for key in WORDS["counts"] if cells.get(key, 0.0) > 0), None)
    total = next((cells[key] for key in WORDS["totals"] if key in cells), None)
    if count is not None and total is not None:
        cells["reward"] = total / count
    return cells if _has_reward(cells) else None


def _has_reward(keys: Iterable[str]) -> bool:
    return any(map(is_reward, keys))


def is_of_another(line: str) -> bool:
    """Whether a line is one of verl, TRL or OpenRLHF."""
    return PATTERNS["of_another"].search(line, 0, limits.longest_pairs) is not None


def is_reward(key: str) -> bool:
    """Whether a key of a console names the reward of a step."""
    name = plain(key)
    return "reward" in name and (
        has_reward_key([name]) or any(name in level for level in KEY_TABLE.reward)
    )


def parse_settings(line: str) -> tuple[str | None, dict[str, str]]:
    """Tag of a line, and the settings that it states, in lower case and without blanks."""
    text = PATTERNS["ansi"].sub("", line[: limits.longest_pairs])
    settings: dict[str, str] = {}
    flags = PATTERNS["flag"].finditer(text) if ".py " in text else ()
    for found in (*PATTERNS["setting"].finditer(text), *flags):
        key = found.group("key").lower().replace(" ", "_").replace("-", "_")
        value = found.group("value").strip("\"'.")
        if PATTERNS["name" if key in WORDS["named"] else "number"].fullmatch(value):
            settings.setdefault(key, value)
    # A banner of the library that adds the adapter, whatever the loop.
    if trained := patterns("trl")["trained"].search(text):
        settings["trained_percent"] = trained[3]
    tag = PATTERNS["tag"].match(text)
    return None if tag is None else _run_name(tag.group("tag")), settings


def _tag(text: str, counter: re.Match[str]) -> str | None:
    if "tag" in counter.re.groupindex:
        return _run_name(counter.group("tag"))
    found = PATTERNS["tag"].match(text)
    if found is None or text[found.end() : counter.start()].strip():
        return None
    return _run_name(found.group("tag"))


def _run_name(tag: str | None) -> str | None:
    return None if tag is None or PATTERNS["no_tag"].fullmatch(tag) else tag


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Keys and values, with ``=``, ``:`` or, between bars or commas, a blank between them."""
    has_bars = "|" in text or text.count(", ") >= 3
    for part in PATTERNS["separator"].split(text):
        first, at = PATTERNS["words_pair"].match(part), 0
        if first is None and has_bars:
            first = PATTERNS["blank_pair"].match(part)
            at = len(part) if first is not None else 0
        elif first is not None:
            at = first.end()
        for found in (*filter(None, [first]), *PATTERNS["pair"].finditer(part, at)):
            yield found.group("key"), found.group("value"), found.group("unit") or ""


READER = Reader(
    "console of a training loop (step 12/100 | loss=... | reward=...)",
    claims,
    read,
    claim=Claim.PAIRS,
)
TRAINER = Trainer(KEY_TABLE.name, (KEY_TABLE,), (READER,))
