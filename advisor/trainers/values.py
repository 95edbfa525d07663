"""Values of settings as logs and configurations write them."""

from __future__ import annotations

from typing import Any


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


def number(value: Any) -> float | None:
    """Value of a setting as a finite number, None where it is not one."""
    found = literal(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if abs(found) < 1e300 else None
