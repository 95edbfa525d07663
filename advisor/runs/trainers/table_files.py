"""Tables of `data`: what trainers call their keys and settings, and how they are exported to."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data"


@cache
def read_data(name: str) -> Mapping[str, Any]:
    """Content of one file."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def setting_names(name: str) -> Mapping[str, tuple[str, ...]]:
    """Names of each setting in a trainer's configurations, best first."""
    return {ours: spelled_out(names) for ours, names in read_data(name)["settings"].items()}


def spelled_out(names: Iterable[str]) -> tuple[str, ...]:
    """Names with braces written out: ``{a,b}/c`` is ``a/c`` and ``b/c``."""
    return tuple(spelling for name in names for spelling in _spellings(name))


def _spellings(name: str) -> Iterator[str]:
    head, brace, rest = name.partition("{")
    if not brace:
        yield name
        return
    inner, _, tail = rest.partition("}")
    for each in inner.split(","):
        for end in _spellings(tail):
            yield head + each + end
