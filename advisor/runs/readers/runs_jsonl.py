"""Tables of runs: JSONL with one run per line, its settings beside lists of per-step values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.runs.columns import Columns
from advisor.runs.files import Row, json_lines, read_text, to_number
from advisor.runs.keys import find_keys, find_reward_key
from advisor.runs.pilot_run import SERIES, FloatArray, Hyperparameters, Missing
from advisor.runs.raw_run import RawRun
from advisor.runs.series import add_series, cell_number, refuse_not_finite
from advisor.runs.steps import MOST_STEPS

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
"""Keys by which such a table is known."""

SHORT_FACTS = {
    "epochs_per_refresh": 1,
    "optimizer": "adamw",
    "schedule": "constant",
    "warmup_steps": 0,
}
"""What holds for all runs of such tables and is not written in them."""

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
        Only ``logging_steps`` is looked at: every line states its own settings.

    Returns
    -------
    runs : list of RawRun
        In the order of the file.

    Raises
    ------
    InputError
        A line without a list of rewards, or with lists of several lengths.
    """
    if columns.filter or columns.step_unit == "refresh":
        raise InputError(
            "filter and step_unit do not apply to a table with one run per line",
            path=path,
            key="columns",
            advice="Remove them; give the steps of a run as a list 'step'",
        )
    window = int(known.get("logging_steps") or 1)
    return [_run(row, path, columns, window) for row in json_lines(read_text(path), path)]


def _run(row: Row, path: Path, columns: Columns, window: int) -> RawRun:
    lists = {key: value for key, value in row.cells.items() if isinstance(value, list)}
    try:
        keys = find_keys(lists, find_reward_key(lists, columns, path), columns, path)
    except InputError as error:
        # The search for keys does not know lines; here the line is what to mend.
        raise InputError(
            error.problem, path=path, row=row.number, key=error.key, advice=error.advice
        ) from None
    size = len(lists[keys["reward"]])
    _check_rewards(lists[keys["reward"]], row.number, path, keys["reward"])
    series: dict[str, FloatArray] = {}
    missing: dict[str, Missing] = {}
    for name in SERIES:
        cells = [cell_number(cell) for cell in lists.get(keys.get(name, ""), [None] * size)]
        if len(cells) != size:
            raise InputError(
                f"the list has {len(cells)} values and the reward {size}",
                path=path,
                row=row.number,
                key=keys.get(name),
                advice="Give one value per step, null where there is none",
            )
        add_series(series, missing, name, np.array(cells, dtype=float), None in cells)
    label = row.cells.get("id")
    short = row.cells.keys() >= SHORT_MARKS
    understood = {*OWN_NAMES, *keys.values(), "id"}
    if short:
        understood |= {*SHORT_NAMES, "size", *TESTS}
    eval_step, eval_reward = _evaluations(row.cells, size)
    return RawRun(
        path=path,
        step=_steps(lists.get(keys.get("step", "")), row.number, size, window, path),
        series=series,
        missing=missing,
        label=str(row.number if label is None else label),
        has_own_id=label is not None,
        eval_step=eval_step,
        eval_reward=eval_reward,
        facts=_facts(row.cells, short),
        keys_read={name: key for name, key in keys.items() if name in (*series, "step")},
        keys_ignored=tuple(sorted(set(row.cells) - understood)),
    )


def _facts(cells: Mapping[str, Any], short: bool) -> dict[str, Any]:
    facts = {name: cells.get(name) for name in OWN_NAMES}
    if short:
        facts |= SHORT_FACTS | {ours: cells.get(name) for name, ours in SHORT_NAMES.items()}
        if facts["model"] is None and cells.get("size") is not None:
            facts["model"] = f"tiny-{cells['size']}"
    # A list is a series logged under the name of a setting (learning_rate).
    return {n: v for n, v in facts.items() if v is not None and not isinstance(v, list)}


TESTS = ("base_acc", "final_eval")
"""Held-out reward before the first and after the last step."""


def _evaluations(cells: Mapping[str, Any], size: int) -> tuple[FloatArray, FloatArray]:
    values = np.array([cell_number(cells.get(name)) for name in TESTS], dtype=float)
    known = np.isfinite(values)
    return np.array([0.0, size])[known], values[known]


def _steps(cells: list[Any] | None, row: int, size: int, window: int, path: Path) -> FloatArray:
    if cells is None:
        return np.arange(1.0, size + 1) * window
    step = np.array([cell_number(cell) for cell in cells], dtype=float)
    whole = np.all((step >= 0) & (step <= MOST_STEPS) & (step == np.round(step)))
    if step.size != size or not whole or np.any(np.diff(step) <= 0):
        raise InputError(
            "the steps must be whole numbers that increase, one for each reward",
            path=path,
            row=row,
            key="step",
            advice="Correct the list, or leave it out to count from 1",
        )
    return step + 1 if step[0] == 0 else step


def _check_rewards(cells: list[Any], row: int, path: Path, key: str) -> None:
    numbers = []
    for place, cell in enumerate(cells, start=1):
        try:
            numbers.append(to_number(cell))
        except ValueError:
            raise InputError(
                f"reward {place} of the list is {repr(cell)[:40]}, not a number",
                path=path,
                row=row,
                key=key,
                advice="Write numbers, or null where there is none",
            ) from None
    logged = np.array([number for number in numbers if number is not None], dtype=float)
    if not logged.size:
        raise InputError(
            "the list of rewards is empty",
            path=path,
            row=row,
            key=key,
            advice="Log the mean reward of each step",
        )
    refuse_not_finite(logged, [row] * logged.size, path, key)
