"""Consoles of verl and its forks: rows (``step:12 - key:value``), and settings before them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.config_files import CONSTANTS, Scalar, flatten
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import Line, LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader, TableBuilder
from advisor.runs.logfiles.parsing import cell_number, is_number, lines_with
from advisor.runs.trainers.derived import patterns, read_data

PATTERNS = patterns("verl")
COARSE = (read_data("verl")["assumptions"]["coarse"],)

PLANNED_NAME = "trainer.total_training_steps"


def claims(log: LogFile) -> bool:
    """Whether a text log holds metrics in the form of verl's console."""
    return any(map(PATTERNS["row"].search, lines_with(log, "step:")))


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read a console log: one run, or several attempts at it, in the order of the file."""
    (log,) = logs
    builder = TableBuilder(log.path)
    rows, printed = Rows(builder), VerlPrintedSettings()
    for line in log.lines(strict=False):
        if not rows.take(line):
            printed.feed(line.text)
    printed.end()
    if not len(builder):
        problem = "the log has no line of metrics (step:1 - key:value - ...)"
        advice = "Give the console output of the training, with 'console' in trainer.logger"
        raise InputError(problem, path=log.path, advice=advice)
    settings, assumptions, warnings = printed.settings()
    yield Logged(
        builder.build(),
        settings=settings,
        facts=printed.facts(),
        assumptions=assumptions,
        warnings=(*warnings, *(COARSE if rows.is_coarse else ())),
    )


def number_text(value: str) -> str:
    """Take ``np.float64(0.1)`` for ``0.1``."""
    return value[value.rfind("(") + 1 : -1] if value.endswith(")") else value


class Rows:
    """Fills a table with rows, each from one line."""

    def __init__(self, builder: TableBuilder) -> None:
        # Whether numbers are printed with three decimals, too few for a learning rate.
        self.is_coarse = False
        self._builder = builder
        self._last_keys: set[str] = set()

    def take(self, line: Line) -> bool:
        """Add the row of a line; False where it has none."""
        # The step of a row may follow a progress bar or any other text.
        if "step:" not in line.text:
            return False
        text = PATTERNS["ansi"].sub("", line.text)
        found = PATTERNS["step"].search(text)
        if found is None:
            return False
        rest = text[found.end() :].partition("\r")[0].rstrip()
        if "[repeated " in rest:
            rest = PATTERNS["repeated"].sub("", rest)
        # W&B cuts lines at so many characters, without and with their line end.
        lengths = {len(line.text.rstrip("\r")), len(text.rstrip("\r"))}
        is_cut = line.is_cut or not lengths.isdisjoint({4095, 4096})
        parts = rest.split(" - ")
        if is_cut:
            parts.pop()  # what is left of a number may read as another number
        elif not is_value(number_text(parts[-1].rpartition(":")[2])):
            glued = PATTERNS["glued"].match(parts.pop())
            is_cut = glued is None
            parts += [] if glued is None else [":".join(glued.groups())]
        cells: dict[str, Any] = dict(filter(None, map(self._pair, parts)))
        if not cells:
            return True
        last = parts[-1].rpartition(":")[0]
        if line.is_open and not is_cut and self._last_keys and last not in self._last_keys:
            cells.pop(last, None)  # the last line of all, torn within a number
            is_cut = True
        elif not is_cut:
            self._last_keys.add(last)
        self._builder.add(line.number, {"step": int(found.group(1)), **cells}, is_cut=is_cut)
        return True

    def _pair(self, part: str) -> tuple[str, float | None] | None:
        """Key and number of a part; None for a torn pair, of which the key may be torn too."""
        key, _, value = part.rpartition(":")
        if not key or not is_value(number_text(value)):
            return None
        number = cell_number(number_text(value))
        if key in ("actor/lr", "critic/lr") and value.lstrip("-") == "0.000":
            self.is_coarse, number = True, None
        return key, number


class Tagged(NamedTuple):
    """A line without colours and without ray's prefix, and the process that printed it."""

    tag: str
    text: str


def untag(line: str) -> Tagged:
    """Take ray's prefix ``(TaskRunner pid=1, ip=...)`` and all colours off a line."""
    found = PATTERNS["tag"].match(line)
    tag = "" if found is None else found.group(1)
    text = line if found is None else line[found.end() :]
    if "\x1b" in text:
        text = PATTERNS["ansi"].sub("", text)
    if "[repeated " in text:
        text = PATTERNS["repeated"].sub("", text)
    return Tagged(tag, text.rstrip())


