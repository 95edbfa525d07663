"""Nested settings as dotted names of scalars, with references within a file followed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from advisor.runs.logfiles import limits
from advisor.runs.logfiles.configs.literal import Scalar

REFERENCE = re.compile(r"\$\{([^${}]{1,200})\}")


def flatten(document: Any) -> dict[str, Scalar]:
    """Scalars of nested mappings and short lists by dotted names."""
    return dict(_scalars(document, "", 0))


def _scalars(node: Any, prefix: str, depth: int) -> Iterator[tuple[str, Scalar]]:
    if isinstance(node, Mapping | list):
        if depth > 20 or (isinstance(node, list) and len(node) > 16):
            return
        for key, value in node.items() if isinstance(node, Mapping) else enumerate(node):
            yield from _scalars(value, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif prefix and _is_setting(node):
        yield prefix, node


def _is_setting(value: Any) -> bool:
    if isinstance(value, str):
        # OpenRLHF hands W&B its nested arguments as one text.
        if value.startswith("namespace("):
            return len(value) <= 20_000
        return len(value) <= limits.MOST_CONFIG_TEXT_CHARACTERS
    if isinstance(value, int | float):
        return abs(value) <= (2**53) and not math.isnan(value)
    return value is None


def follow_references(settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Replace ``${a.b}`` by the value of ``a.b``; leave out what leads elsewhere."""
    followed = {key: _follow(key, value, settings) for key, value in settings.items()}
    return {key: value for key, (value, is_whole) in followed.items() if is_whole}


def _follow(key: str, value: Scalar, settings: Mapping[str, Scalar]) -> tuple[Scalar, bool]:
    for _ in range(10):
        if not isinstance(value, str) or "${" not in value:
            return value, True
        found = REFERENCE.search(value)
        if found is None:
            break
        name = _absolute(found.group(1).strip(), key)
        if name not in settings:
            break
        if found.group() == value.strip():
            # What it says relative to itself is followed from where it stands.
            key, value = name, settings[name]
        else:
            value = f"{value[: found.start()]}{settings[name]}{value[found.end() :]}"
            if len(value) > limits.MOST_CONFIG_TEXT_CHARACTERS:
                break
    return None, False


def _absolute(name: str, key: str) -> str:
    dots = len(name) - len(name.lstrip("."))
    if not dots:
        return name
    parents = key.split(".")
    return ".".join([*parents[: max(len(parents) - dots, 0)], name[dots:]])
