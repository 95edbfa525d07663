"""Cells become arrays; what is absent or not finite is said, never filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from advisor.errors import InputError
from advisor.logfiles.table import Table
from advisor.run.pilot_run import SERIES, Missing
from advisor.theory.arrays import BoolArray, FloatArray


def read_rewards(table: Table, key: str, path: Path) -> FloatArray:
    """Train reward of each row.

    Raises
    ------
    InputError
        One is no number, or most are not finite.
    """
    texts = table.text(key)
    if texts:
        row = min(texts)
        raise InputError(
            f"the reward of this row is {repr(texts[row])[:40]}, not a number",
            path=path,
            row=int(table.numbers[row]),
            key=key,
            advice="Name the key of the mean reward in a column map",
        )
    reward = table.column(key)
    refuse_not_finite(reward, table.numbers.tolist(), path, key)
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
    table: Table, reward: FloatArray, keys: Mapping[str, str]
) -> tuple[dict[str, FloatArray], dict[str, Missing]]:
    """Every series of the rows, and why others are absent or have holes."""
    series: dict[str, FloatArray] = {}
    missing: dict[str, Missing] = {}
    for name in SERIES:
        key = keys.get(name)
        values = reward if name == "reward" else table.column(key)
        add_series(series, missing, name, values, ~table.has(key), table.cut)
    return series, missing


def add_series(
    series: dict[str, FloatArray],
    missing: dict[str, Missing],
    name: str,
    values: FloatArray,
    absent: BoolArray,
    cut: BoolArray,
) -> None:
    """File a series, or why it is absent or has holes. Infinite cells become NaN.

    The reward is always filed: who reads a run need not ask for it.
    """
    written = np.isfinite(values)
    if not written.all():
        if not absent.any():
            missing[name] = "not finite"
        elif written.any() and np.all(cut[absent]):
            missing[name] = "cut"
        else:
            missing[name] = "not logged"
    if written.any() or name == "reward":
        series[name] = np.where(written, values, np.nan)
