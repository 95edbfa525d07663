"""What every room shows: the version, progress, and texts of templates."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

DEFAULT_SEED: Final = 1  # Seed where none is given

try:
    VERSION = version("grpo-advisor")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"

Progress = Callable[[str, float | None, str], None]
"""Called with what is happening, the share done (None = unknown), and a detail."""


class Stage(StrEnum):
    """Stages of a fit that are told from others."""

    SAMPLING = "Sampling the posterior"
    # Its detail is worth keeping on a terminal, where others replace each other.
    SAMPLING_AGAIN = "Sampling again"


SAMPLING, SAMPLING_AGAIN = Stage


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


def template(package: str, file: str, known: Mapping[str, Any], escapes: bool = False) -> Any:
    """Jinja's template of a room, with what it knows by name; a page escapes what it shows."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "."),
        undefined=jinja2.StrictUndefined,
        autoescape=escapes,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(file, globals={"form": format, **known})


def spoken(words: Any, paragraph: str, *of: Any) -> str:
    """One macro of a template, as text."""
    return str(getattr(words.module, paragraph)(*of)).strip("\n")
