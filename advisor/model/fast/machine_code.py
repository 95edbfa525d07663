"""Compile with numba, and keep the machine code on disk while the formulas are the same.

Numba's own cache sees one file only: here the folder is named after all that decide the numbers.
Each file is written whole, begins with a hash of the rest, and counts only if it is one's own.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import serialize
from numba.core.compiler import CompileResult

from advisor.common import write_whole

SOURCES = (
    *("model/fast/kernel.py", "model/fast/density.py", "model/fast/__init__.py"),
    *("model/equations.py", "model/parameters.py", "model/parameters.toml"),
    *("model/likelihood.py", "model/cohort.py", "theory/spectrum.py"),
)
"""Files that decide the numbers, or whose constants are compiled in."""

DIGEST_BYTES = hashlib.sha256().digest_size


def code_folder(base: str, package: Path) -> Path:
    """Folder of the machine code of these very formulas."""
    sha = hashlib.sha256(b"".join((package / name).read_bytes() for name in SOURCES))
    place = base or os.environ.get("XDG_CACHE_HOME") or _home()
    return Path(place) / "grpo-advisor" / sha.hexdigest()[:16]


def _home() -> Path:
    """Cache of the user; of one without a home, a folder of their own among those of programs."""
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"cache-{os.getuid()}"


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


def cache_folder() -> Path:
    """Folder of the machine code: in ``NUMBA_CACHE_DIR`` if that is set, else the user's cache."""
    return code_folder(numba.config.CACHE_DIR, Path(__file__).parents[2])


_FOLDER = str(cache_folder())


class KeptCode:
    """What numba takes for the cache of one function; what cannot be used is compiled again."""

    has_complained = False

    def __init__(self, function: Callable[..., Any], folder: str) -> None:
        self.cache_path = folder
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self._code = function.__code__.co_code

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Compiled function, or None where it has to be compiled."""
        target.refresh()
        code = read_code(self._file(signature, target.codegen()))
        if code is None:
            return None
        try:
            return CompileResult._rebuild(target, *pickle.loads(code))
        except Exception:  # whole, and of no use to this process
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled function."""
        if compiled.library.has_dynamic_globals or not all(o.can_cache for o in compiled.lifted):
            return
        try:
            write_code(self._file(signature, compiled.codegen), serialize.dumps(compiled._reduce()))
        except OSError as error:
            if not KeptCode.has_complained:
                KeptCode.has_complained = True
                warnings.warn(
                    f"machine code is not kept in {self.cache_path} "
                    f"({error.strerror or error}): every fit compiles it again, for seconds. Set "
                    "NUMBA_CACHE_DIR to a folder that you may write to",
                    stacklevel=2,
                )

    def enable(self) -> None:
        """Numba asks for it, and for the two names below."""

    disable = flush = enable

    def _file(self, signature: Any, codegen: Any) -> Path:
        """File of a compiled function: two versions of Python or numba share none."""
        stated = repr((str(signature), codegen.magic_tuple(), self._code))
        key = hashlib.sha256(stated.encode()).hexdigest()[:16]
        python = "".join(platform.python_version_tuple()[:2])
        name = f"{self._name}.py{python}.numba{numba.__version__}.{key}.code"
        return Path(self.cache_path) / name


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function for use by other compiled ones, or from Python, without Python's lock."""
    dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
    dispatcher._cache = KeptCode(function, _FOLDER)
    return dispatcher
