"""What a console may have printed: whether a file is one, dicts on its lines, progress bars."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LFS_MARK, UTF16_MARKS, LogFile
from advisor.runs.logfiles.parsing import cell_number

SUFFIXES = frozenset({"", ".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".console"})

BEFORE, LONGEST_LINE = 16_384, 65_536
"""Bytes of a line that are looked at: before a sign, and of it all."""

ITEM = re.compile(
    r"""['"]([^'"\\\n]{1,200})['"] {0,4}: {0,4}"""
    r"""(?:'([^'\n]{0,300})'|"([^"\n]{0,300})"|(?:[a-z][\w.]{0,40}\()?([-+]?[\w.][\w.+-]{0,60}))"""
    r"""(?= {0,4}[,})])"""
)
"""A key and its value: quoted, bare (a number, ``nan``, ``None``), or in ``np.float64(...)``.

A value counts only where a comma or bracket ends it: what stands last on a cut line may have lost
digits.
"""

BRACKET = re.compile(r"[{}]")
INNERMOST = re.compile(r"\{[^{}]*\}")
BAR = re.compile(
    r"(?:^|\r)([^\r|]{0,200}?) {0,200}\d{1,3}%\|[^|\r]{0,400}\| *(\d{1,9})/(\d{1,9}) \["
)


def lines_with(log: LogFile, sign: bytes) -> Iterator[str]:
    """Lines that hold a sign, among the first megabytes of a text log; none of another file."""
    # A digit behind the last dot is part of a name: "train_qwen2.5-7b".
    if log.suffix not in SUFFIXES and not log.suffix[1:2].isdigit():
        return
    rest = b""
    for block in _text_blocks(log):
        text = rest + block
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        rest = text[end:][:LONGEST_LINE]
        at = text.find(sign, 0, end)
        while at >= 0:
            start = max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at)) + 1
            ends = (text.find(b"\n", at, end), text.find(b"\r", at, end))
            stop = min(place for place in ends if place >= 0)
            first = max(start, at - BEFORE)
            yield text[first : min(stop, first + LONGEST_LINE)].decode("utf-8", "replace")
            at = text.find(sign, stop, end)


def _text_blocks(log: LogFile) -> Iterator[bytes]:
    """Head of a log and what follows it, up to where a row must have been found."""
    head, left = log.readable_head(), limits.SEARCHED_BYTES
    is_wide = head.startswith(UTF16_MARKS)
    if not head or head.startswith(LFS_MARK) or (b"\0" in head and not is_wide):
        return
    yield log.head_text()
    if len(head) >= limits.HEAD_BYTES and not is_wide:
        # Downloads and samples that a reward function prints may fill a console before a row.
        with contextlib.suppress(InputError), log.open() as stream:
            stream.read(limits.HEAD_BYTES)
            while left > 0 and (block := stream.read(limits.BLOCK_BYTES)):
                yield block
                left -= len(block)
    yield b"\n"


class Printed(NamedTuple):
    """A printed dict: where it starts, its cells as text, and whether its end is lost."""

    start: int
    end: int
    cells: dict[str, str]
    is_cut: bool


class Bar(NamedTuple):
    """A progress bar as drawn once: what stands before it, and its counter."""

    description: str
    done: int
    total: int


def find_dicts(text: str) -> Iterator[Printed]:
    """Dicts of a line that are not empty; what is nested in them is passed over."""
    start = text.find("{'")
    while start >= 0:
        end = text.find("}", start) + 1
        if end and text.find("{", start + 1, end) < 0:
            yield Printed(start, end, _cells(text[start:end]), False)
        else:
            end = _closing(text, start)
            body = text[start + 1 : end or len(text)]
            for _ in range(8):
                body, replaced = INNERMOST.subn("None", body)
                if not replaced:
                    break
            # What follows a bracket that is left open is not known to be of this dict.
            yield Printed(start, end or len(text), _cells(body.partition("{")[0]), not end)
            if not end:
                return
        start = text.find("{'", end)


def find_bars(text: str) -> Iterator[Bar]:
    """Progress bars of a line, in the order drawn."""
    if "%|" in text:
        for description, done, total in BAR.findall(text):
            yield Bar(description.strip(), int(done), int(total))


def is_number(text: str | None) -> bool:
    """Whether a cell is a number, finite or not."""
    return cell_number(text) is not None


def _cells(body: str) -> dict[str, str]:
    return {
        key: single or double or bare
        for key, single, double, bare in ITEM.findall(body)
        if bare != "None"
    }


def _closing(text: str, start: int) -> int:
    """Place after the bracket that closes the one at ``start``, 0 where none does."""
    depth = 0
    for bracket in BRACKET.finditer(text, start):
        depth += 1 if bracket.group() == "{" else -1
        if depth == 0:
            return bracket.end()
    return 0
