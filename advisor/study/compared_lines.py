"""A comparison as data: sections of lines, each with both values and whether they differ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

ABSENT = "-"
"""Stands where one side has nothing."""


@dataclass(frozen=True)
class Line:
    """One quantity of both sides.

    Attributes
    ----------
    name : str
    one, other : Any
        Values as JSON holds them; None where a side has none.
    shown : tuple of str
        Both as text.
    differs : bool
    note : str
        How far they are apart, where that can be said.
    apart : float or None
        The same as a number.
    """

    name: str
    one: Any
    other: Any
    shown: tuple[str, str]
    differs: bool
    note: str = ""
    apart: float | None = None


@dataclass(frozen=True)
class Section:
    """Lines that belong together.

    Attributes
    ----------
    title : str
    lines : tuple of Line
    notes : tuple of str
        How to read them.
    """

    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Two studies or two runs.

    Attributes
    ----------
    kind : {"studies", "runs"}
    paths : tuple of str
    sections : tuple of Section
    """

    kind: Literal["studies", "runs"]
    paths: tuple[str, str]
    sections: tuple[Section, ...]

    @property
    def differs(self) -> bool:
        """Whether any line does."""
        return any(line.differs for section in self.sections for line in section.lines)

    def to_json(self) -> str:
        """All lines, those that do not differ too; numbers that are not finite are null."""
        document = {
            "kind": self.kind,
            "one": self.paths[0],
            "other": self.paths[1],
            "differs": self.differs,
            "sections": [
                {
                    "title": section.title,
                    "notes": list(section.notes),
                    "lines": [
                        {
                            "name": line.name,
                            "one": _finite(line.one),
                            "other": _finite(line.other),
                            "differs": line.differs,
                            "apart": _finite(line.apart),
                            "note": line.note,
                        }
                        for line in section.lines
                    ],
                }
                for section in self.sections
            ],
        }
        return json.dumps(document, indent=2, allow_nan=False)


def exact(name: str, one: Any, other: Any) -> Line:
    """Line of values that differ as soon as they are not equal: settings, names, versions."""
    shown = told(one), told(other)
    if one != other and shown[0] == shown[1]:
        shown = repr(one), repr(other)  # six digits do not tell them apart
    return Line(name, one, other, shown, one != other)


def rounded(name: str, one: Any, other: Any, form: str = ".3g", unit: str = "") -> Line:
    """Line of results, which differ where they are written differently."""

    def written(value: float | None) -> str:
        return ABSENT if value is None else f"{value:{form}}{unit}"

    shown = written(one), written(other)
    return Line(name, one, other, shown, shown[0] != shown[1])


def fields(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Line]:
    """Lines of all keys of two mappings, in the order of the first."""
    keys = dict.fromkeys([*one, *other])
    return [exact(f"{name} {key}".strip(), one.get(key), other.get(key)) for key in keys]


def listed(name: str, one: Sequence[str], other: Sequence[str]) -> list[Line]:
    """Lines of sentences that either side holds."""
    texts = dict.fromkeys([*one, *other])
    return [
        exact(name, text if text in one else None, text if text in other else None)
        for text in texts
    ]


def told(value: Any) -> str:
    """Write a setting."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {told(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(told, value))
    return str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
