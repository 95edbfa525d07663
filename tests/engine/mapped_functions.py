"""Functions that are mapped; workers import them by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

from advisor.errors import NotConvergedError


def third(number: float) -> dict[str, float]:
    return {"value": number / 3}


def gated_third(task: tuple[str, int, bool]) -> dict[str, float]:
    """A third; one that is to wait does so until the file ``open`` stands in the folder."""
    folder, number, waits = task
    while waits and not (Path(folder) / "open").exists():
        time.sleep(0.01)
    return third(number)


def counted(task: tuple[str, int]) -> int:
    """Leaves a file per call, so that a test sees what was done again."""
    folder, number = task
    (Path(folder) / f"{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return number


def picky(number: int) -> int:
    if number == 2:
        raise NotConvergedError("chains disagree")
    if number == 3:
        raise ValueError("no such\nnumber")
    return number


def deadly(number: int) -> int:
    """Kills its process for 3."""
    if number == 3:
        os._exit(9)
    return number
