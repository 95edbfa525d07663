"""Rows on the axis of optimizer steps, from a counter that may count something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError
from advisor.runs.columns import Columns
from advisor.runs.counter import row_window, settle
from advisor.runs.files import Row
from advisor.runs.keys import UNSURE_STEP_KEYS, plain
from advisor.runs.pilot_run import FloatArray
from advisor.runs.series import cell_number

MOST_STEPS = 1e8
"""Counts above it are times or tokens, not optimizer steps."""


@dataclass(frozen=True)
class Placed:
    """Rows on the axis of optimizer steps.

    Attributes
    ----------
    kept : list of int
        Indices of the rows that stay, in the order of their steps.
    step : ndarray of shape (kept,)
        One-based optimizer step of each.
    stretch : int
        Optimizer steps per count of the log's own counter (per row where none is logged).
    shift : int
        1 where the counter starts at 0.
    logging_steps : int or None
        As the log states it, unless its rows belie it or its counter counts refreshes.
    window : int
        Optimizer steps that a row seems to average.
    interval : int or None
        Refresh interval K, where the counter counts refreshes.
    assumptions, warnings : tuple of str
    """

    kept: list[int]
    step: FloatArray
    stretch: int
    shift: int
    logging_steps: int | None
    window: int
    interval: int | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    def at(self, count: npt.ArrayLike) -> FloatArray:
        """Optimizer steps of counts of the log's own counter."""
        return (np.asarray(count, dtype=float) + self.shift) * self.stretch


def place_rows(
    rows: Sequence[Row],
    key: str | None,
    columns: Columns,
    known: Mapping[str, Any],
    path: Path,
    logging_steps: int | None,
) -> Placed:
    """Place rows on the axis of optimizer steps.

    Parameters
    ----------
    rows : sequence of Row
        Rows with reward.
    key : str or None
        Key of the step; without one rows are counted.
    columns, known : Columns, mapping
        What the user said.
    path : Path
        For messages.
    logging_steps : int or None
        As the log states it.

    Returns
    -------
    placed : Placed

    Raises
    ------
    InputError
        A step is no number, the counter starts anew, many rows share a step, or a counter of
        rollouts has no known refresh interval.

    Notes
    -----
    Row n of a log that counts refreshes stands at optimizer step n K, the last of that refresh,
    and averages K steps: its reward is the mean over all mini-batches of the refresh. Steps
    (n - 1) K + 1 to n K all use the rollouts of the policy at (n - 1) K (`dynamics.policy_steps`).
    """
    refreshes = _counts_refreshes(key, columns, known, path)
    stretch = known_interval(known, path) if refreshes else 1
    if key is None:
        return _number_rows(len(rows), None if refreshes else known, stretch, logging_steps)
    assumptions: list[str] = []
    count = _read_counts(rows, key, path)
    window, remark = row_window(np.unique(count), logging_steps)
    kept, warnings = settle(count, rows, path, key, window)
    if refreshes and logging_steps is None:
        window, remark = 1, None  # rows some refreshes apart still average one each
    if remark is not None and logging_steps is None:
        assumptions.append(remark)
    elif remark is not None:
        logging_steps = None
        warnings.append(remark)
    shift = int(count[kept[0]] == 0)
    if shift:
        assumptions.append("steps were counted from 0 and were moved up by one")
    return Placed(
        kept,
        (count[kept] + shift) * stretch,
        stretch,
        shift,
        None if refreshes else logging_steps,
        window * stretch,
        stretch if refreshes else None,
        tuple(assumptions),
        tuple(warnings),
    )


def _number_rows(
    rows: int, known: Mapping[str, Any] | None, stretch: int, logging_steps: int | None
) -> Placed:
    """Place rows without a step by their number; ``known`` is None where they are refreshes."""
    given = None if known is None else known.get("logging_steps")
    window = int(given or logging_steps or 1) * stretch
    unit = "" if window == 1 else f" x {window}"
    return Placed(
        list(range(rows)),
        np.arange(1.0, rows + 1) * window,
        window,
        0,
        None if known is None else logging_steps,
        window,
        stretch if known is None else None,
        (f"step = row number{unit} assumed (no step is logged)",),
        (),
    )


def known_interval(known: Mapping[str, Any], path: Path) -> int:
    """K, optimizer steps per batch of rollouts, as flags or sidecar give it.

    Raises
    ------
    InputError
        One of its two factors is not given.
    """
    factors = ("minibatches_per_refresh", "epochs_per_refresh")
    lacking = [name for name in factors if known.get(name) is None]
    if lacking:
        raise InputError(
            "the step counts batches of rollouts, and how many optimizer steps each takes is "
            "not said",
            path=path,
            key=", ".join(lacking),
            advice=f"Add {' and '.join(lacking)} to pilots.toml, in [defaults] or in an entry with "
            "the log's path",
        )
    return int(known[factors[0]]) * int(known[factors[1]])


def _counts_refreshes(
    key: str | None, columns: Columns, known: Mapping[str, Any], path: Path
) -> bool:
    """Whether the step counts rollouts: as mapped, else not, unless the key leaves it open."""
    if columns.step_unit is not None:
        return columns.step_unit == "refresh"
    is_one = known.get("minibatches_per_refresh") == known.get("epochs_per_refresh") == 1
    if key is not None and not is_one and plain(key) in UNSURE_STEP_KEYS:
        raise InputError(
            "this counter may count optimizer steps or batches of rollouts",
            path=path,
            key=key,
            advice=f'Say in a column map: step = "{key}", step_unit = "optimizer" or "refresh"',
        )
    return False


def _read_counts(rows: Sequence[Row], key: str, path: Path) -> FloatArray:
    counts = []
    for row in rows:
        cell = row.cells.get(key)
        value = cell_number(cell)
        # The bounds also refuse NaN, which compares false.
        if value is None or not 0 <= value <= MOST_STEPS or value != int(value):
            raise InputError(
                f"the step of this row is {repr(cell)[:40]}, not a whole number below 1e8",
                path=path,
                row=row.number,
                key=key,
                advice="Correct the row, or name another step key in a column map",
            )
        counts.append(value)
    return np.array(counts)
