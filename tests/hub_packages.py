"""Packages for OptunaHub, as tests load them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

REGISTRY = Path(__file__).parents[1] / "optunahub" / "package"


def loaded(package: str) -> ModuleType:
    """Module of a package: by OptunaHub where it is installed, else the file itself."""
    found = importlib.util.find_spec("optunahub")
    # A folder of that name on the path, as in the checkout, is no installed library.
    if found is not None and found.origin is not None:
        import optunahub

        return optunahub.load_local_module(package, registry_root=str(REGISTRY))
    name = "loaded_" + package.replace("/", "_")
    if name not in sys.modules:  # one module each: its classes can be pickled
        spec = importlib.util.spec_from_file_location(name, REGISTRY / package / "__init__.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
