"""Where and how compiled machine code is kept.

Numba's own cache looks at the file of a function only: it would load old machine code after a
change of a formula, or of the order of the parameters, in another file. So the folder of the cache
is named after all of them. It also loads what a full disk or another user left there: so each file
here is written whole, begins with a hash of the rest, and counts only if it is one's own.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from advisor.common import write_whole

SOURCES = (
    "model/fast/kernel.py",
    "model/fast/density.py",
    "model/fast/tables.py",
    "model/equations.py",
    "model/parameters.py",
    "model/run_density.py",
    "model/cohort.py",
    "theory/spectrum.py",
)
"""Modules that decide the numbers, or whose constants are compiled in."""

ENDING = ".code"

DIGEST_BYTES = hashlib.sha256().digest_size


def code_folder(base: str, package: Path) -> Path:
    """Folder of the machine code of these very formulas."""
    files = [package / name for name in SOURCES]
    sha = hashlib.sha256()
    for file in files:
        sha.update(file.read_bytes())
    place = base or os.environ.get("XDG_CACHE_HOME") or _home()
    return Path(place) / "grpo-advisor" / sha.hexdigest()[:16]


def _home() -> Path:
    """Cache of the user; of one without a home, a folder of their own among those of programs."""
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"cache-{os.getuid()}"


def code_name(function: str, python: str, numba: str, key: str) -> str:
    """Name of the file of a compiled function: two versions of Python or numba share none."""
    return f"{function}.py{python}.numba{numba}.{key}{ENDING}"


def read_code(file: Path) -> bytes | None:
    """Code as it was kept; None where there is none, it is damaged, or it is another user's."""
    try:
        found = file.stat()
        if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0):
            return None  # what is loaded is run
        whole = file.read_bytes()
    except OSError:
        return None
    digest, code = whole[:DIGEST_BYTES], whole[DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def write_code(file: Path, code: bytes) -> None:
    """Keep code for the next process; an ``OSError`` where that cannot be done."""
    write_whole(file, hashlib.sha256(code).digest() + code)
