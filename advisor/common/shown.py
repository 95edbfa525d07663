"""What every room shows: the version, progress, and texts of templates."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

DEFAULT_SEED: Final = 1  # Seed where none is given

try:
    VERSION = version("grpo-advisor")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"

Progress = Callable[[str, float | None, str], None]
"""Called with what is happening, the share done (None = unknown), and a detail."""


SAMPLING, SAMPLING_AGAIN = "Sampling the posterior", "Sampling again"
"""Stages of a fit; a terminal keeps the detail of the second, where others replace each other."""


def silent(stage: str, share: float | None, detail: str) -> None:
    """Report no progress."""


def span(seconds: float) -> str:
    """A time in the unit that a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


class TimeLeft:
    """What is left of a stage, at the speed that it has had."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._stage, self._began = now, "", 0.0

    def __call__(self, stage: str, share: float | None, detail: str) -> str:
        """Detail of a stage, with its time left once it has lasted for a few seconds."""
        now = self._now()
        if stage != self._stage:
            self._stage, self._began = stage, now
        spent = now - self._began
        # Its first hundredth is the slowest.
        if share is None or not 0.01 <= share < 1 or spent < 5:
            return detail
        return f"{detail}, about {span(spent * (1 - share) / share)} left"


class ProgressLines:
    """Progress as lines: one per stage, and one every few seconds while it lasts."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write, self._left = write, TimeLeft()
        self._stage, self._written, self._started = "", 0.0, time.monotonic()

    def __call__(self, stage: str, share: float | None, detail: str) -> None:
        """Write a line where the stage is new or the last line old."""
        now, detail = time.monotonic(), self._left(stage, share, detail)
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


class Words:
    """Texts of a room: the macros of a template by name, and what they know; pages escape it."""

    def __init__(self, package: str, file: str, /, **known: Any) -> None:
        self._package, self._file, self._known = package, file, known

    @cached_property
    def template(self) -> Any:
        """Jinja's template, loaded when something is said."""
        import jinja2

        environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
        environment.loader = jinja2.PackageLoader(self._package, ".")
        environment.undefined = jinja2.StrictUndefined
        environment.autoescape = self._file.endswith(".html.j2")
        return environment.get_template(self._file, globals={"form": format, **self._known})

    def __call__(self, paragraph: str, *of: Any) -> str:
        """One macro, as text."""
        return str(getattr(self.template.module, paragraph)(*of)).strip("\n")
