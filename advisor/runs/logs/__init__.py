"""Log files to pilot runs."""

from __future__ import annotations

from pathlib import Path

from advisor.runs.logs.read import Inspection, inspect, read_runs

__all__ = ["Inspection", "demo_folder", "demo_runs", "inspect", "read_runs"]

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
