"""Studies without figures and page, which take a second each and are not what is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import advisor.reporting


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Save studies with a word in place of their page, and without figures."""

    def report(posterior: Any, recommendation: Any, path: Path, **parts: Any) -> Path:
        path.write_text("report")
        return path

    patch.setattr(advisor.reporting, "drawings_made", lambda *_: [])
    patch.setattr(advisor.reporting, "plot", lambda *_, **__: [])
    patch.setattr(advisor.reporting, "report", report)
