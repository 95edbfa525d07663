"""What a console may have printed: whether a file is one, dicts on its lines, progress bars."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LFS_MARK, UTF16_MARKS, LogFile
from advisor.runs.logfiles.parsing import cell_number

OVERLAP = 16_384  # Bytes shared by the blocks of a search, so that no row is lost between two

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


def find_in_console(
    log: LogFile, sign: bytes, sought: re.Pattern[bytes], accept: Callable[[str], bool]
) -> bool:
    """Whether a console log holds a row of some form."""
    if log.suffix not in (".log", ".txt", ".out", ".err", ""):
        return False
    head = log.readable_head()
    is_wide = head.startswith(UTF16_MARKS)
    if head.startswith(LFS_MARK) or (b"\0" in head and not is_wide):
        return False
    is_whole = is_wide or len(head) < limits.HEAD_BYTES
    further = () if is_whole else log.blocks(limits.SEARCHED_BYTES, OVERLAP)
    blocks = itertools.chain((log.head_text(),) if head else (), further)
    return any(_finds(block, sign, sought, accept) for block in blocks)


def _finds(
    text: bytes, sign: bytes, sought: re.Pattern[bytes], accept: Callable[[str], bool]
) -> bool:
    for refused, found in enumerate(sought.finditer(text) if sign in text else ()):
        first = max(0, found.start() - OVERLAP)
        start = text.rfind(b"\n", first, found.start()) + 1
        end = text.find(b"\n", found.end(), found.end() + OVERLAP)
        line = text[max(start, first) : end if end >= 0 else len(text)]
        if accept(line[: 4 * OVERLAP].decode("utf-8", "replace")):
            return True
        if refused > 200:  # what only looks like rows is no reason to search for long
            return False
    return False


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
