"""Choosing rows: a filter of the column map, and a refusal to mix kinds of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from advisor.errors import InputError
from advisor.runs.files import Row

KIND_KEYS = ("type", "kind", "split", "mode", "phase", "stage", "event")
"""Keys by which logs tell kinds of rows apart."""


def matches(row: Row, conditions: Mapping[str, str]) -> bool:
    """Whether a row's cells equal what the conditions ask, as text or as numbers."""
    for key, wanted in conditions.items():
        cell = row.cells.get(key)
        if str(cell) == wanted or (isinstance(cell, bool) and str(cell).lower() == wanted.lower()):
            continue
        try:
            if float(str(cell)) != float(wanted):
                return False
        except ValueError:
            return False
    return True


def choose_rows(rows: Sequence[Row], conditions: Mapping[str, str], path: Path) -> list[Row]:
    """Rows that pass a filter.

    Raises
    ------
    InputError
        None does.
    """
    chosen = [row for row in rows if matches(row, conditions)]
    if chosen:
        return chosen
    key = next(iter(conditions), "")
    seen = dict.fromkeys(f"{key}={row.cells[key]}" for row in rows if key in row.cells)
    raise InputError(
        f"no row passes the filter {', '.join(f'{k}={v}' for k, v in conditions.items())}",
        path=path,
        key="columns.filter",
        advice=f"Values seen: {', '.join(list(seen)[:8]) or f'none, no row has the key {key}'}",
    )


def refuse_kinds(rows: Sequence[Row], conditions: Mapping[str, str], path: Path) -> None:
    """Raise where rows of several kinds hold a reward and no filter tells which to read."""
    for key in KIND_KEYS:
        if key in conditions:
            continue
        kinds = list(dict.fromkeys(str(row.cells[key]) for row in rows if key in row.cells))
        # As many kinds as rows is a text per row, not a kind.
        if 1 < len(kinds) < len(rows):
            raise InputError(
                f"rows of {len(kinds)} kinds hold a reward ({', '.join(kinds[:8])})",
                path=path,
                key=key,
                advice=f'Choose one in a column map: filter = "{key}=..."',
            )
