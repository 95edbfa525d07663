"""Log files to pilot runs. This face is all that the rest of the package imports of the wing."""

from __future__ import annotations

from pathlib import Path

from advisor.runs.logs.inspection import NO_LOG, as_json, explain, show
from advisor.runs.logs.read import Inspection, inspect, is_source, read_runs
from advisor.runs.logs.readers import known_formats

__all__ = [
    "NO_LOG",
    "Inspection",
    "as_json",
    "demo_folder",
    "demo_runs",
    "explain",
    "inspect",
    "is_source",
    "known_formats",
    "read_runs",
    "show",
]

_PACKAGED = Path(__file__).parents[2] / "_data"
_CHECKOUT = Path(__file__).parents[3] / "case_studies" / "tiny_transformer"


def demo_folder() -> Path:
    """Twelve real GRPO pilots of tiny transformers: of the installed wheel, else the checkout."""
    return _shipped("pilots")


def demo_runs() -> tuple[Path, Path]:
    """Folders of the demo: its short pilots, and the full runs that were trained after them."""
    folder = _shipped("demo")
    return folder / "pilots", folder / "full_runs"


def _shipped(name: str) -> Path:
    packaged = _PACKAGED / name
    return packaged if packaged.is_dir() else _CHECKOUT / name
