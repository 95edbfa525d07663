"""Logged rows of one run become arrays; common to every format that logs row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.columns import Columns
from advisor.runs.files import Row
from advisor.runs.filters import choose_rows, matches, refuse_kinds
from advisor.runs.keys import find_keys, find_reward_key, has_reward_key
from advisor.runs.learning_rate import infer_schedule
from advisor.runs.pilot_run import FloatArray, Missing
from advisor.runs.raw_run import RawRun
from advisor.runs.series import read_points, read_rewards, read_series
from advisor.runs.spread import is_batch_spread
from advisor.runs.steps import Placed, place_rows


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
    chosen = choose_rows(rows, columns.filter, path)
    reward_key = find_reward_key(_reward_candidates(chosen, columns), columns, path)
    train = [row for row in chosen if row.cells.get(reward_key) not in (None, "")]
    if not train:
        raise InputError(
            "no row has a reward",
            path=path,
            key=reward_key,
            advice="Log the mean reward of each step, or name its key in a column map",
        )
    refuse_kinds(train, columns.filter, path)
    keys = find_keys(_keys(train), reward_key, columns, path, elsewhere=_keys(rows))
    reward = read_rewards(train, reward_key, path)
    placed = place_rows(train, keys.get("step"), columns, known, path, logging_steps)
    train, reward = [train[i] for i in placed.kept], reward[placed.kept]

    series, missing = read_series(train, reward, keys)
    warnings = [*placed.warnings, *_drop_unusable(series, missing, train, keys, known)]
    # Rows without a reward tell a rate too, where their step is known.
    rated = chosen if "step" in keys else train
    points = read_points(rated, keys.get("step"), keys.get("learning_rate", ""))
    facts, rising, told = _rate_facts(points, placed, planned_steps, series)
    eval_step, eval_reward = _evaluations(rows, keys, columns, placed.stretch)
    return RawRun(
        path=path,
        step=placed.step,
        series=series,
        missing=missing,
        eval_step=eval_step,
        eval_reward=eval_reward,
        facts=facts,
        rate_is_rising=rising,
        logging_steps=placed.logging_steps,
        window=placed.window,
        interval=placed.interval,
        keys_read={name: key for name, key in keys.items() if name in (*series, *UNSERIAL)},
        keys_ignored=tuple(sorted(set(_keys(train)) - set(keys.values()))),
        assumptions=placed.assumptions,
        warnings=(*warnings, *told),
    )


UNSERIAL = ("step", "eval_reward")
"""Names that are read and are no series."""


def _keys(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row.cells))


def _reward_candidates(rows: Sequence[Row], columns: Columns) -> list[str]:
    """Keys among which the reward is sought: those with a value, if the reward is among them."""
    keys = _keys(rows)
    written = [key for key in keys if any(row.cells.get(key) not in (None, "") for row in rows)]
    return written if has_reward_key(written) and "reward" not in columns.keys else keys


def _drop_unusable(
    series: dict[str, FloatArray],
    missing: dict[str, Missing],
    train: Sequence[Row],
    keys: Mapping[str, str],
    known: Mapping[str, Any],
) -> list[str]:
    """Take out series that do not mean what their key says; the warnings say which."""
    warnings = []
    if "reward_std_within_group" in series and is_batch_spread(train, keys, known):
        del series["reward_std_within_group"]
        missing["reward_std_within_group"] = "not applicable"
        warnings.append(
            f"'{keys['reward_std_within_group']}' is the spread over the whole batch "
            "(TRL >= 0.27), not within groups, and was left out"
        )
    if "entropy" in series and not np.any(np.nan_to_num(series["entropy"])):
        del series["entropy"]
        missing["entropy"] = "not logged"
        warnings.append(f"'{keys['entropy']}' is 0 in every row: not computed, not collapsed")
    rate = series.get("learning_rate")
    if rate is not None and np.nanmax(rate) <= 0:
        del series["learning_rate"]
        missing["learning_rate"] = "not logged"
        warnings.append(f"'{keys['learning_rate']}' is 0 in every row (too few digits printed?)")
    return warnings


def _rate_facts(
    points: Mapping[float, float],
    placed: Placed,
    planned_steps: int | None,
    series: Mapping[str, FloatArray],
) -> tuple[dict[str, Any], bool, list[str]]:
    """Learning rate and schedule, from every row that logs a rate, also those without reward."""
    facts: dict[str, Any] = {}
    if planned_steps is not None:
        facts["planned_steps"] = planned_steps
    if not points or "learning_rate" not in series:
        return facts, False, []
    found = infer_schedule(placed.at(list(points)), np.array(list(points.values())), planned_steps)
    facts["learning_rate"] = found.peak
    if found.kind is None:
        what = "the schedule cannot be told from the learning rates logged"
        return facts, found.is_rising, [f"{what}; they are used as they stand"]
    facts["schedule"], facts["warmup_steps"] = found.kind, found.warmup_steps
    if found.planned_steps is not None:
        facts["planned_steps"] = found.planned_steps
    return facts, False, []


def _evaluations(
    rows: Sequence[Row], keys: Mapping[str, str], columns: Columns, stretch: int
) -> tuple[FloatArray, FloatArray]:
    key = keys.get("eval_reward", keys["reward"] if columns.eval_filter else None)
    if key is None or "step" not in keys:
        return np.zeros(0), np.zeros(0)
    tested = [row for row in rows if matches(row, columns.eval_filter)]
    points = read_points(tested, keys["step"], key)
    # An evaluation comes after all optimizer steps of its refresh.
    return np.array(list(points)) * stretch, np.array(list(points.values()))
