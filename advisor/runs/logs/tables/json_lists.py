"""Lists inside a JSON document: which are the rows of a run, its rewards, its evaluations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard

from advisor.runs.logfiles.columns import Columns
from advisor.runs.trainers import plain
from advisor.runs.trainers.generic import keys as own_loop
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key

STEPS = (
    "step",
    "steps",
    "global_step",
    "global_steps",
    "checkpoint",
    "checkpoints",
    "eval_step",
    "eval_steps",
)
"""Names of a list of steps, best first."""

OWN_STEPS = frozenset({"checkpoint", "checkpoints", "eval_step", "eval_steps"})
"""Those that no train reward goes with."""

AS_EVALUATION = {
    "accuracy": "eval_accuracy",
    "acc": "eval_accuracy",
    "pass@1": "eval_accuracy",
    "score": "eval_score",
    "reward": "eval_reward",
    "mean_reward": "eval_reward",
}
"""Held-out measures by the name that says so, best first."""

HELD_OUT = re.compile(r"(?:.*_)?(?:evals?|evaluations?|val|validation|test|held_?out)(?:_.*)?")
"""Key of a list whose rows are held-out evaluations."""

OF_A_SAMPLE = frozenset(
    {"prompt", "question", "completion", "completions", "response", "responses", "messages"}
)
"""Keys of one prompt and its completions: a list of rewards beside them is no course of a run."""

OF_AN_EVALUATION = frozenset(
    {
        *("std_error", "stderr", "standard_error", "n_samples", "num_samples"),
        *("n_examples", "num_examples", "eval_dataset", "n_eval"),
    }
)
"""Keys of one evaluation: a bare list of rewards beside them has an entry for each sample."""

LARGEST_BITS = 1024
"""Of an integer that a float can still hold."""

NAMES = ("tag", "run_name", "experiment", "exp_name", "name", "label", "id", "run_id")
"""Keys under which an object names its run, best first."""

Cells = dict[str, Any]


class Course(NamedTuple):
    """Rows of one run, and which keys of its object they were taken from."""

    rows: list[Cells]
    taken: frozenset[str]
    assumptions: tuple[str, ...] = ()


class Finder:
    """Finds the rows of a run in a JSON object."""

    def __init__(self, columns: Columns) -> None:
        self._mapped = columns.keys.get("reward")

    def courses(self, node: Mapping[str, Any]) -> dict[str | None, Course]:
        """Runs whose rows stand in this object, by the key of their list."""
        lists = {key: v for key, v in node.items() if isinstance(v, list) and self.are_rows(v)}
        apart = {key: rows for key, rows in lists.items() if not HELD_OUT.fullmatch(key.lower())}
        if len(apart) > 1:
            return {
                key: Course([_flat(row) for row in rows if isinstance(row, dict)], frozenset({key}))
                for key, rows in apart.items()
            }
        series = {key: s for key, v in node.items() if (s := as_series(v)) is not None}
        for key, rows in apart.items():
            cells = [_flat(row) for row in rows if isinstance(row, dict)]
            return {None: self._with_evaluations(node, series, cells, {key})}
        trace = self._trace(node, series)
        if trace is not None:
            joined = _beside(trace, series)
            rows = [
                dict(zip(joined, cells, strict=True))
                for cells in zip(*joined.values(), strict=True)
            ]
            return {None: self._with_evaluations(node, series, rows, set(joined))}
        alone = _evaluations(node, series, ())
        if alone is not None:
            keys, rows = alone
            said = f"{keys[0]} is read as held out (no train reward stands beside it)"
            return {None: Course(rows, frozenset(keys), (said,))}
        return {}

    def are_rows(self, entries: list[Any]) -> bool:
        """Whether a list holds logged rows with a train reward, rather than runs or samples."""
        rows = [_flat(entry) for entry in entries[:50] if isinstance(entry, dict)]
        if not rows or not isinstance(entries[0], dict):
            return False
        keys = {key: None for row in rows for key, cell in row.items() if _is_number(cell)}
        if not any(self._is_reward(key) for key in keys):
            return False
        if OF_A_SAMPLE & {key.lower() for key in rows[0]}:
            return False
        if any(plain(key) in (*own_loop.KEY_TABLE.optimizer_steps, *STEPS) for key in keys):
            return True
        named = [str(row[key]) for row in rows for key in NAMES if key in row]
        return len(rows) == 1 or len(set(named)) < len(rows)

    def _trace(self, node: Mapping[str, Any], series: Mapping[str, list[Any]]) -> str | None:
        if OF_A_SAMPLE & {key.lower() for key in node}:
            return None
        found = [key for key in series if self._is_reward(key)]
        trace = min(found, key=lambda key: _rank(plain(key)), default=None)
        if trace is not None and len(_beside(trace, series)) == 1 and _is_evaluation(node):
            return None
        return trace

    def _is_reward(self, key: str) -> bool:
        return key == self._mapped or has_reward_key([key]) or plain(key) in own_loop.TRACES

    def _with_evaluations(
        self,
        node: Mapping[str, Any],
        series: Mapping[str, list[Any]],
        rows: list[Cells],
        taken: set[str],
    ) -> Course:
        """Add evaluations that stand beside the rows in lists of their own."""
        key = _step_key(rows[0])
        added: list[Cells] = []
        for name, entries in node.items():
            if isinstance(entries, list) and HELD_OUT.fullmatch(name.lower()):
                found = [row for entry in entries if (row := _evaluation_row(entry)) is not None]
                added += found
                taken |= {name} if found else set()
        beside = _evaluations(node, series, taken)
        if beside is not None:
            taken |= set(beside[0])
            added += beside[1]
        if added and key is None:
            key = "step"
            rows = [{**row, key: place} for place, row in enumerate(rows, start=1)]
        for row in added:
            row[str(key)] = row.pop("step")
        return Course([*rows, *added], frozenset(taken))


def as_series(value: Any) -> list[Any] | None:
    """Numbers of a list, or of an object that pandas wrote (``{"0": 0.1, "1": 0.2}``)."""
    if isinstance(value, dict):
        if not value or not all(key.isdecimal() and len(key) < 10 for key in value):
            return None
        value = [value[key] for key in sorted(value, key=int)]
    if not isinstance(value, list) or not value:
        return None
    if not all(cell is None or _is_number(cell) for cell in value):
        return None
    return value if any(cell is not None for cell in value) else None


def _is_evaluation(node: Mapping[str, Any]) -> bool:
    """Whether an object tells of one evaluation, itself or in an object right inside of it."""
    inside = [value for value in node.values() if isinstance(value, dict)]
    return any(OF_AN_EVALUATION & {key.lower() for key in each} for each in (node, *inside))


def _beside(trace: str, series: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Lists of one length with the rewards, without evaluations that have steps of their own."""
    same = {key: v for key, v in series.items() if len(v) == len(series[trace])}
    if not any(plain(key) in OWN_STEPS for key in same):
        return same
    return {
        key: values
        for key, values in same.items()
        if key == trace or not (plain(key) in OWN_STEPS or has_evaluation_key([key]))
    }


