"""Whether a file is text that a console may have printed, and what it holds."""

from __future__ import annotations

import re
from collections.abc import Callable

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LFS_MARK, UTF16_MARKS, LogFile

OVERLAP = 16_384
"""Bytes shared by the blocks of a search, so that no row is lost between two."""


def find_in_console(
    log: LogFile, sign: bytes, sought: re.Pattern[bytes], accept: Callable[[str], bool]
) -> bool:
    """Whether a console log holds a row of some form."""
    if log.suffix not in (".log", ".txt", ".out", ".err", ""):
        return False
    try:
        head = log.head()
        is_wide = head.startswith(UTF16_MARKS)
        if head.startswith(LFS_MARK) or (not is_wide and b"\0" in head):
            return False
        if _finds(log.head_text(), sign, sought, accept):
            return True
        return (
            not is_wide and len(head) == limits.HEAD_BYTES and _reads_on(log, sign, sought, accept)
        )
    except InputError:
        return False


def _finds(
    text: bytes, sign: bytes, sought: re.Pattern[bytes], accept: Callable[[str], bool]
) -> bool:
    if sign not in text:
        return False
    for refused, found in enumerate(sought.finditer(text)):
        first = max(0, found.start() - OVERLAP)
        start = text.rfind(b"\n", first, found.start()) + 1
        end = text.find(b"\n", found.end(), found.end() + OVERLAP)
        line = text[max(start, first) : end if end >= 0 else len(text)]
        if accept(line[: 4 * OVERLAP].decode("utf-8", "replace")):
            return True
        if refused > 200:  # what only looks like rows is no reason to search for long
            return False
    return False


def _reads_on(
    log: LogFile, sign: bytes, sought: re.Pattern[bytes], accept: Callable[[str], bool]
) -> bool:
    left, rest = limits.SEARCHED_BYTES, b""
    with log.open() as stream:
        while left > 0 and (block := stream.read(min(left, limits.BLOCK_BYTES))):
            if _finds(rest + block, sign, sought, accept):
                return True
            left, rest = left - len(block), block[-OVERLAP:]
    return False
