"""Rows on the axis of optimizer steps, and cells as series; what is absent is never filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.errors import BrokenRewardError, InputError
from advisor.runs.arrays import BoolArray, FloatArray
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.logged import Columns, Table
from advisor.runs.pilot_run import IN_NO_RUN, Missing, PilotRun, StepUnit
from advisor.runs.settings import TABLES
from advisor.runs.trainers import KeyTable, plain, spellings
from advisor.runs.trainers.key_table import COMPONENT_STD, DATA, PARTS_OF_A_STEP, UNSURE_STEPS

OF_A_SAMPLE = frozenset(DATA["rows"]["of_a_sample"])

RULE = SimpleNamespace(**TABLES["series_rule"])


@dataclass(frozen=True)
class Placed:
    """Rows on the axis of optimizer steps."""

    kept: list[int]
    step: FloatArray
    unit: StepUnit
    stretch: int
    shift: int
    logging_steps: int | None
    window: int
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def at(self, count: npt.ArrayLike) -> FloatArray:
        """Steps of counts of the log's own counter."""
        return (np.asarray(count, dtype=float) + self.shift) * self.stretch


def place_rows(
    table: Table,
    count: FloatArray,
    key: str | None,
    unit: StepUnit,
    known: Mapping[str, Any],
    path: Path,
    logging_steps: int | None,
) -> Placed:
    """Place rows on the axis of steps, in the unit of the log's counter."""
    is_refresh = unit == "refresh"
    stated = None if is_refresh else logging_steps
    if key is None:
        given = None if is_refresh else known.get("logging_steps")
        window = int(given or logging_steps or 1)
        by = "" if window == 1 else f" x {window}"
        line = f"step = row number{by} assumed (no step is logged)"
        rows = np.arange(1.0, len(table) + 1)
        return Placed([*range(len(table))], rows * window, unit, window, 0, stated, window, (line,))
    kept, warnings = keep_increasing(count, table, path, key)
    window, remark = row_window(np.unique(count), logging_steps)
    assumptions: list[str] = []
    if is_refresh and logging_steps is None:
        window = 1  # rows some refreshes apart still average one each
    elif remark is not None and logging_steps is None:
        assumptions.append(remark)
    elif remark is not None:
        stated = None
        warnings.append(remark)
    shift = int(count[kept[0]] == 0)
    if shift:
        assumptions.append("steps were counted from 0 and were moved up by one")
    step, notes = count[kept] + shift, (tuple(assumptions), tuple(warnings))
    return Placed(kept, step, unit, 1, shift, stated, window, *notes)


def unit_of(
    key: str | None, framework: KeyTable, columns: Columns, known: Mapping[str, Any]
) -> StepUnit:
    """What a counter counts: as mapped by the user, else as its framework declares."""
    if columns.step_unit is not None:
        return "refresh" if columns.step_unit == "refresh" else "optimizer"
    if key is None:
        return "refresh" if framework.refreshes and not framework.optimizer_steps else "optimizer"
    names = spellings(plain(key))
    if any(name in framework.optimizer_steps for name in names):
        return "optimizer"
    if any(name in framework.refreshes for name in names):
        return "refresh"
    is_one = known.get("minibatches_per_refresh") == known.get("epochs_per_refresh") == 1
    if not is_one and any(name in UNSURE_STEPS for name in names):
        return "unknown"
    return "optimizer"


def read_counts(table: Table, key: str, path: Path) -> FloatArray:
    """Counter of each row."""
    count = table.column(key)
    there = np.flatnonzero(table.has(key) | np.isin(np.arange(len(table)), [*table.text(key)]))
    with np.errstate(over="ignore", invalid="ignore"):
        if np.unique(count[there]).size >= PilotRun.LEAST_REWARDS and there.size < count.size:
            # Rows of micro-batches, of which the last, or the first, counts the step.
            rows, steps = np.arange(count.size), count[there]
            if there[0]:
                ends = np.append(steps, 2 * steps[-1] - steps[-2])
                count = ends[np.searchsorted(there, rows)]
            else:
                count = steps[np.searchsorted(there, rows, side="right") - 1]
        # The bounds also refuse NaN, which compares false.
        bad = ~((count >= 0) & (count <= limits.most_steps) & (count == np.round(count)))
    if bad.any():
        row = int(np.argmax(bad))
        is_number = table.has(key)[row]
        shown = f"{count[row]:g}" if is_number else repr(table.text(key).get(row))[:40]
        problem = f"the step of this row is {shown}, not a whole number below 1e8"
        advice = "Correct the row, or name another step key in a column map"
        raise wrong_at(row, table, path, key, problem, advice)
    return count


