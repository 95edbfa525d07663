"""Commands in a process of their own: a tracker's client keeps servers and logins for good."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from processes import python

import advisor

PACKAGE = Path(advisor.__file__).parent.parent


class Printed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Printed]:
    """Runs the command line with nothing of this machine's logins."""

    def called(*words: str, silent: float | None = None, code: str = "", **env: str) -> Printed:
        known = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(PACKAGE)}
        start = code or "from advisor.cli import main; main()"
        if silent is not None:
            start = (
                "from advisor.runs.logs import sources; "
                f"sources.MOST_SILENT_SECONDS = {silent}; {start}"
            )
        where = {"env": known | own | env, "cwd": tmp_path, "stdin": subprocess.DEVNULL}
        done = python("-c", start, *words, **where, timeout=240)
        return Printed(done.returncode, done.stdout, done.stderr)

    return called
