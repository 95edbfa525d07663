"""Cells become arrays; what is absent or not finite is said, never filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.logfiles.table import Column, Table
from advisor.runs.pilot_run import SERIES, Missing
from advisor.runs.trainers import plain, spellings
from advisor.runs.trainers.key_table import COMPONENT_STD
from advisor.theory import BoolArray, FloatArray, IntArray

OF_A_SAMPLE = frozenset(
    {
        *("prompt", "prompts", "question", "completion", "completions", "response", "responses"),
        *("messages", "output", "answer", "generated_text", "text"),
    }
)
"""Keys of the rows of single samples, of which a log may hold some and not others."""

LEAST_CHANGES = 4
"""Rows that differ from the one before, from which on a rhythm is no chance."""

LEAST_REPEATED = 0.5
"""Share of rows that repeat the one before, from which on they are copies of it."""

LEAST_SHARES = 5
"""Different mean rewards from which on agreement with their binomial spread is no chance."""

LEAST_SHARE = 1e-9
"""Mean reward below which nobody counted: one in a billion completions."""

NEAR = 0.01
"""Relative difference of two variances that four printed digits leave."""

UNEVEN = 5.0
"""Longest stretch of repeated rows over the median one; in a run that has died it is far longer."""


def read_rewards(table: Table, key: str, path: Path) -> FloatArray:
    """Train reward of each row."""
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
    bad = ~np.isfinite(reward)
    if 2 * bad.sum() > reward.size:
        raise InputError(
            f"{bad.sum()} of {reward.size} rewards are NaN or infinite, the first one here",
            path=path,
            row=int(table.numbers[int(np.argmax(bad))]),
            key=key,
            advice="Mend the reward function: without rewards a run teaches nothing",
        )
    return reward


def read_series(
    table: Table, reward: FloatArray, keys: Mapping[str, str]
) -> tuple[dict[str, FloatArray], dict[str, Missing]]:
    """Every series of the rows, and why others are absent or have holes; infinities become NaN."""
    series: dict[str, FloatArray] = {}
    missing: dict[str, Missing] = {}
    for name in SERIES:
        key = keys.get(name)
        if key is None and name != "reward":
            missing[name] = "not logged"
            continue
        values = reward if name == "reward" else table.column(key)
        written = np.isfinite(values)
        if not written.all():
            absent = ~table.has(key)
            if not absent.any():
                missing[name] = "not finite"
            elif written.any() and np.all(table.cut[absent]):
                missing[name] = "cut"
            else:
                missing[name] = "not logged"
        if written.any() or name == "reward":
            series[name] = np.where(written, values, np.nan)
    return series, missing


def join_rows(table: Table, key: str | None) -> tuple[Table, str | None]:
    """Average the rows of each step where every step has equally many, and say so."""
    if key is None or OF_A_SAMPLE & {name.lower() for name in table.keys}:
        return table, None
    count = table.column(key)
    if not np.isfinite(count).all():
        return table, None
    starts = np.flatnonzero(np.append(True, np.diff(count) != 0))
    sizes = np.diff(np.append(starts, count.size))
    each = int(sizes[0]) if sizes.size else 0
    is_even = bool(np.all(sizes[:-1] == each)) and 0 < int(sizes[-1]) <= each
    if each < 2 or sizes.size < 3 or not is_even:
        return table, None
    if np.any(np.diff(count[starts]) <= 0):
        return table, None
    whole = starts if int(sizes[-1]) == each else starts[:-1]
    place = np.arange(whole.size * each) // each
    rest = "" if whole.size == starts.size else "; the last step lacks some of its rows, left out"
    return (
        _averaged(table, place, whole),
        f"each step has {each} rows (micro-batches or prompts), which were averaged{rest}",
    )


def _averaged(table: Table, place: IntArray, starts: IntArray) -> Table:
    columns = {}
    for key in table.keys:
        values = table.column(key)[: place.size]
        there = np.isfinite(values)
        number = np.bincount(place[there], minlength=starts.size)
        total = np.bincount(place[there], values[there], minlength=starts.size)
        filled = np.flatnonzero(number)
        means: FloatArray = total[filled] / number[filled]
        words = table.text(key)
        text = {row: words[int(at)] for row, at in enumerate(starts) if int(at) in words}
        columns[key] = Column(filled, means, text)
    return Table(table.numbers[starts], columns, table.cut[starts])


def is_batch_spread(
    table: Table, keys: Mapping[str, str], known: Mapping[str, Any], reward: FloatArray
) -> bool:
    """Tell TRL's newer ``reward_std`` (over the batch) from the older (mean within groups).

    True where a row proves it. TRL 0.27 changed the meaning and kept the key, and no log states
    its version: either every group is silent and the spread is not zero, or the spread equals that
    of the only reward function, which TRL takes over the batch. With one prompt per step both
    spreads agree.
    """
    spread = table.column(keys["reward_std_within_group"])
    if "silent_group_share" in keys:
        silent = table.column(keys["silent_group_share"])
        if np.any((silent >= 1) & (spread > 1e-6)):
            return True
    if known.get("prompts_per_step") == 1:
        return False
    components = [
        key
        for key in table.keys
        if any(COMPONENT_STD.fullmatch(name) for name in spellings(plain(key)))
    ]
    if len(components) != 1:
        return _is_of_shares(spread, reward)
    component = table.column(components[0])
    both = np.isfinite(spread) & np.isfinite(component)
    # One row, or rows without any spread, may agree by chance.
    if both.sum() < 2 or not np.any(spread[both] > 0):
        return False
    return bool(np.allclose(spread[both], component[both], rtol=1e-3, atol=1e-6))


def _is_of_shares(spread: FloatArray, reward: FloatArray) -> bool:
    """Whether a spread is that of n rewards of 0 or 1 whose mean is p: sqrt(p (1 - p) n / (n - 1)).

    That of groups is less, by more the more the prompts differ. Values that no counting gives,
    such as -1e300 or a reward of 1e-300, are none.
    """
    if reward.shape != spread.shape:
        return False
    kept = np.isfinite(spread) & (reward > LEAST_SHARE) & (reward < 1 - LEAST_SHARE)
    # Two rewards of 0 and 1 have a spread of 0.71, more of them less.
    if np.unique(reward[kept]).size < LEAST_SHARES or np.abs(spread[kept]).max() > 1:
        return False
    ratio = spread[kept] ** 2 / (reward[kept] * (1 - reward[kept]))
    return bool(ratio.min() > 1 - NEAR and np.ptp(ratio) < NEAR)


def measured_rows(
    table: Table, rewards: FloatArray, keys: Iterable[str]
) -> tuple[BoolArray, str | None]:
    """Rows in which something measured changed, and a remark where others were left out."""
    everything = np.ones(rewards.size, dtype=bool)
    # Where the reward changes most of the time nothing else need be asked.
    repeats = rewards[1:] == rewards[:-1]
    if rewards.size <= 2 * LEAST_CHANGES or np.mean(repeats) < LEAST_REPEATED / 2:
        return everything, None
    columns = [rewards, *map(table.column, keys)]
    columns = [column for column in columns if np.unique(column[np.isfinite(column)]).size > 1]
    if not columns:
        return everything, None
    changed = np.zeros(rewards.size, dtype=bool)
    changed[0] = True
    for column in columns:
        same = (column[1:] == column[:-1]) | (np.isnan(column[1:]) & np.isnan(column[:-1]))
        changed[1:] |= ~same
    repeats = int((~changed).sum())
    if changed.sum() <= LEAST_CHANGES or repeats < LEAST_REPEATED * changed.size:
        return everything, None
    places = np.flatnonzero(changed)
    lengths = np.diff(np.append(places, changed.size))
    is_regular = _gap(places) >= 2 and lengths.max() <= UNEVEN * np.median(lengths)
    if not is_regular:
        return everything, None
    return changed, (
        f"{repeats} of {changed.size} rows repeat the row before in all that is measured and were "
        "left out (gaps filled forward)"
    )


def measured_evaluations(reward: FloatArray) -> BoolArray:
    """Which values of a held-out column were measured, where all rows hold one."""
    everything = np.ones(reward.size, dtype=bool)
    if reward.size <= 2 * LEAST_CHANGES:
        return everything
    rows = np.arange(reward.size)
    filled = np.flatnonzero(reward != 0)
    if 2 <= filled.size <= reward.size * (1 - LEAST_REPEATED):
        # The first and the last row may be evaluated out of turn.
        inner = filled[(filled > 0) & (filled < reward.size - 1)]
        gap = _gap(inner if inner.size >= 2 else filled)
        if gap >= 2:
            start = int((inner if inner.size >= 2 else filled)[0])
            due: BoolArray = (rows - start) % gap == 0
            nonzero: BoolArray = reward != 0
            return np.logical_or(due, nonzero)
    changed = np.append(True, np.diff(reward) != 0)
    is_held = int((~changed).sum()) >= LEAST_REPEATED * reward.size
    places = np.flatnonzero(changed)
    if is_held and places.size > LEAST_CHANGES and _gap(places[1:]) >= 2:
        return changed
    return everything


def _gap(places: IntArray) -> int:
    """Greatest common distance of places; 1 where there is none."""
    return int(np.gcd.reduce(np.diff(places))) if places.size >= 2 else 1
