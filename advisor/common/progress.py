"""Progress of long work: passed on, printed, or kept silent."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Progress = Callable[[str, float | None, str], None]
"""Called with what is happening, the share done (None = unknown), and a detail."""

SAMPLING = "Sampling the posterior"
"""The stage in which draws are made."""

SAMPLING_AGAIN = "Sampling again"
"""The stage whose detail is worth keeping on a terminal, where others replace each other."""

PRINTED_EVERY_SECONDS = 5.0
"""How often a stage repeats itself where there is no terminal to redraw."""


def silent(stage: str, share: float | None, detail: str) -> None:
    """Report no progress."""


class ProgressLines:
    """Progress as lines: one per stage, and one every few seconds while it lasts."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._stage = ""
        self._written = 0.0
        self._started = time.monotonic()

    def __call__(self, stage: str, share: float | None, detail: str) -> None:
        """Write a line where the stage is new or the last line old."""
        now = time.monotonic()
        if stage != self._stage or now - self._written > PRINTED_EVERY_SECONDS:
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
