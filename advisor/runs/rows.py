"""Logged rows of one run become arrays; common to every format that logs row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.columns import UNSURE_STEP_KEYS, Columns, find_keys
from advisor.runs.files import Row, to_number
from advisor.runs.learning_rate import infer_schedule
from advisor.runs.pilot_run import SERIES, FloatArray, Missing
from advisor.runs.raw_run import RawRun
from advisor.runs.spread import is_batch_spread
from advisor.runs.steps import known_interval, read_steps, row_window, settle, step_unit

KIND_KEYS = ("type", "kind", "split", "mode", "phase", "stage", "event")
"""Keys by which logs tell kinds of rows apart."""


def collect_run(
    rows: Sequence[Row],
    path: Path,
    columns: Columns,
    known: Mapping[str, Any],
    *,
    logging_steps: int | None = None,
    planned_steps: int | None = None,
) -> RawRun:
    """Turn logged rows into a run.

    Parameters
    ----------
    rows : sequence of Row
        In the order of the file.
    path : Path
        For messages.
    columns : Columns
        The user's column map.
    known : mapping
        What flags and sidecar say of the file.
    logging_steps, planned_steps : int or None
        Where the log states them.

    Returns
    -------
    run : RawRun

    Raises
    ------
    InputError
        No reward key, rows of several kinds, a step that starts anew, rewards that are no numbers.
    """
    keys = find_keys(dict.fromkeys(key for row in rows for key in row.cells), columns, path)
    chosen = [row for row in rows if _matches(row, columns.filter)]
    if not chosen:
        raise InputError(
            f"no row passes the filter {_show(columns.filter)}",
            path=path,
            key="columns.filter",
            advice=f"Values seen: {_values(rows, next(iter(columns.filter)))}",
        )
    train = [row for row in chosen if row.cells.get(keys["reward"]) not in (None, "")]
    if not train:
        raise InputError(
            "no row has a reward" + (" and passes the filter" if columns.filter else ""),
            path=path,
            key=keys["reward"],
            advice="Log the mean reward of each step, or name its key in a column map",
        )
    _refuse_kinds(train, columns, path)
    reward = _rewards(train, keys["reward"], path)

    assumptions: list[str] = []
    position, stretch = _positions(train, keys, columns, known, path)
    window_seen, remark = row_window(np.unique(position), logging_steps)
    if "step" not in keys:
        window_seen = int(known.get("logging_steps", logging_steps) or 1)
        position = position * window_seen
        assumptions.append(f"step = row number x {window_seen} assumed (the log has no step)")
    elif stretch > 1:
        window_seen, remark = 1, None
    kept, warnings = settle(position, train, path, keys.get("step", "step"), window_seen)
    if remark:
        (assumptions if logging_steps is None else warnings).append(remark)
    train, reward = [train[i] for i in kept], reward[kept]
    step = position[kept]
    if step[0] == 0:
        assumptions.append("steps were counted from 0 and were moved up by one")
        step = step + 1
    step = (step - 1) * stretch + 1

    series, missing = _series(train, reward, keys)
    if "reward_std_within_group" in series and is_batch_spread(train, keys, known):
        del series["reward_std_within_group"]
        missing["reward_std_within_group"] = "not applicable"
        warnings.append(
            f"'{keys.pop('reward_std_within_group')}' is the spread over the whole batch "
            "(TRL >= 0.27), not within groups, and was left out"
        )
    if "entropy" in series and not np.any(np.nan_to_num(series["entropy"])):
        del series["entropy"]
        missing["entropy"] = "not logged"
        warnings.append(f"'{keys.pop('entropy')}' is 0 in every row: not computed, not collapsed")
    facts, told = _rate_facts(chosen, keys, columns, stretch, planned_steps, series, missing)
    evaluations = _evaluations(rows, keys, columns, stretch)
    return RawRun(
        path=path,
        step=step,
        series=series,
        missing=missing,
        eval_step=evaluations[0],
        eval_reward=evaluations[1],
        facts=facts,
        logging_steps=None if remark else logging_steps,
        window=window_seen,
        keys_read={name: key for name, key in keys.items() if name not in missing},
        keys_ignored=_ignored(train, keys),
        assumptions=tuple(assumptions),
        warnings=tuple(warnings + told),
    )


def _positions(
    train: Sequence[Row],
    keys: Mapping[str, str],
    columns: Columns,
    known: Mapping[str, Any],
    path: Path,
) -> tuple[FloatArray, int]:
    """Counter of each row, and optimizer steps per count."""
    key = keys.get("step")
    if key is None:
        doubtful = [name for name in UNSURE_STEP_KEYS if name in train[0].cells]
        if doubtful and columns.step_unit is None:
            step_unit(columns, doubtful[0], known, path)
            return read_steps(train, doubtful[0], path), 1
    unit = step_unit(columns, key, known, path)
    stretch = known_interval(known, path) if unit == "refresh" else 1
    if key is None:
        return np.arange(1.0, len(train) + 1), stretch
    return read_steps(train, key, path), stretch


def _matches(row: Row, conditions: Mapping[str, str]) -> bool:
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


def _refuse_kinds(train: Sequence[Row], columns: Columns, path: Path) -> None:
    for key in KIND_KEYS:
        if key in columns.filter:
            continue
        kinds = list(dict.fromkeys(str(row.cells[key]) for row in train if key in row.cells))
        if len(kinds) > 1 and len(kinds) < len(train):
            raise InputError(
                f"rows of {len(kinds)} kinds hold a reward ({', '.join(kinds[:8])})",
                path=path,
                key=key,
                advice=f"Choose one in a column map: filter = \"{key}=...\"",
            )


def _rewards(train: Sequence[Row], key: str, path: Path) -> FloatArray:
    values = []
    for row in train:
        try:
            values.append(to_number(row.cells[key]))
        except ValueError:
            shown = repr(row.cells[key])
            raise InputError(
                f"the reward of this row is {shown[:40]}, not a number",
                path=path,
                row=row.number,
                key=key,
                advice="Name the key of the mean reward in a column map",
            ) from None
    reward = np.array(values, dtype=float)
    refuse_not_finite(reward, [row.number for row in train], path, key)
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
            advice="Mend the reward function; a run without rewards teaches nothing",
        )


def _series(
    train: Sequence[Row], reward: FloatArray, keys: Mapping[str, str]
) -> tuple[dict[str, FloatArray], dict[str, Missing]]:
    series: dict[str, FloatArray] = {}
    missing: dict[str, Missing] = {}
    for name in SERIES:
        key = keys.get(name)
        cells = [None if key is None else cell_number(row.cells.get(key)) for row in train]
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
    """File a series, or why it is absent or has holes. Infinite cells become NaN."""
    written = np.isfinite(values)
    if not written.all():
        missing[name] = "not logged" if some_absent else "not finite"
    if written.any():
        series[name] = np.where(written, values, np.nan)


def cell_number(cell: Any) -> float | None:
    """Number of a cell that is not vital: text counts as absent."""
    try:
        return to_number(cell)
    except ValueError:
        return None


def _rate_facts(
    rows: Sequence[Row],
    keys: Mapping[str, str],
    columns: Columns,
    stretch: int,
    planned_steps: int | None,
    series: dict[str, FloatArray],
    missing: dict[str, Missing],
) -> tuple[dict[str, Any], list[str]]:
    """Learning rate and schedule, from every row that logs a rate (also those without reward)."""
    facts: dict[str, Any] = {}
    if planned_steps is not None:
        facts["planned_steps"] = planned_steps
    key, counter = keys.get("learning_rate"), keys.get("step")
    rates: dict[float, float] = {}
    for index, row in enumerate(rows):
        rate = cell_number(row.cells.get(key)) if key else None
        at = cell_number(row.cells.get(counter)) if counter else index + 1.0
        if rate is not None and at is not None and np.isfinite(rate) and np.isfinite(at):
            rates[at * stretch] = rate
    if not rates:
        return facts, []
    step = np.array(sorted(rates))
    rate_series = np.array([rates[at] for at in step])
    if rate_series.max() <= 0:
        series.pop("learning_rate", None)
        missing["learning_rate"] = "not logged"
        return facts, [f"'{key}' is 0 in every row (too few digits?) and was left out"]
    found = infer_schedule(step, rate_series, planned_steps)
    facts["learning_rate"] = found.peak
    if found.still_rising:
        facts["learning_rate_still_rising"] = True
    if found.kind is None:
        return facts, [f"the schedule cannot be told from '{key}'; its logged values are used"]
    facts["schedule"], facts["warmup_steps"] = found.kind, found.warmup_steps
    if found.planned_steps is not None:
        facts["planned_steps"] = found.planned_steps
    return facts, []


def _evaluations(
    rows: Sequence[Row], keys: Mapping[str, str], columns: Columns, stretch: int
) -> tuple[FloatArray, FloatArray]:
    key, counter = keys.get("eval_reward"), keys.get("step")
    if key is None and columns.eval_filter:
        key = keys["reward"]
    if key is None or counter is None:
        return np.zeros(0), np.zeros(0)
    found: dict[float, float] = {}
    for row in rows:
        if columns.eval_filter and not _matches(row, columns.eval_filter):
            continue
        value, at = cell_number(row.cells.get(key)), cell_number(row.cells.get(counter))
        if value is not None and at is not None and np.isfinite(value) and np.isfinite(at):
            # An evaluation comes after the optimizer steps of its refresh.
            found[at * stretch] = value
    steps = sorted(found)
    return np.array(steps, dtype=float), np.array([found[at] for at in steps], dtype=float)


def _ignored(train: Sequence[Row], keys: Mapping[str, str]) -> tuple[str, ...]:
    read = set(keys.values())
    return tuple(sorted({key for row in train for key in row.cells} - read))


def _show(conditions: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in conditions.items())


def _values(rows: Sequence[Row], key: str) -> str:
    seen = dict.fromkeys(f"{key}={row.cells[key]}" for row in rows if key in row.cells)
    return ", ".join(list(seen)[:8]) or f"no row has the key '{key}'"
