"""Python dicts that trainers print, anywhere on a line, and the counters of progress bars."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

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
    try:
        return text is not None and float(text) is not None
    except ValueError:
        return False


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
