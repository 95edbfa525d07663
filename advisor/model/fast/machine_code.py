"""Compile with numba, and keep the machine code on disk while the formulas are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba

from advisor.model.fast.code_cache import check_writable, code_folder


def cache_folder() -> Path:
    """Folder of the machine code: in ``NUMBA_CACHE_DIR`` if that is set, else the user's cache."""
    return code_folder(numba.config.CACHE_DIR, Path(__file__).parents[2])


@contextmanager
def _in(folder: str) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


_FOLDER = str(cache_folder())
check_writable(Path(_FOLDER))  # numba would fail later, and not say what to do


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function for use by other compiled ones, or from Python, without Python's lock."""
    with _in(_FOLDER):
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
