"""Consoles of verl and its forks (``step:12 - key:value``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import UTF16_MARKS, Line, LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.derived import as_bytes
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.verl.printed_settings import (
    LONGEST_LINE,
    PATTERNS,
    PrintedSettings,
    PrintedYaml,
    plain_value,
    untag,
)

SUFFIXES = frozenset({"", ".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".console"})

COARSE = (
    "numbers are printed with three decimals: the learning rate, which reads 0.000, was left "
    "out, and small values of other series and coefficients are rounded"
)

PATIENCE = 40
"""Lines of other origin that may stand between two lines of one row."""

RATES = ("actor/lr", "critic/lr")

IN_UNITS = "(1e-4)"
"""How verl up to 0.2 ended the key of a learning rate that it printed as a multiple of 0.0001."""


def claims(log: LogFile) -> bool:
    """Whether a text log holds metrics in the form of verl's console."""
    # A digit behind the last dot is part of a name: "train_qwen2.5-7b".
    if log.suffix not in SUFFIXES and not log.suffix[1:2].isdigit():
        return False
    try:
        head = log.head_text()
        if _has_row(head):
            return True
        is_long = len(head) >= limits.HEAD_BYTES and log.head(2) not in UTF16_MARKS
        if not is_long or b"\0" in head:
            return False
        # A reward function that prints every sample fills a megabyte before the first step.
        with log.open() as stream:
            return _has_row(stream.read(8 << 20))
    except InputError:
        return False