def is_value(text: str) -> bool:
    """Whether a text is a number, a switch or None, as Python and YAML write them."""
    return text in CONSTANTS or is_number(text)


class PrintedDict:
    """A dictionary that ``pprint`` spread over lines, among lines of others."""

    def __init__(self, first: Tagged) -> None:
        self._tag, self._lines, self._seen, self._depth = first.tag, list[str](), 0, 0
        self._add(first.text)

    @property
    def settings(self) -> dict[str, Scalar]:
        """Its scalars and short lists by dotted names; none where its end is lost."""
        try:
            return flatten(ast.literal_eval("\n".join(self._lines)))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return {}

    def feed(self, line: Tagged) -> bool:
        """Read one more line; False where the dictionary is at its end."""
        self._seen += 1
        found = PATTERNS["continued"].match(line.text)
        # Where a line was printed in pieces, others of the process may come between them.
        is_piece = not self._lines[-1].endswith((",", "{", "[", "("))
        if line.tag == self._tag and found is not None and (found[1] or is_piece):
            self._add(line.text)
        return self._depth > 0 and self._seen <= 8_000

    def _add(self, text: str) -> None:
        self._lines.append(text[: limits.longest_line])
        bare = PATTERNS["string"].sub("", self._lines[-1])
        self._depth += sum(map(bare.count, "{[(")) - sum(map(bare.count, "}])"))


class VerlPrintedSettings:
    """Collects settings line by line: configurations, command lines, counts and sizes."""

    def __init__(self) -> None:
        self._open: PrintedDict | None = None
        self._dumps: list[dict[str, Any]] = []
        self._commands: list[dict[str, Any]] = []
        self._planned: set[int] = set()
        self._sizes: set[float] = set()

    def feed(self, text: str) -> None:
        """Read one line that holds no metrics."""
        if self._open is not None:
            if not self._open.feed(untag(text)):
                self.end()
        elif "{'" in text:
            line = untag(text)
            if PATTERNS["dict_start"].match(line.text):
                self._open = PrintedDict(line)
        elif " contains " in text:
            size = PATTERNS["size"].search(text[: limits.longest_line])
            units = {"B": 1e9, "M": 1e6, "K": 1e3}
            self._sizes |= {float(size.group(1)) * units[size.group(2)]} if size else set()
        elif found := PATTERNS["planned"].search(text[: limits.longest_line]):
            self._planned.add(int(found.group(1)))
        elif "main_ppo" in text or "verl.trainer" in text:
            self._note_command(text)

    def end(self) -> None:
        """Close a configuration that is still open."""
        found = {} if self._open is None else self._open.settings
        # Another dictionary may begin as a configuration does.
        if any(key.startswith(("actor_rollout_ref.", "algorithm.", "trainer.")) for key in found):
            self._dumps.append(found)
        self._open = None

    def settings(self) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
        """Settings under verl's names, what was assumed, and warnings."""
        sources = self._dumps or self._commands
        settings: dict[str, Any] = {}
        unlike: set[str] = set()
        for source in sources:
            for key, value in source.items():
                if settings.setdefault(key, value) != value:
                    unlike.add(key)
        settings = {key: value for key, value in settings.items() if key not in unlike}
        warnings = []
        if unlike:
            warnings.append(
                f"the log holds {len(sources)} configurations that differ in {len(unlike)} "
                f"settings, which were left out: {', '.join(sorted(unlike)[:5])}"
            )
        assumptions = []
        is_open = settings.get(PLANNED_NAME) is None and PLANNED_NAME not in unlike
        if is_open and len(self._planned) == 1:
            (settings[PLANNED_NAME],) = self._planned
            assumptions.append(f"{PLANNED_NAME} is the printed 'Total training steps'")
        return settings, tuple(assumptions), tuple(warnings)

    def facts(self) -> dict[str, Any]:
        """Size of the model, where one alone is printed."""
        return {"parameters": next(iter(self._sizes))} if len(self._sizes) == 1 else {}

    def _note_command(self, text: str) -> None:
        overrides = {}
        for match in PATTERNS["override"].finditer(text[: limits.longest_line]):
            value = match.group(2).strip("'\"")
            if "$" not in value and len(value) <= 500:
                overrides[match.group(1)] = value
        if overrides:
            self._commands.append(overrides)


READER = Reader("verl console log", claims, read, claim=Claim.LINE)
