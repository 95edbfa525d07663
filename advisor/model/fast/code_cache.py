"""Where compiled machine code is kept. Needs neither numba nor numpy, so that it is told at once.

Numba's own cache looks at the file of a function only: it would load old machine code after a
change of a formula, or of the order of the parameters, in another file. So the folder of the cache
is named after all of them.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from advisor.errors import unwritable

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

PACKAGE = Path(__file__).parents[2]

VARIABLE = "NUMBA_CACHE_DIR"
"""Environment variable by which the user names another place."""


def code_folder(base: str | None = None, package: Path = PACKAGE) -> Path:
    """Folder of the machine code of these very formulas.

    Parameters
    ----------
    base : str, optional
        Folder that numba was told to use [default: ``NUMBA_CACHE_DIR``]; without one it is the
        user's cache.
    package : Path
        Folder of the sources.
    """
    files = [package / name for name in SOURCES]
    sha = hashlib.sha256()
    for file in files:
        sha.update(file.read_bytes())
    told = os.environ.get(VARIABLE) if base is None else base
    place = told or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(place) / "grpo-advisor" / sha.hexdigest()[:16]


def check_writable(folder: Path) -> None:
    """Make the folder and a file in it, as numba will.

    Raises
    ------
    InputError
        That cannot be done.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise unwritable("compiled machine code", error, folder, VARIABLE) from error
