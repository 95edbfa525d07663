"""Values of settings as logs and configurations write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MODULE = re.compile(r"[\w.-]{1,200}")
"""Name of a module; libraries that patch models write expressions over such names instead."""


def literal(value: Any) -> float | str | bool | None:
    """Number, switch or text of a setting, also where it is quoted; None where it is none."""
    if not isinstance(value, str):
        return value if isinstance(value, bool | int | float) else None
    text = value.strip().strip("\"'").strip()
    if text in ("True", "true", "False", "false"):
        return text.lower() == "true"
    if text in ("", "None", "null", "none"):
        return None
    try:
        return float(text)
    except ValueError:
        return text


def entries(value: Any) -> list[str]:
    """Entries of a list that is written as text: ``"['a', 'b']"``, ``"a b"`` or ``"a,b"``."""
    bare = str(value).strip().strip("[](){}").replace(",", " ").split()
    return [entry for entry in (each.strip("'\"") for each in bare) if entry]


def module_names(names: Iterable[str]) -> str | None:
    """Names of modules as one setting; None where something else stands among them."""
    listed = list(names)
    if not listed or not all(map(MODULE.fullmatch, listed)) or listed == ["None"]:
        return None
    return ",".join(listed)


def number(value: Any) -> float | None:
    """Value of a setting as a finite number, None where it is not one."""
    found = literal(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if abs(found) < 1e300 else None
