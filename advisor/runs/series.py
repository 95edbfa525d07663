"""Cells become arrays; what is absent or not finite is said, never filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.files import Row, to_number
from advisor.runs.pilot_run import SERIES, FloatArray, Missing


def cell_number(cell: Any) -> float | None:
    """Number of a cell that is not vital: text counts as absent."""
    try:
        return to_number(cell)
    except ValueError:
        return None


def read_column(rows: Sequence[Row], key: str) -> FloatArray:
    """Numbers under a key, NaN where there is none."""
    return np.array([cell_number(row.cells.get(key)) for row in rows], dtype=float)


def read_points(rows: Sequence[Row], step_key: str | None, key: str) -> dict[float, float]:
    """Finite numbers under a key by their step (row number where no step is logged).

    A step that is logged again replaces the earlier value.
    """
    points: dict[float, float] = {}
    for index, row in enumerate(rows, start=1):
        value = cell_number(row.cells.get(key))
        at = index if step_key is None else cell_number(row.cells.get(step_key))
        if value is not None and at is not None and np.isfinite(value) and np.isfinite(at):
            points[float(at)] = value
    return dict(sorted(points.items()))


def read_rewards(rows: Sequence[Row], key: str, path: Path) -> FloatArray:
    """Train reward of each row.

    Raises
    ------
    InputError
        One is no number, or most are not finite.
    """
    values = []
    for row in rows:
        try:
            values.append(to_number(row.cells[key]))
        except ValueError:
            raise InputError(
                f"the reward of this row is {repr(row.cells[key])[:40]}, not a number",
                path=path,
                row=row.number,
                key=key,
                advice="Name the key of the mean reward in a column map",
            ) from None
    reward = np.array(values, dtype=float)
    refuse_not_finite(reward, [row.number for row in rows], path, key)
    return reward


def refuse_not_finite(reward: FloatArray, numbers: Sequence[int], path: Path, key: str) -> None:
    """Raise where more than half of the rewards are NaN or infinite."""
    bad = ~np.isfinite(reward)
    if 2 * bad.sum() > reward.size:
        raise InputError(
            f"{bad.sum()} of {reward.size} rewards are NaN or infinite, the first one here",
            path=path,
            row=numbers[int(np.argmax(bad))],
            key=key,
            advice="Mend the reward function: without rewards a run teaches nothing",
        )


def read_series(
    rows: Sequence[Row], reward: FloatArray, keys: Mapping[str, str]
) -> tuple[dict[str, FloatArray], dict[str, Missing]]:
    """Every series of the rows, and why others are absent or have holes."""
    series: dict[str, FloatArray] = {}
    missing: dict[str, Missing] = {}
    for name in SERIES:
        key = keys.get(name)
        cells = [None if key is None else cell_number(row.cells.get(key)) for row in rows]
        values = reward if name == "reward" else np.array(cells, dtype=float)
        add_series(series, missing, name, values, any(cell is None for cell in cells))
    return series, missing


def add_series(
    series: dict[str, FloatArray],
    missing: dict[str, Missing],
    name: str,
    values: FloatArray,
    some_absent: bool,
) -> None:
    """File a series, or why it is absent or has holes. Infinite cells become NaN.

    The reward is always filed: who reads a run need not ask for it.
    """
    written = np.isfinite(values)
    if not written.all():
        missing[name] = "not logged" if some_absent else "not finite"
    if written.any() or name == "reward":
        series[name] = np.where(written, values, np.nan)
