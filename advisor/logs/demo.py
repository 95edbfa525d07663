"""Where the demo's pilots lie."""

from __future__ import annotations

from pathlib import Path

_PACKAGED = Path(__file__).parents[1] / "_data" / "demo"
_CHECKOUT = Path(__file__).parents[2] / "case_studies" / "tiny_transformer" / "pilots"


def demo_folder() -> Path:
    """Twelve real GRPO pilots of tiny transformers: of the installed wheel, else the checkout."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
