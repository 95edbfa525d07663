"""Whether a file is text that a console may have printed, and what it holds."""

from __future__ import annotations

import re
from collections.abc import Callable

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LFS_MARK, UTF16_MARKS, LogFile, without_holes

SUFFIXES = frozenset({".log", ".txt", ".out", ".err", ""})


def find_in_console(
    log: LogFile, sign: bytes, sought: re.Pattern[bytes], accept: Callable[[str], bool]
) -> bool:
    """Whether a console log holds a row of some form."""
    if log.suffix not in SUFFIXES:
        return False
    try:
        is_wide = log.magic(2).startswith(UTF16_MARKS)
        head = log.head()
        if head.startswith(LFS_MARK) or (not is_wide and b"\0" in without_holes(head)):
            return False
        search = _Search(sign, sought, accept)
        if search.finds(log.head_text()) or is_wide or len(head) < limits.HEAD_BYTES:
            return search.is_found
        return _reads_on(log, search)
    except InputError:
        return False


class _Search:
    def __init__(
        self, sign: bytes, sought: re.Pattern[bytes], accept: Callable[[str], bool]
    ) -> None:
        self._sign, self._sought, self._accept = sign, sought, accept
        self._refused = 0
        self.is_found = False

    @property
    def is_over(self) -> bool:
        return self.is_found or self._refused > limits.MOST_REFUSED_PLACES

    def finds(self, text: bytes) -> bool:
        if self._sign not in text:
            return False
        for found in self._sought.finditer(text):
            first = max(0, found.start() - limits.CONSOLE_OVERLAP_BYTES)
            start = text.rfind(b"\n", first, found.start()) + 1
            end = text.find(b"\n", found.end(), found.end() + limits.CONSOLE_OVERLAP_BYTES)
            line = text[max(start, first) : end if end >= 0 else len(text)]
            if self._accept(line[: 4 * limits.CONSOLE_OVERLAP_BYTES].decode("utf-8", "replace")):
                self.is_found = True
            else:
                self._refused += 1
            if self.is_over:
                break
        return self.is_found


def _reads_on(log: LogFile, search: _Search) -> bool:
    left, rest = limits.SEARCHED_BYTES, b""
    with log.open() as stream:
        while (
            left > 0
            and not search.is_over
            and (block := stream.read(min(left, limits.BLOCK_BYTES)))
        ):
            left -= len(block)
            block = without_holes(block, is_part=True)
            if b"\0" in block:
                return False
            search.finds(rest + block)
            rest = block[-limits.CONSOLE_OVERLAP_BYTES :]
    return search.is_found