def is_shuffled(count: FloatArray) -> bool:
    """Whether rows are out of order, rather than those of a run that was started again."""
    back = int(np.sum(np.diff(count) < 0))
    is_reversed = back == count.size - 1
    # A counter that starts again in each epoch repeats itself.
    twice = count.size - np.unique(count).size
    is_mixed = back >= max(3, 0.1 * count.size) and twice <= 0.1 * count.size
    return not is_reversed and back > 0 and (not twice or is_mixed)


def one_row_a_step(
    table: Table, key: str | None, path: Path
) -> tuple[Table, FloatArray, list[str]]:
    """Rows in the order of their steps, those of one step averaged; counter; what was done."""
    if key is None:
        return table, np.arange(1.0, len(table) + 1), []
    count, notes = read_counts(table, key, path), list[str]()
    is_filled = not np.array_equal(count, table.column(key), equal_nan=True)
    if is_mixed := is_shuffled(count):
        order = np.argsort(count, kind="stable")
        table, count = table.take(order), count[order]
        notes.append("rows were out of order and were sorted by step")
    repeated = int(np.sum(np.diff(count) == 0))
    if is_filled or repeated > (0 if is_mixed else max(2, count.size // 4)):
        sample = next((name for name in table.keys if name.lower() in OF_A_SAMPLE), None)
        if sample is not None:
            problem = f"{repeated} of {count.size} rows repeat the step: each is a completion"
            advice = "Give a log with the mean reward of each step"
            raise wrong_at(np.argmax(np.diff(count) == 0) + 1, table, path, sample, problem, advice)
        notes.append(f"{count.size} rows at {count.size - repeated} steps: averaged by step")
        starts = np.flatnonzero(np.append(True, np.diff(count) != 0))
        table, count = table.averaged(starts, key, count[starts]), count[starts]
    return table, count, notes


def wrong_at(
    row: int | np.intp, table: Table, path: Path, key: str, problem: str, advice: str
) -> InputError:
    """Error of a cell."""
    return InputError(problem, path=path, row=int(table.numbers[row]), key=key, advice=advice)


def keep_increasing(
    step: FloatArray, table: Table, path: Path, key: str
) -> tuple[list[int], list[str]]:
    """Which rows to keep so that the step increases strictly: the later of two at one step."""
    if step.size > 2 and np.all(np.diff(step) < 0):
        return list(range(step.size))[::-1], ["rows stood in descending order and were reversed"]
    if np.all(np.diff(step) > 0):
        return list(range(step.size)), []
    kept: list[int] = []
    warnings: list[str] = []
    for index, value in enumerate(step):
        dropped = []
        while kept and step[kept[-1]] >= value:
            dropped.append(kept.pop())
        if dropped:
            first, last = step[dropped[-1]], step[dropped[0]]
            at = f"step {first:g} was" if first == last else f"steps {first:g} to {last:g} were"
            # A run that was started again may not have come as far again.
            again = min(last, step[index:].max())
            only = f", and up to {last:g} before it" if last > again else ""
            at = at if not only else f"steps {first:g} to {again:g} were"
            why = f"logged twice (a resumed run){only}: the earlier rows are {IN_NO_RUN}"
            warnings.append(f"{at} {why}")
        kept.append(index)
    lost = step.size - len(kept)
    if len(kept) < PilotRun.LEAST_REWARDS <= step.size:
        problem = f"{lost} of {step.size} rows stand at steps that are logged again further down"
        advice = "Split the file where another run starts, the first time here"
        raise wrong_at(np.argmax(np.diff(step) < 0) + 1, table, path, key, problem, advice)
    more = len(warnings) - 3
    return kept, warnings[:3] + ([f"... and {more} times more"] if more > 0 else [])


def row_window(step: FloatArray, stated: int | None) -> tuple[int, str | None]:
    """Optimizer steps that one row averages, and a remark where that is not what was stated."""
    if step.size < 2:
        return stated or 1, None
    gap = int(np.median(np.diff(step)[1 if step.size > 2 else 0 :]))
    if stated is not None:
        if step.size > 2 and 0 < gap < stated:
            # transformers keeps the default of 500 in the file of a run that logs by epoch
            return gap, f"logging_steps = {stated} in the log, but rows stand {gap} steps apart"
        return stated, None
    if gap > 1 and step[0] > 0 and step[1] % gap == 0:
        return gap, f"logging_steps = {gap} assumed (rows stand at multiples of {gap})"
    return 1, None


def read_rewards(table: Table, key: str, path: Path) -> tuple[FloatArray, list[str]]:
    """Train reward of each row, NaN where it is absurd, and which are."""
    texts = table.text(key)
    if texts:
        row = min(texts)
        problem = f"the reward of this row is {repr(texts[row])[:40]}, not a number"
        advice = "Export numbers without signs such as %, or name another key: --column reward=KEY"
        if re.fullmatch(r"[-+]?[\d.]*,\d+(?:[eE][-+]?\d+)?", texts[row]):
            problem = f"the reward of this row, {texts[row][:40]}, has a decimal comma"
            advice = "Export the table again with decimal points, in an English locale"
        raise wrong_at(row, table, path, key, problem, advice)
    reward = table.column(key)
    sizes = np.abs(np.where(np.abs(reward) < RULE.largest, reward, np.nan))
    known = np.append(sizes[np.isfinite(sizes)], 1.0)
    usual = RULE.absurd * max(1.0, float(np.quantile(known, 0.75, method="lower")))
    odd = np.isfinite(reward) & ~(sizes <= usual)
    is_few = odd.sum() <= max(1, 0.05 * reward.size)
    odd &= is_few | np.isnan(sizes)
    rows = np.flatnonzero(odd)[:1].tolist()
    what = f"is absurd, and {IN_NO_RUN}"
    notes = [f"the reward of row {table.numbers[n]}, {reward[n]:.3g}, {what}" for n in rows]
    reward = np.where(odd, np.nan, reward)
    bad = ~np.isfinite(reward)
    if 2 * bad.sum() > reward.size:
        what = "are NaN, infinite or beyond 1e30, the first one here"
        problem = f"{bad.sum()} of {reward.size} rewards {what}"
        advice = "Mend the reward function: no reward is left to fit"
        if not bad.all():
            advice = "Mend the reward function, or keep the rows before and set collapsed = true"
        row = int(table.numbers[np.argmax(bad)])
        raise BrokenRewardError(problem, path=path, row=row, key=key, advice=advice)
    return reward, notes


def read_series(
    table: Table, reward: FloatArray, keys: Mapping[str, str], known: Mapping[str, Any]
) -> tuple[dict[str, FloatArray], dict[str, Missing], dict[str, BoolArray], list[str]]:
    """Series of the rows, why others are absent, rows that are not finite, what means other things.

    Infinities become NaN.
    """
    series: dict[str, FloatArray] = {}
    lost: dict[str, BoolArray] = {}
    missing: dict[str, Missing] = {}
    for name in PilotRun.SERIES:
        key = keys.get(name)
        if key is None and name != "reward":
            missing[name] = "not logged"
            continue
        values = reward if name == "reward" else table.column(key)
        written = np.isfinite(values)
        if not written.all():
            absent = ~table.has(key)
            is_cut = bool(written.any() and np.all(table.cut[absent]))
            why: Missing = "cut" if is_cut else "not logged"
            missing[name] = why if absent.any() else "not finite"
            # An absurd reward was left out, and is finite.
            lost[name] = (~absent & ~np.isfinite(table.column(key))) | stopped(written)
        if written.any() or name == "reward":
            series[name] = np.where(written, values, np.nan)
    return series, missing, lost, _drop_unusable(series, missing, table, keys, known)


def stopped(written: BoolArray) -> BoolArray:
    """Last rows without a value that nearly all others have: a NaN may be written as null."""
    rows = int(written.size - np.argmax(written[::-1]))
    is_long = written.any() and written.size - rows >= max(5, 0.1 * written.size)
    is_so = is_long and rows >= 5 and written[:rows].mean() >= 0.95
    return (np.arange(written.size) >= rows) & is_so


def is_batch_spread(
    table: Table, keys: Mapping[str, str], known: Mapping[str, Any], reward: FloatArray
) -> bool:
    """Tell TRL's newer ``reward_std`` (over the batch, >= 0.27) from the older (within groups)."""
    spread = table.column(keys["reward_std_within_group"])
    if "silent_group_share" in keys:
        silent = table.column(keys["silent_group_share"])
        if np.any((silent >= 1) & (spread > 1e-6)):
            return True
    if known.get("prompts_per_step") == 1:
        return False
    fits = COMPONENT_STD.fullmatch
    components = [key for key in table.keys if any(map(fits, spellings(plain(key))))]
    if len(components) != 1:
        return _is_of_shares(spread, reward)
    component = table.column(components[0])
    both = np.isfinite(spread) & np.isfinite(component)
    # One row, or rows without any spread, may agree by chance.
    if both.sum() < 2 or not np.any(spread[both] > 0):
        return False
    return bool(np.allclose(spread[both], component[both], rtol=1e-3, atol=1e-6))


def _is_of_shares(spread: FloatArray, reward: FloatArray) -> bool:
    """Whether a spread is that of n rewards of 0 or 1 with mean p: sqrt(p (1 - p) n / (n - 1))."""
    if reward.shape != spread.shape:
        return False
    kept = np.isfinite(spread) & (reward > RULE.least_share) & (reward < 1 - RULE.least_share)
    # Two rewards of 0 and 1 have a spread of 0.71, more of them less.
    if np.unique(reward[kept]).size < RULE.fewest_means or np.abs(spread[kept]).max() > 1:
        return False
    ratio = spread[kept] ** 2 / (reward[kept] * (1 - reward[kept]))
    return bool(ratio.min() > 1 - RULE.near and np.ptp(ratio) < RULE.near)


def measured_evaluations(reward: FloatArray) -> BoolArray:
    """Which values of a held-out column were measured, where 0 may fill the others."""
    filled = np.flatnonzero(reward != 0)
    # The first and the last row may be evaluated out of turn.
    inner = filled[(filled > 0) & (filled < reward.size - 1)]
    inner = inner if inner.size >= 2 else filled
    gap = int(np.gcd.reduce(np.diff(inner))) if inner.size >= 2 else 1
    if reward.size <= 8 or gap < 2 or filled.size > reward.size / 2:
        return np.ones(reward.size, dtype=bool)
    return np.asarray(((np.arange(reward.size) - inner[0]) % gap == 0) | (reward != 0))


def add_derived(
    series: dict[str, FloatArray], train: Table, reward: str, *, times_parts: bool
) -> None:
    """Add the silent share and the time of a step, where only their parts are logged."""
    parts = [name for name in ("all_right_share", "all_wrong_share") if name in series]
    if any(np.nanmax(series[name]) > 1 for name in parts):  # counts, as rLLM logs them
        key = next((key for key in train.filled_keys if plain(key).endswith("solve_partial")), None)
        total = np.sum([series[name] for name in parts], axis=0) + train.column(key)
        for name in parts:
            shares = series.pop(name) / np.where(total > 0, total, np.nan)
            series |= {name: shares} if np.isfinite(shares).any() else {}
    if "silent_group_share" not in series:
        mean = "mean" if "mean" in reward else reward
        ends = ("max", "min") if mean == "mean" else (f"{reward}_max", f"{reward}_min")
        most, least = map(train.column, [reward.replace(mean, end) for end in ends])
        # Of a batch whose rewards differ it does not show in how many groups they do.
        if np.mean(most == least) >= 0.95:
            series["silent_group_share"] = np.where(most == least, 1.0, np.nan)
    if "silent_group_share" not in series and {"all_right_share", "all_wrong_share"} <= set(series):
        series["silent_group_share"] = series["all_right_share"] + series["all_wrong_share"]
    if "step_time_seconds" in series or not times_parts:
        return
    # A step that is not timed as a whole takes as long as its rollouts and its training.
    names = {name: key for key in train.filled_keys for name in spellings(plain(key))}
    pair = next((p for p in PARTS_OF_A_STEP if all(name in names for name in p)), ())
    total = np.sum([train.column(names[name]) for name in pair], axis=0)
    if pair and np.isfinite(total).all():
        series["step_time_seconds"] = total


def _drop_unusable(
    series: dict[str, FloatArray],
    missing: dict[str, Missing],
    train: Table,
    keys: Mapping[str, str],
    known: Mapping[str, Any],
) -> list[str]:
    """Take out series that do not mean what their key says; the warnings say which."""
    unusable: dict[str, tuple[Missing, str]] = {}
    spread, rate = "reward_std_within_group", series.get("learning_rate")
    if spread in series and is_batch_spread(train, keys, known, series["reward"]):
        why = (
            "is the spread over the whole batch (TRL >= 0.27), not within groups, and was left out"
        )
        unusable[spread] = "not applicable", why
    if "entropy" in series and not np.any(np.nan_to_num(series["entropy"])):
        unusable["entropy"] = "not logged", "is 0 in every row: not computed, not collapsed"
    if rate is not None and np.nanmax(rate) <= 0:
        unusable["learning_rate"] = "not logged", "is 0 in every row (too few digits printed?)"
    for name, (reason, _) in unusable.items():
        del series[name]
        missing[name] = reason
    return [f"'{keys[name]}' {why}" for name, (_, why) in unusable.items()]
