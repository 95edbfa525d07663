"""Log files to pilot runs."""

from __future__ import annotations

from pathlib import Path

from advisor.runs.logs.inspected import Inspection
from advisor.runs.logs.read import inspect, read_runs

__all__ = ["Inspection", "demo_folder", "inspect", "read_runs"]

_PACKAGED = Path(__file__).parents[2] / "_data"
_CHECKOUT = Path(__file__).parents[3] / "case_studies" / "tiny_transformer"


def demo_folder() -> Path:
    """Twelve real GRPO pilots of tiny transformers: of the installed wheel, else the checkout."""
    packaged = _PACKAGED / "pilots"
    return packaged if packaged.is_dir() else _CHECKOUT / "pilots"
