"""Modules of a case study or a harness: they lie in folders and share names with others."""

from __future__ import annotations

import importlib.util
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


def script(path: Path) -> ModuleType:
    """Module of a script that lies outside of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[path.stem]
    return module
