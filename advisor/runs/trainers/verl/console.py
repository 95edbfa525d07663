"""Console logs of verl and its forks: ``step:12 - key:value - key:value``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import UTF16_MARKS, Line, LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.verl.printed_config import ANSI, untag
from advisor.runs.trainers.verl.printed_settings import PrintedSettings
from advisor.runs.trainers.verl.rows import Rows

SUFFIXES = frozenset({"", ".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".console"})

DEEP = 8 << 20
"""Bytes of start-up messages and samples after which a log is no longer taken for one of verl."""

ROW = re.compile(rb"step:\d{1,9}(?: - |[ \t\r]*\n[^\n]{0,120}?- )[\w.@+\-]+/[^\s:]*:")
"""A line of metrics, or the first lines of a block with one metric each."""

YAML_ROW = re.compile(
    rb"Step \d{1,9}[ \t\r]*\n(?:[^\n]{0,200}\n){0,3}?"
    rb"[^\n]{0,120}?\b(?:actor|critic|global_seqlen|perf|val):[ \t\r]*\n"
)
"""The first lines of a block of EasyR1, and lines of other processes between them."""

STEP = re.compile(r"step:(\d{1,9})(?: - |\s*$)")
YAML_STEP = re.compile(r"Step (\d{1,9})")

COARSE = (
    "numbers are printed with three decimals: the learning rate, which reads 0.000, was left "
    "out, and small values of other series and coefficients are rounded"
)


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
            return _has_row(stream.read(DEEP))
    except InputError:
        return False


def _has_row(raw: bytes) -> bool:
    for pattern in (ROW, YAML_ROW):
        for found in pattern.finditer(raw):
            before = raw[found.start() - 1 : found.start()]
            if not (before.isalnum() or before in (b"_", b"/", b".", b"-")):
                return True
    return False


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read a console log: one run, or several attempts at it, in the order of the file."""
    (log,) = logs
    builder = TableBuilder(log.path, kept_keys(columns))
    rows, printed = Rows(builder), PrintedSettings()
    number = 0
    for line in log.lines(strict=False):
        number = line.number
        if not (_starts(line, rows) or rows.goes_on(line.text)):
            if "Step " in line.text and _starts_yaml(line, rows):
                continue
            printed.feed(line.text)
    if rows.number == number and rows.looks_torn() and not _ends_with_newline(log):
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


def _starts(line: Line, rows: Rows) -> bool:
    """Begin a row where a line states a step; it may follow a progress bar or any other text."""
    text = line.text
    at = text.find("step:")
    if at < 0:
        return False
    if "\x1b" in text:
        text = ANSI.sub("", text)
        at = text.find("step:")
    while at >= 0:
        before = text[at - 1 : at]
        if not (before.isalnum() or before in ("_", "/", ".", "-")):
            found = STEP.match(text, at)
            if found is not None:
                rows.start(line, text, int(found.group(1)), text[found.end() :])
                return True
        at = text.find("step:", at + 5)
    return False


def _starts_yaml(line: Line, rows: Rows) -> bool:
    tag, text = untag(line.text)
    found = YAML_STEP.fullmatch(text.strip())
    if found is not None:
        rows.start_yaml(line.number, int(found.group(1)), tag)
    return found is not None


def _ends_with_newline(log: LogFile) -> bool:
    last = b""
    with log.open() as stream:
        while block := stream.read(limits.BLOCK_BYTES):
            last = block[-2:]
    return b"\n" in last


READER = Reader("verl console log", claims, read, claim=Claim.LINE)
