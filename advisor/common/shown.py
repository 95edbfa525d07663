"""What every room shows: the version, harmless text, progress."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Final

DEFAULT_SEED: Final = 1
"""Seed where none is given."""

try:
    VERSION = version("grpo-advisor")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that reorder text
    "\u2028\u2029\ufeff\ud800-\udfff]"  # line ends of other kinds, and halves of characters
)


def harmless(text: str) -> str:
    r"""Text with every steering character as ``\u001b``, as JSON spells it."""
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def without_password(text: str) -> str:
    """Text with every password of a URL in it, or of what is cut off from one, as stars."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", text)


def counted(number: int, noun: str) -> str:
    """So many things, one of them without the plural: ``1 run``, ``2 runs``."""
    plural = "es" if noun.endswith(("s", "tch")) else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def html_table(title: str, names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Table for a notebook; names out of logs make no HTML of their own."""

    def line(cells: Iterable[object], tag: str) -> str:
        texts = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in cells)
        return "".join(f"<{tag}>{escape(harmless(text))}</{tag}>" for text in texts)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    head = f"<caption>{escape(harmless(title))}</caption><tr>{line(names, 'th')}</tr>"
    return f"<table>{head}{body}</table>"


def scientific(value: float, digits: int = 1) -> str:
    """A learning rate or a size in few characters: ``3e-4``, ``1.2e-3``."""
    lead, power = f"{value:.{digits}e}".split("e")
    return f"{lead.removesuffix('.0')}e{int(power)}"


Progress = Callable[[str, float | None, str], None]
"""Called with what is happening, the share done (None = unknown), and a detail."""

SAMPLING = "Sampling the posterior"
"""The stage in which draws are made."""

SAMPLING_AGAIN = "Sampling again"
"""The stage whose detail is worth keeping on a terminal, where others replace each other."""


def silent(stage: str, share: float | None, detail: str) -> None:
    """Report no progress."""


class ProgressLines:
    """Progress as lines: one per stage, and one every few seconds while it lasts."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._stage, self._written, self._started = "", 0.0, time.monotonic()

    def __call__(self, stage: str, share: float | None, detail: str) -> None:
        """Write a line where the stage is new or the last line old."""
        now = time.monotonic()
        if stage != self._stage or now - self._written > 5.0:
            self._written = now
            self._write(f"[{now - self._started:5.1f} s] {stage}" + (detail and f": {detail}"))
        self._stage = stage


def progress_of(progress: bool | Progress | None) -> Progress:
    """Progress as a user asks for it: True prints lines to standard error, False nothing."""
    if callable(progress):
        return progress
    if progress:
        return ProgressLines(lambda line: print(line, file=sys.stderr, flush=True))
    return silent
