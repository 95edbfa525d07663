"""Limits of what is read from files, and how patterns are read from tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from advisor.text import read_toml

limits = SimpleNamespace(**read_toml(__file__, "limits.toml"))


def compiled(written: Mapping[str, str | Sequence[str]]) -> Mapping[str, re.Pattern[Any]]:
    """Patterns by name; ``<<name>>`` is one before it, and a name in ``_bytes`` is one of bytes."""
    whole: dict[str, str] = {}
    for key, parts in written.items():
        whole[key] = re.sub("<<(.+?)>>", lambda found: whole[found[1]], "".join(parts))
    return {k: re.compile(t.encode() if k.endswith("_bytes") else t) for k, t in whole.items()}
