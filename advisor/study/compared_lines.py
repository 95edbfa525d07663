"""A comparison as data: sections of lines, each with both values and whether they differ."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

Side = TypeVar("Side")

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
    """Lines that belong together, and notes on how to read them."""

    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()

    def table(self, heads: Sequence[str]) -> dict[str, Any]:
        """Title, columns, rows of texts, and notes, as the page lays out tables."""
        return {
            "title": self.title,
            "columns": ["", *heads],
            "rows": [[line.name, *line.shown, line.note] for line in self.lines],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Comparison:
    """Two studies, two runs, or a study and finished runs.

    Attributes
    ----------
    kind : {"studies", "runs", "study and runs"}
    paths : tuple of str
    sections : tuple of Section
    heads : tuple of str
        Of both sides, and of what lies between them.
    """

    kind: Literal["studies", "runs", "study and runs"]
    paths: tuple[str, str]
    sections: tuple[Section, ...]
    heads: tuple[str, str, str] = ("A", "B", "B - A")

    def __repr__(self) -> str:
        """Paths, and how many lines of each section differ."""
        counts = ", ".join(
            f"{sum(line.differs for line in section.lines)} of {len(section.lines)} "
            f"{section.title.lower()}"
            for section in self.sections
        )
        return f"Comparison({self.paths[0]} and {self.paths[1]}; different: {counts})"

    @property
    def differs(self) -> bool:
        """Whether any line does."""
        return any(line.differs for section in self.sections for line in section.lines)

    def to_json(self) -> str:
        """All lines, those that do not differ too; numbers that are not finite are null."""
        document: dict[str, Any] = {
            "kind": self.kind,
            "one": self.paths[0],
            "other": self.paths[1],
            "differs": self.differs,
            "sections": [asdict(section) for section in self.sections],
        }
        for section in document["sections"]:
            for line in section["lines"]:
                del line["shown"]
        return json.dumps(_finite(document), indent=2, allow_nan=False)


Judge = Callable[[Any, Any], tuple[bool, str, float | None]]
"""Whether two values differ, how far in words, and as a number."""


@dataclass(frozen=True)
class Value:
    """A value with a text of its own; two differ by their judge, without one by their texts."""

    value: Any
    text: str
    judge: Judge | None = None


def rounded(value: float | None, form: str = ".3g") -> Value | None:
    """Result that differs where it is written differently."""
    return None if value is None else Value(value, f"{value:{form}}")


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


def section(
    title: str,
    facts: Callable[[Side], Mapping[Any, Any]],
    sides: tuple[Side, Side],
    notes: tuple[str, ...] = (),
) -> Section:
    """Section of the facts of both sides."""
    return Section(title, difference(facts(sides[0]), facts(sides[1])), notes)


def difference(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> tuple[Line, ...]:
    """Lines of all keys; a name that occurs several times is the first part of a tuple."""
    return tuple(
        compared(key if isinstance(key, str) else key[0], one.get(key), other.get(key))
        for key in dict.fromkeys([*one, *other])
    )


def compared(name: str, one: Any, other: Any) -> Line:
    """Line of two values: settings differ as soon as they are not equal, a `Value` as it says."""
    if not isinstance(one, Value) and not isinstance(other, Value):
        shown = told(one), told(other)
        if one != other and shown[0] == shown[1]:
            shown = repr(one), repr(other)  # six digits do not tell them apart
        return Line(name, one, other, shown, one != other)
    pair = tuple(Value(None, ABSENT) if side is None else side for side in (one, other))
    values, shown = (pair[0].value, pair[1].value), (pair[0].text, pair[1].text)
    if one is None or other is None or one.judge is None:
        return Line(name, *values, shown, shown[0] != shown[1])
    return Line(name, *values, shown, *one.judge(*values))


def each(name: str, texts: Sequence[str]) -> dict[tuple[str, str], str]:
    """Entries of sentences that may stand on both sides."""
    return {(name, text): text for text in texts}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
