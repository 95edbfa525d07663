"""An interpreter in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def python(*words: object, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run an interpreter with such words: how it ended, and what it printed as text."""
    how = {"capture_output": True, "text": True, "check": False} | how
    return subprocess.run([sys.executable, *map(str, words)], **how)
