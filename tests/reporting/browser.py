"""A headless Chromium for the tests of the page: that of scripts/check_pages.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from studies import script

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_pages.py"


check_pages = script(SCRIPT)


@contextmanager
def chromium(width: int = 1400, scheme: str = "light") -> Iterator[Any]:
    """Start a browser; the test is skipped where there is none."""
    if check_pages.chromium_path() is None:
        pytest.skip(f"no Chromium is installed. {check_pages.HOW}")
    with check_pages.browser() as page:
        page.look(width, scheme)
        yield page
