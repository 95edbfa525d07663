"""Kinds of rows in one log, and runs in one table: what to read, and as which run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError
from advisor.runs.arrays import BoolArray, FloatArray, IntArray
from advisor.runs.logfiles.logged import Columns, Logged, Table
from advisor.runs.pilot_run import IN_NO_RUN, NOT_GRPO, PilotRun
from advisor.runs.trainers import KeyTable, plain, spellings
from advisor.runs.trainers.key_table import DATA, KIND_KEYS, RUN_KEYS
from advisor.runs.trainers.keys import counts_evaluations, mapped_key, rewards_of_runs, words
from advisor.text import counted

ROWS = {name: tuple(listed) for name, listed in DATA["rows"].items()}
NAME_IT = "Give the log of the training, or name its reward in a column map"


def least_rows(longest: int) -> float:
    """Rows below which an attempt next to a longer one is an aborted one, not a run."""
    return max(PilotRun.LEAST_REWARDS, 0.1 * longest)


class RowKinds(NamedTuple):
    """Rows that may hold the train reward, rows that evaluate, and what was assumed."""

    train: BoolArray
    evaluate: BoolArray
    assumptions: tuple[str, ...] = ()


def passes(table: Table, conditions: Mapping[str, str]) -> BoolArray:
    """Rows whose cells equal what the conditions ask, as text or as numbers."""
    mask = np.ones(len(table), dtype=bool)
    for key, expected in conditions.items():
        hits = np.zeros(len(table), dtype=bool)
        for row, text in table.text(key).items():
            hits[row] = text == expected or text == expected.lower()
        with contextlib.suppress(ValueError):
            hits |= table.column(key) == float(expected)
        mask &= hits
    return mask


def row_kinds(table: Table, framework: KeyTable, columns: Columns, path: Path) -> RowKinds:
    """Tell rows with the train reward from others."""
    everything = np.ones(len(table), dtype=bool)
    evaluations = RowKinds(~everything, everything)
    asked = passes(table, columns.eval_filter) if columns.eval_filter else None
    if columns.filter:
        train = passes(table, columns.filter)
        if not train.any():
            raise _nothing_passes(table, columns.filter, path)
        return RowKinds(train, everything if asked is None else asked)
    declared = (framework.kind_key,) if framework.kind_key else ()
    for key in (*declared, *KIND_KEYS):
        texts = table.text(key)
        values = list(dict.fromkeys(texts.values()))
        # As many kinds as rows is a text per row, not a kind.
        if not values or (len(values) > 1 and len(values) == len(texts)):
            continue
        is_one = len(values) == 1 and len(texts) == len(table)
        if is_one and values[0].lower() in ROWS["eval_kinds"]:
            return evaluations
        trains = [v for v in (*framework.train_kinds, *ROWS["train_kinds"]) if v in values]
        tests = {v for v in (*framework.eval_kinds, *ROWS["eval_kinds"]) if v in values}
        if len(values) < 2 or not (trains or tests):
            continue
        kind = np.array([texts.get(row, "") for row in range(len(table))])
        train = kind == trains[0] if trains else ~np.isin(kind, list(tests))
        remark = f"rows with {key}={trains[0]} read as train rows" if trains else ""
        others = [v for v in values if v not in tests and v not in trains[:1]]
        if remark and others:
            remark += f" (of {', '.join(values[:6])})"
        evaluate = np.isin(kind, list(tests)) if tests else ~train
        remarks = (remark,) if remark and others else ()
        return RowKinds(train, evaluate if asked is None else asked, remarks)
    # A trainer of its own writes no tables of evaluations under the names of training.
    if not framework.marks and not columns:
        filled = table.filled_keys
        held_out = any(counts_evaluations(k) and table.has(k).all() for k in filled)
        if held_out and not _is_updated(filled):
            return evaluations
    return RowKinds(everything, everything if asked is None else asked)


def value_model(table: Table) -> tuple[str, ...]:
    """Warning of a run whose rows show a model of values, which GRPO has not."""
    for key in table.filled_keys:
        if re.fullmatch(DATA["value_model"], plain(key)):
            # GRPO in a trainer of both may write zeros.
            values = table.column(key)
            if np.any(np.isfinite(values) & (values != 0)):
                return (f"'{key}' is logged: {NOT_GRPO}",)
    return ()


def refuse_rows(table: Table, kinds: RowKinds, columns: Columns, path: Path) -> None:
    """Raise where rows are of several kinds and nothing tells which to read, or of no training."""
    refuse_agents(table, columns, path)
    for key in ROWS["of_prompts"] if "reward" not in columns.keys else ():
        blocks = 1 + np.count_nonzero(np.diff(table.column(key)[table.has(key)]))
        if 1 < blocks <= len(table) / 2:
            problem = "each row is a completion, not a step of a run"
            raise InputError(problem, path=path, key=key, advice=NAME_IT)
    for key in KIND_KEYS if kinds.train.all() else ():
        texts = table.text(key)
        names = list(dict.fromkeys(texts.values()))
        if 1 < len(names) < len(texts):
            problem = f"rows of {len(names)} kinds hold a reward ({', '.join(names[:8])})"
            advice = f'Choose one in a column map: filter = "{key}=..."'
            raise InputError(problem, path=path, key=key, advice=advice)


def refuse_agents(table: Table, columns: Columns, path: Path) -> None:
    """Raise where rows are steps of an agent at play, or of the training of one without words."""
    for key in () if "reward" in columns.keys else table.keys:
        name = key.lower()
        is_alone = name in ROWS["of_an_episode_alone"] and not _is_updated(table.keys)
        if is_alone or not {name, name.partition("/")[0]}.isdisjoint(ROWS["of_an_episode"]):
            problem = "the rows are steps of an agent in its environment, not of its training"
            raise InputError(problem, path=path, key=key, advice=NAME_IT)


def _is_updated(keys: Iterable[str]) -> bool:
    """Whether a key holds a word of what only training measures."""
    return any(set(ROWS["of_updates"]).intersection(words(key)) for key in keys)


def _nothing_passes(table: Table, conditions: Mapping[str, str], path: Path) -> InputError:
    key = next(iter(conditions))
    seen = [str(v) for v in dict.fromkeys(table.text(key).values())]
    seen += [f"{v:g}" for v in dict.fromkeys(table.column(key)[table.has(key)][:8].tolist())]
    shown = ", ".join(f"{key}={value}" for value in seen[:8]) or f"none, no row has the key {key}"
    asked = ", ".join(f"{name}={value}" for name, value in conditions.items())
    problem, advice = f"no row passes the filter {asked}", f"Values seen: {shown}"
    return InputError(problem, path=path, key="columns.filter", advice=advice)


def split_by_column(
    logged: Logged, columns: Columns, path: Path
) -> Iterator[tuple[Logged, Columns]]:
    """Runs of a table with a reward for each: in columns mapped, or named after their runs."""
    keys, mapped = logged.table.keys, columns.keys.get("reward", "")
    asked = [] if mapped in keys else [key.strip() for key in mapped.split(",")]
    runs = {} if mapped else rewards_of_runs(keys)
    if len(asked) > 1:
        runs = {mapped_key(key, keys, path): rewards_of_runs([key]).get(key, "") for key in asked}
    if not runs:
        yield logged, columns
    begins = tuple(filter(None, runs.values()))
    shared = {key: key for key in keys if key not in runs and not key.startswith(begins)}
    others = {name: key for name, key in columns.keys.items() if name != "reward"}
    remark = "each reward was read as that of a run, by the name of its column"
    for reward, begin in runs.items():
        own = {key: key.removeprefix(begin) for key in keys if begin and key.startswith(begin)}
        table = logged.table.only({**shared, **own, reward: "reward"})
        notes = (*logged.assumptions, *([] if mapped else [remark]))
        part, rows = replace(logged, table=table, assumptions=notes), np.arange(len(table))
        name = begin.rstrip("/ -") or reward
        yield _part(part, rows, name, logged.label is None), replace(columns, keys=others)


def split_by_name(logged: Logged) -> list[Logged]:
    """Split a table in which a column names the run of each row."""
    names: list[str] | None = None
    table = logged.table
    for key in _run_keys(table):
        these = _names_in(table, key)
        if _are_runs(these):
            # Of a grid of methods and seeds neither column names a run alone.
            both = these if names is None else _joined(names, these)
            names = both if _are_runs(both) else names
    if names is None:
        return [logged]
    places = np.array(names)
    distinct = [name for name in dict.fromkeys(names) if name]
    return [_part(logged, places == name, name, logged.label is None) for name in distinct]


def _part(logged: Logged, rows: npt.ArrayLike, name: str, has_own_id: bool) -> Logged:
    """Some rows of a run, as a run of their own."""
    label = name if logged.label is None else f"{logged.label}:{name}"
    table = logged.table.take(rows)
    return replace(logged, table=table, label=label, has_own_id=has_own_id)


def are_results(table: Table) -> bool:
    """Whether most rows name a run of their own, as a table of results does."""
    for key in _run_keys(table):
        distinct = len(set(_names_in(table, key)) - {""})
        if distinct >= 2 and PilotRun.LEAST_REWARDS * distinct > len(table):
            return True
    return False


def not_steps(table: Table, path: Path) -> str:
    """What rows without a step are that are no steps of a training; empty where they may be."""
    if are_results(table):
        return "the result of a run"
    keys = table.filled_keys
    if _is_updated(keys):
        return ""
    texts = (table.text(key) for key in keys if plain(key) in ROWS["of_a_sample"])
    if any(2 * len(own) > len(table) for own in texts):
        return "a completion"
    named = set(words("/".join(path.parts[-2:])))
    is_log = not named.isdisjoint(ROWS["of_logs"])
    return "" if is_log or named.isdisjoint(ROWS["of_evaluations"]) else "an evaluation"


def _names_in(table: Table, key: str) -> list[str]:
    """What a column holds in each row, as text; empty where it holds nothing."""
    numbers, texts = table.column(key), table.text(key)
    shown = ("" if np.isnan(number) else f"{number:g}" for number in numbers)
    return [texts.get(row, text) for row, text in enumerate(shown)]


def _run_keys(table: Table) -> list[str]:
    """Columns that may name runs, the likeliest first."""
    by_name = {name: key for key in table.keys for name in spellings(plain(key))}
    return [by_name[name] for name in RUN_KEYS if name in by_name]


def _are_runs(names: list[str]) -> bool:
    """Whether there are several names; a name per row is no name of a run."""
    distinct = {name for name in names if name}
    return len(distinct) >= 2 and PilotRun.LEAST_REWARDS * len(distinct) <= len(names)


def _joined(names: list[str], others: list[str]) -> list[str]:
    """Names of both columns, unless the first tells all apart that the second does."""
    pairs = dict.fromkeys(zip(names, others, strict=True))
    if len(pairs) == len(set(names)):
        return names
    return [f"{name}/{other}" if other else name for name, other in zip(names, others, strict=True)]


def split_restarts(logged: Logged, train: IntArray, count: FloatArray, window: int) -> list[Logged]:
    """Split rows where their counter starts again."""
    if np.all(np.diff(count) < 0):
        return [logged]  # newest first, which is settled later
    starts = [0]
    reached = -np.inf
    for index, value in enumerate(count):
        if value < reached / 2 and value <= max(window, count[starts[-1]]):
            starts.append(index)
            reached = -np.inf
        reached = max(reached, value)
    if len(starts) == 1:
        return [logged]
    ends = [*starts[1:], train.size]
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    least = least_rows(longest)
    kept, notes = [], []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        if end - start >= least:
            # Rows without reward in between go with the attempt that they follow.
            first = 0 if start == 0 else int(train[start])
            last = len(logged.table) if end == train.size else int(train[end])
            kept.append((number, np.arange(first, last)))
        else:
            line = int(logged.table.numbers[train[start]])
            rows = counted(end - start, "row")
            notes.append(f"{rows} from row {line} on: an aborted attempt, {IN_NO_RUN}")
    if len(kept) > 1:
        notes.insert(0, f"the step starts anew: the file was read as {len(kept)} runs")
    noted = replace(logged, warnings=(*logged.warnings, *notes))
    if len(kept) == 1:
        return [replace(noted, table=noted.table.take(kept[0][1]))]
    return [_part(noted, rows, str(number), False) for number, rows in kept]
