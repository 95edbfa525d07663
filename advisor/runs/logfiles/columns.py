"""The column map: what the user says about the keys of a log."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from advisor.errors import InputError
from advisor.runs.pilot_run import SERIES

STEP_UNITS = ("optimizer", "refresh")
OPTIONS = ("step", "step_unit", "filter", "eval_reward", "eval_filter")


@dataclass(frozen=True)
class Columns:
    """A column map."""

    keys: Mapping[str, str] = field(default_factory=dict)
    filter: Mapping[str, str] = field(default_factory=dict)
    eval_filter: Mapping[str, str] = field(default_factory=dict)
    step_unit: str | None = None

    def __bool__(self) -> bool:
        return bool(self.keys or self.filter or self.eval_filter or self.step_unit)


def parse_columns(
    columns: Mapping[str, Any] | None, *, path: Path | None = None, row: int | None = None
) -> Columns:
    """Check a column map."""

    def refuse(name: str, problem: str, advice: str) -> NoReturn:
        raise InputError(problem, path=path, row=row, key=f"columns.{name}", advice=advice)

    def parse_filter(name: str) -> dict[str, str]:
        conditions: dict[str, str] = {}
        for part in filter(str.strip, given.pop(name, "").split(",")):
            key, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not key:
                advice = f'Write for example {name} = "type=rollout"'
                refuse(name, f"'{part.strip()}' is not of the form key=value", advice)
            conditions[key] = value
        return conditions

    allowed = (*SERIES, *OPTIONS)
    given: dict[str, str] = {}
    for name, value in (columns or {}).items():
        if name not in allowed:
            problem = "this column is not one that the package reads"
            refuse(name, problem, nearest(name, allowed))
        if not isinstance(value, str) or not value.strip():
            problem = f"the column map needs the name of a key of the log, not {value!r}"
            refuse(name, problem, f'For example {name} = "train/{name}"')
        given[name] = value.strip()
    unit = given.pop("step_unit", None)
    if unit is not None and unit not in STEP_UNITS:
        advice = "Use 'optimizer' (optimizer steps) or 'refresh' (batches of rollouts)"
        refuse("step_unit", f"'{unit}' is no unit of steps", advice)
    kept, evaluated = parse_filter("filter"), parse_filter("eval_filter")
    return Columns(given, kept, evaluated, unit)


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Advice that names the closest allowed name, or all of them where none is close."""
    names = sorted(allowed)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"The nearest is '{close[0]}'"
    more = f" or {len(names) - 30} more" if len(names) > 40 else ""
    return f"Use one of {', '.join(names[: 30 if more else 40])}{more}"
