"""Bytes to tables: files and formats, without knowing what a key means."""

import tomllib
from pathlib import Path
from typing import Any


def read_toml(beside: str, name: str) -> dict[str, Any]:
    """Content of a TOML file that lies next to a module of the package."""
    return tomllib.loads(Path(beside).with_name(name).read_text(encoding="utf-8"))
