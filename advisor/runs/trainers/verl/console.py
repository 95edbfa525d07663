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
from advisor.runs.trainers.verl.printed_settings import PATTERNS, PrintedSettings, plain_value

SUFFIXES = frozenset({"", ".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".console"})

COARSE = (
    "numbers are printed with three decimals: the learning rate, which reads 0.000, was left "
    "out, and small values of other series and coefficients are rounded"
)

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
    return as_bytes(PATTERNS["row"]).search(raw) is not None


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read a console log: one run, or several attempts at it, in the order of the file."""
    (log,) = logs
    builder = TableBuilder(log.path, kept_keys(columns))
    rows, printed = Rows(builder), PrintedSettings()
    for line in log.lines(strict=False):
        if not rows.take(line):
            printed.feed(line.text)
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
        elif plain_value(number_text(parts[-1].rpartition(":")[2])) is NotImplemented:
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
        number = plain_value(number_text(value))
        if not key or number is NotImplemented:
            return None
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        whole = key.removesuffix(IN_UNITS)
        if is_number and whole != key and whole in RATES:
            self._builder.seen((key,))
            return whole, number * 1e-4
        if key in RATES and value.lstrip("-") == "0.000" and self._builder.wants(key):
            self.is_coarse, is_number = True, False
        return key, number if is_number else None


READER = Reader("verl console log", claims, read, claim=Claim.LINE)
