"""Tables of runs: JSONL with one run per line, its settings beside lists of per-step values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.columns import Columns, find_keys
from advisor.runs.files import Row, json_lines, read_text
from advisor.runs.pilot_run import SERIES, FloatArray, Hyperparameters, Missing
from advisor.runs.raw_run import RawRun
from advisor.runs.rows import add_series, cell_number, refuse_not_finite
from advisor.runs.steps import read_steps

LINE = re.compile(rb'\{[^\n]*"(?:mean_)?reward"\s*:\s*\[')

SHORT_NAMES = {
    "lr": "learning_rate",
    "G": "group_size",
    "K": "minibatches_per_refresh",
    "prompts": "prompts_per_step",
    "beta1": "momentum",
    "use_is": "importance_ratio",
    "params": "parameters",
    "task": "task",
}
"""Names in the tables of tiny transformers -> ours."""

SHORT_MARKS = {"lr", "G", "K"}
"""Keys by which such a table is known; its runs use AdamW at a constant rate, one epoch each."""

OWN_NAMES = (*Hyperparameters.model_fields, "model", "task", "parameters")


def claims(path: Path, head: bytes) -> bool:
    """Whether the first line is an object with a list of rewards."""
    if path.suffix not in (".jsonl", ".ndjson"):
        return False
    return LINE.match(head.lstrip(b"\xef\xbb\xbf \t\r\n")) is not None


def read(path: Path, columns: Columns, known: Mapping[str, Any]) -> list[RawRun]:
    """Read the runs of a table.

    Parameters
    ----------
    path : Path
        JSONL, one run per line.
    columns : Columns
        Column map: series -> key of its list.
    known : mapping
        Unused: every line states its own settings.

    Returns
    -------
    runs : list of RawRun
        In the order of the file.

    Raises
    ------
    InputError
        A line without a list of rewards, or with lists of several lengths.
    """
    return [_run(row, path, columns) for row in json_lines(read_text(path), path)]


def _run(row: Row, path: Path, columns: Columns) -> RawRun:
    lists = {key: value for key, value in row.cells.items() if isinstance(value, list)}
    try:
        keys = find_keys(lists, columns, path)
    except InputError as error:
        raise InputError(
            error.problem, path=path, row=row.number, key=error.key, advice=error.advice
        ) from None
    size = len(lists[keys["reward"]])
    series: dict[str, FloatArray] = {}
    missing: dict[str, Missing] = {}
    for name in SERIES:
        cells = [cell_number(cell) for cell in lists.get(keys.get(name, ""), [None] * size)]
        if len(cells) != size or size == 0:
            raise InputError(
                f"the list has {len(cells)} values and the reward {size}",
                path=path,
                row=row.number,
                key=keys.get(name),
                advice="Give one value per step, null where there is none",
            )
        values = np.array(cells, dtype=float)
        if name == "reward":
            _refuse_no_number(lists[keys[name]], cells, row.number, path, keys[name])
        add_series(series, missing, name, values, any(cell is None for cell in cells))
    label = row.cells.get("id")
    return RawRun(
        path=path,
        step=_steps(lists, keys, row.number, size, path),
        series=series,
        missing=missing,
        label=str(row.number if label is None else label),
        has_own_id=label is not None,
        facts=_facts(row.cells),
        keys_read={name: key for name, key in keys.items() if name in series or name == "step"},
        keys_ignored=tuple(sorted(set(row.cells) - set(keys.values()) - _understood(row.cells))),
        **_evaluations(row.cells, size),
    )


def _facts(cells: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: cells[name] for name in OWN_NAMES if cells.get(name) is not None}
    if cells.keys() >= SHORT_MARKS:
        facts |= {
            ours: cells[short] for short, ours in SHORT_NAMES.items() if cells.get(short) is not None
        }
        facts |= {
            "epochs_per_refresh": 1, "optimizer": "adamw", "schedule": "constant", "warmup_steps": 0,
        }  # fmt: skip
        if "model" not in facts and cells.get("size") is not None:
            facts["model"] = f"tiny-{cells['size']}"
    # Logged per step, not a setting: the series is read as such.
    return {name: value for name, value in facts.items() if not isinstance(value, list)}


def _understood(cells: Mapping[str, Any]) -> set[str]:
    short = {*SHORT_NAMES, "size", "base_acc", "final_eval"} if cells.keys() >= SHORT_MARKS else set()
    return short | set(OWN_NAMES) | {"id"}


def _evaluations(cells: Mapping[str, Any], size: int) -> dict[str, FloatArray]:
    pairs = [(0.0, cell_number(cells.get("base_acc"))), (size, cell_number(cells.get("final_eval")))]
    known = [(step, value) for step, value in pairs if value is not None and np.isfinite(value)]
    return {
        "eval_step": np.array([step for step, _ in known], dtype=float),
        "eval_reward": np.array([value for _, value in known], dtype=float),
    }


def _steps(
    lists: Mapping[str, list[Any]], keys: Mapping[str, str], number: int, size: int, path: Path
) -> FloatArray:
    if "step" not in keys:
        return np.arange(1.0, size + 1)
    values = lists[keys["step"]]
    step = read_steps([Row(number, {"step": value}) for value in values], "step", path)
    if step.size != size or np.any(np.diff(step) <= 0):
        raise InputError(
            "the steps must increase, one for each reward",
            path=path,
            row=number,
            key=keys["step"],
            advice="Correct the list, or leave it out to count from 1",
        )
    return step + 1 if step[0] == 0 else step


def _refuse_no_number(
    cells: list[Any], numbers: list[float | None], row: int, path: Path, key: str
) -> None:
    for place, (cell, number) in enumerate(zip(cells, numbers, strict=True), start=1):
        if number is None and cell is not None:
            raise InputError(
                f"reward {place} of the list is {cell!r}, not a number",
                path=path,
                row=row,
                key=key,
                advice="Write numbers, or null where there is none",
            )
    logged = np.array([n for n in numbers if n is not None], dtype=float)
    if not logged.size:
        raise InputError(
            "the list of rewards holds nothing",
            path=path,
            row=row,
            key=key,
            advice="Log the mean reward of each step",
        )
    refuse_not_finite(logged, [row] * logged.size, path, key)