def _has_row(raw: bytes) -> bool:
    return any(as_bytes(PATTERNS[name]).search(raw) for name in ("row", "yaml_row"))


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read a console log: one run, or several attempts at it, in the order of the file."""
    (log,) = logs
    builder = TableBuilder(log.path, kept_keys(columns))
    rows, printed = Rows(builder), PrintedSettings()
    for line in log.lines(strict=False):
        if not rows.take(line):
            printed.feed(line.text)
        if line.is_open and rows.number == line.number:
            rows.tear()
    rows.end()
    printed.end()
    if not len(builder):
        raise InputError(
            "the log has no line of metrics (step:1 - key:value - ...)",
            path=log.path,
            advice="Give the console output of the training, with 'console' in trainer.logger",
        )
    settings, assumptions, warnings = printed.settings()
    yield Logged(
        builder.build(),
        settings=settings,
        facts=printed.facts(),
        assumptions=assumptions,
        warnings=(*warnings, *((COARSE,) if rows.is_coarse else ())),
    )


def number_text(value: str) -> str:
    """Take ``np.float64(0.1)`` for ``0.1``."""
    return value[value.rfind("(") + 1 : -1] if value.endswith(")") else value


class Rows:
    """Fills a table with rows, each from one line or from the lines of a block."""

    def __init__(self, builder: TableBuilder) -> None:
        # One-based line at which the latest row began.
        self.number = 0
        # Whether numbers are printed with three decimals, too few for a learning rate.
        self.is_coarse = False
        self._builder = builder
        self._cells: dict[str, Any] | None = None
        self._is_cut = self._is_block = self._has_pairs = False
        self._tag = self._last_key = ""
        self._last_keys: set[str] = set()
        self._patience = 0
        self._yaml: PrintedYaml | None = None

    def take(self, line: Line) -> bool:
        """Begin a row, or go on with one; False where a line does neither."""
        # The step of a row may follow a progress bar or any other text.
        if "step:" in line.text:
            text = PATTERNS["ansi"].sub("", line.text)
            found = PATTERNS["step"].search(text)
            if found is not None:
                self._start(line, text, int(found.group(1)), text[found.end() :])
                return True
        if self._goes_on(line.text):
            return True
        if "Step " in line.text:
            tag, text = untag(line.text)
            found = PATTERNS["yaml_step"].fullmatch(text.strip())
            if found is not None:
                self._begin(line.number, int(found.group(1)), is_block=True)
                self._yaml = PrintedYaml(tag, "/")
                return True
        return False

    def _start(self, line: Line, text: str, step: int, rest: str) -> None:
        """Begin a row at the step of a line, given without colours and after the step."""
        self._begin(line.number, step, is_block=not rest)
        if not rest:
            self._tag = untag(line.text).tag
            return
        rest = rest.partition("\r")[0].rstrip()
        if "[repeated " in rest:
            rest = PATTERNS["repeated"].sub("", rest)
        # W&B cuts lines at so many characters, without and with their line end.
        lengths = {len(line.text.rstrip("\r")), len(text.rstrip("\r"))}
        self._is_cut = line.is_cut or not lengths.isdisjoint({4095, 4096})
        parts = rest.split(" - ")
        if self._is_cut:
            parts.pop()  # what is left of a number may read as another number
        self._fill(parts)
        last = number_text(parts[-1].rpartition(":")[2]) if parts else ""
        if not self._is_cut and plain_value(last) is NotImplemented:
            glued = PATTERNS["glued"].match(parts[-1])
            self._is_cut = glued is None
            self._fill([] if glued is None else [":".join(glued.groups())])

    def _goes_on(self, text: str) -> bool:
        """Read one more line if it goes on with the row before it."""
        if self._patience <= 0 or self._cells is None or len(text) > LONGEST_LINE:
            return False
        tagged = untag(text)
        if self._yaml is not None:
            if tagged.tag != self._yaml.tag:
                return False
            is_own = self._yaml.feed(tagged)
            if not is_own:
                self.end()
            return is_own
        self._patience -= 1
        tag, body = tagged.tag, tagged.text.lstrip()
        if not (body.startswith("- ") or (self._is_block and tag in ("", self._tag))):
            return False
        parts = []
        for part in body.removeprefix("- ").split(" - "):
            key, _, value = part.strip(" {},").rpartition(":")
            key, value = key.strip(" '\""), value.strip(" '\"")
            if "/" not in key or " " in key or plain_value(number_text(value)) is NotImplemented:
                return False
            parts.append(f"{key}:{value}")
        self._fill(parts)
        self._patience = PATIENCE
        return True

    def end(self) -> None:
        """Add the row that is still open."""
        if self._yaml is not None and any("/" in key for key in self._yaml.cells):
            self._fill([f"{key}:{value}" for key, value in self._yaml.cells.items()])
        cells, self._cells, self._yaml, self._patience = self._cells, None, None, 0
        if cells is None or not self._has_pairs:
            return
        self._builder.add(self.number, cells, is_cut=self._is_cut)
        if not self._is_cut:
            self._last_keys.add(self._last_key)

    def tear(self) -> None:
        """Drop the last pair of the open row if no row before it ended with its key."""
        is_new = bool(self._last_keys) and self._last_key not in self._last_keys
        if self._cells is not None and is_new and not self._is_block and not self._is_cut:
            self._cells.pop(self._last_key, None)
            self._is_cut = True

    def _begin(self, number: int, step: int, *, is_block: bool) -> None:
        self.end()
        self.number, self._cells = number, {"step": step}
        self._is_block, self._is_cut, self._has_pairs, self._last_key = is_block, False, False, ""
        self._patience = PATIENCE

    def _fill(self, parts: list[str]) -> None:
        if self._cells is None or not parts:
            return
        for part in parts:
            key, _, value = part.rpartition(":")
            number = plain_value(number_text(value))
            if not key or number is NotImplemented:
                continue  # a torn pair, of which the key may be torn too
            self._has_pairs = True
            is_number = isinstance(number, int | float) and not isinstance(number, bool)
            whole = key.removesuffix(IN_UNITS)
            if is_number and whole != key and whole in RATES:
                self._builder.seen((key,))
                key, number = whole, number * 1e-4
            elif key in RATES and value.lstrip("-") == "0.000" and self._builder.wants(key):
                self.is_coarse, is_number = True, False
            self._cells[key] = number if is_number else None
        self._last_key = parts[-1].rpartition(":")[0]


READER = Reader("verl console log", claims, read, claim=Claim.LINE)
