"""Modules of a case study or a harness: they lie in folders and share names with others."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

STUDIES = Path(__file__).parents[1] / "case_studies"


@contextmanager
def modules_of(study: str, names: Sequence[str]) -> Iterator[dict[str, ModuleType]]:
    """Import modules of a study (or of another folder) by name, and forget them afterwards."""
    folder = str(STUDIES / study)
    # Helpers of other tests may have been imported under the same names.
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, folder)
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(folder)
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(others)
