"""A headless Chromium for the tests of the page: that of scripts/check_pages.py."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_pages.py"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_pages", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_pages"] = module
    spec.loader.exec_module(module)
    return module


check_pages = _loaded()


@contextmanager
def chromium(width: int = 1400, scheme: str = "light") -> Iterator[Any]:
    """Start a browser; the test is skipped where there is none."""
    if check_pages.chromium_path() is None:
        pytest.skip(f"no Chromium is installed. {check_pages.HOW}")
    with check_pages.browser() as page:
        page.look(width, scheme)
        yield page