def _evaluations(
    node: Mapping[str, Any], series: Mapping[str, list[Any]], taken: Iterable[str]
) -> tuple[list[str], list[Cells]] | None:
    """Parallel lists of steps and held-out measures, with the base model's as step 0."""
    used = set(taken)
    by_name = {plain(key): key for key in node if key not in used}
    for name in STEPS:
        steps = _steps(node.get(by_name.get(name, "")))
        if not steps:
            continue
        lists = {k: v for k, v in series.items() if len(v) == len(steps) and k not in used}
        renamed = _rename(lists)
        if not renamed:
            continue
        measures = {renamed.get(key, key): v for key, v in lists.items() if key != by_name[name]}
        rows: list[Cells] = [
            {"step": step, **{key: values[i] for key, values in measures.items()}}
            for i, step in enumerate(steps)
        ]
        base = {renamed.get(key, key): at for key in lists if (at := _base(node, key)) is not None}
        return [*renamed, by_name[name]], [{"step": 0, **base}, *rows] if base else rows
    return None


def _rename(keys: Iterable[str]) -> dict[str, str]:
    """Keys of held-out measures -> their names as such; empty where there is none."""
    listed = list(keys)
    names: dict[str, str] = {key: key for key in listed if has_evaluation_key([key])}
    for name, ours in AS_EVALUATION.items():
        match = next((key for key in listed if plain(key) == name), None)
        if match is not None and ours not in names.values():
            names[match] = ours
    return names


def _evaluation_row(entry: Any) -> Cells | None:
    if not isinstance(entry, dict):
        return None
    row = _flat(entry)
    key = _step_key(row)
    renamed = _rename(key for key, cell in row.items() if _is_number(cell))
    if key is None or not renamed:
        return None
    return {"step": row[key], **{ours: row[name] for name, ours in renamed.items()}}


def _base(node: Mapping[str, Any], key: str) -> float | None:
    for start in ("base ", "base_", "base/", "baseline ", "baseline_"):
        value = node.get(start + key)
        if _is_number(value):
            return float(value)
    return None


def _steps(value: Any) -> list[int]:
    """Steps of a list of numbers or of names such as ``checkpoint-100``."""
    found = []
    for entry in value if isinstance(value, list) else ():
        number = re.search(r"(\d{1,9})$", entry) if isinstance(entry, str) else None
        step = int(number.group(1)) if number else entry
        if not _is_number(step) or step != step or not 0 <= step < 1e9 or step != int(step):
            return []
        found.append(int(step))
    return found


def _step_key(row: Mapping[str, Any]) -> str | None:
    names = (*own_loop.KEY_TABLE.optimizer_steps, *STEPS)
    return next((key for name in names for key in row if plain(key) == name), None)


def _rank(name: str) -> int:
    levels = [name for level in own_loop.KEY_TABLE.reward for name in level]
    return levels.index(name) if name in levels else len(levels)


def _flat(row: Mapping[str, Any]) -> Cells:
    """Cells of a row, also those that stand in an object ``metrics`` inside."""
    inner = row.get("metrics")
    return {**inner, **row} if isinstance(inner, dict) else dict(row)


def _is_number(cell: Any) -> TypeGuard[float]:
    if isinstance(cell, int) and not isinstance(cell, bool):
        return cell.bit_length() < LARGEST_BITS
    return isinstance(cell, float)
