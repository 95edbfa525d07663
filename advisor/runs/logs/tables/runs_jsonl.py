"""Tables of runs: JSONL with one run per line, its settings beside lists of per-step values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.parsing import Row, cell_number, json_rows, to_number
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.settings import PartialSettings
from advisor.runs.trainers.key_table import COMMON_KEYS
from advisor.runs.trainers.keys import kept_keys, no_reward, reward_key

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
"""What holds for runs of such tables unless a row says otherwise."""

OWN_NAMES = (*PartialSettings.model_fields, "model", "task", "parameters")

TESTS = ("base_acc", "final_eval")
"""Held-out reward before the first and after the last step."""


def claims(log: LogFile) -> bool:
    """Whether the first line is an object with a list of rewards."""
    if log.suffix not in (".jsonl", ".ndjson"):
        return False
    return LINE.match(log.head_text().lstrip(b"\xef\xbb\xbf \t\r\n")) is not None


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a table."""
    (log,) = logs
    if columns.filter or columns.step_unit == "refresh":
        raise InputError(
            "filter and step_unit do not apply to a table with one run per line",
            path=log.path,
            key="columns",
            advice="Remove them; give the steps of a run as a list 'step'",
        )
    for row in json_rows(log):
        yield _run(row, log.path, columns)


def _run(row: Row, path: Path, columns: Columns) -> Logged:
    lists = {key: value for key, value in row.cells.items() if isinstance(value, list)}
    try:
        key = reward_key(list(lists), list(lists), COMMON_KEYS, columns, path)
        if key is None:
            raise no_reward(list(lists), COMMON_KEYS, path)
    except InputError as error:
        # The search for keys does not know lines; here the line is what to mend.
        raise InputError(
            error.problem, path=path, row=row.number, key=error.key, advice=error.advice
        ) from None
    size = len(lists[key])
    _check_rewards(lists[key], row.number, path, key)
    builder = TableBuilder(path, kept_keys(columns))
    steps = _steps(lists.get("step"), row.number, size, path)
    known = {name: cells for name, cells in lists.items() if builder.wants(name)}
    for name, values in known.items():
        if len(values) != size:
            raise InputError(
                f"the list has {len(values)} values and the reward {size}",
                path=path,
                row=row.number,
                key=name,
                advice="Give one value per step, null where there is none",
            )
    builder.seen(name for name in lists if name not in known)
    short = row.cells.keys() >= SHORT_MARKS
    tests = [cell_number(row.cells.get(name)) for name in TESTS] if short else [None, None]
    if tests[0] is not None:
        builder.add(row.number, {"step": 0, "eval_reward": tests[0]})
    for index in range(size):
        cells = {name: values[index] for name, values in known.items()}
        builder.add(row.number, {**cells, "step": steps[index]})
    if tests[1] is not None:
        builder.add(row.number, {"step": steps[-1], "eval_reward": tests[1]})
    label = row.cells.get("id")
    understood = {*OWN_NAMES, "id", *((*SHORT_NAMES, "size", *TESTS) if short else ())}
    builder.seen(
        name for name, cell in row.cells.items() if name not in understood and name not in lists
    )
    return Logged(
        builder.build(),
        label=str(row.number if label is None else label),
        has_own_id=label is not None,
        facts=_facts(row.cells, short),
    )


def _facts(cells: Mapping[str, Any], short: bool) -> dict[str, Any]:
    told = {name: cells.get(name) for name in OWN_NAMES}
    if short:
        told |= {ours: cells.get(name) for name, ours in SHORT_NAMES.items()}
        if told["model"] is None and cells.get("size") is not None:
            told["model"] = f"tiny-{cells['size']}"
    # A list is a series logged under the name of a setting (learning_rate).
    facts = {n: v for n, v in told.items() if v is not None and not isinstance(v, list)}
    return SHORT_FACTS | facts if short else facts


def _steps(cells: list[Any] | None, row: int, size: int, path: Path) -> list[float]:
    if cells is None:
        return [float(place) for place in range(1, size + 1)]
    steps = [cell_number(cell) for cell in cells]
    whole = [
        step
        for step in steps
        if step is not None and 0 <= step <= limits.MOST_STEPS and step == int(step)
    ]
    rising = all(after > before for before, after in itertools.pairwise(whole))
    if len(whole) != size or not rising:
        raise InputError(
            "the steps must be whole numbers that increase, one for each reward",
            path=path,
            row=row,
            key="step",
            advice="Correct the list, or leave it out to count from 1",
        )
    return whole


def _check_rewards(cells: list[Any], row: int, path: Path, key: str) -> None:
    for place, cell in enumerate(cells, start=1):
        try:
            to_number(cell)
        except ValueError:
            raise InputError(
                f"reward {place} of the list is {repr(cell)[:40]}, not a number",
                path=path,
                row=row,
                key=key,
                advice="Write numbers, or null where there is none",
            ) from None
    if all(to_number(cell) is None for cell in cells):
        raise InputError(
            "the list of rewards is empty",
            path=path,
            row=row,
            key=key,
            advice="Log the mean reward of each step",
        )


READER = Reader("JSONL with one run per line", claims, read, claim=Claim.ROW)
