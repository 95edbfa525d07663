"""Compile with numba, and keep the machine code on disk for as long as the formulas are the same.

Numba's own cache looks at the file of a function only: it would load old machine code after a
change of a formula, or of the order of the parameters, in another file. So the folder of the cache
is named after all of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba

SOURCES = ("kernel", "density", "likelihood", "structure", "equations")
"""Modules of this package that decide the numbers."""

ELSEWHERE = ("dynamics/spectrum.py", "runs/cohort.py")
"""Modules of other rooms whose constants are compiled in."""


def cache_folder() -> Path:
    """Folder of the machine code: in ``NUMBA_CACHE_DIR`` if that is set, else the user's cache."""
    here = Path(__file__).parent
    files = [here / f"{name}.py" for name in SOURCES]
    files += [here.parent / name for name in ELSEWHERE]
    sha = hashlib.sha256()
    for file in files:
        sha.update(file.read_bytes())
    base = numba.config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "grpo-advisor" / sha.hexdigest()[:16]


@contextmanager
def _in(folder: str) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


_FOLDER = str(cache_folder())


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function for use by other compiled ones, or from Python, without Python's lock."""
    with _in(_FOLDER):
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that a C program calls by its address."""

    def decorate(function: Callable[..., Any]) -> Any:
        with _in(_FOLDER):
            return numba.cfunc(signature, cache=True)(function)

    return decorate
