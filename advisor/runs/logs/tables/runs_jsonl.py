"""Tables of runs: JSONL with one run per line, its settings next to lists of per-step values."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.parsing import JSON_LINES, Row, cell_number, json_rows
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.settings import PartialSettings
from advisor.runs.trainers.key_table import COMMON_KEYS
from advisor.runs.trainers.keys import kept_keys, no_reward, reward_key

LINE = re.compile(rb'\{[^\n]*"(?:mean_)?reward"\s*:\s*\[')

SHORT: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("short_names.toml").read_text(encoding="utf-8")
)
OWN_NAMES = (*PartialSettings.model_fields, "model", "task", "parameters")


def claims(log: LogFile) -> bool:
    """Whether the first line is an object with a list of rewards."""
    return log.suffix in JSON_LINES and LINE.match(log.start()) is not None


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
        try:
            yield _run(row, log.path, columns)
        except InputError as error:
            # The search for keys knows no lines; here the line is what to mend.
            key, advice = error.key, error.advice
            raise InputError(
                error.problem, path=log.path, row=row.number, key=key, advice=advice
            ) from None


def _run(row: Row, path: Path, columns: Columns) -> Logged:
    lists = {key: value for key, value in row.cells.items() if isinstance(value, list)}
    key = reward_key(list(lists), list(lists), COMMON_KEYS, columns, path)
    if key is None:
        raise no_reward(list(lists), COMMON_KEYS, path)
    _check_rewards(lists[key], key)
    size = len(lists[key])
    steps = _steps(lists.get("step"), size)
    builder = TableBuilder(path, kept_keys(columns))
    known = {name: cells for name, cells in lists.items() if builder.wants(name)}
    for name, values in known.items():
        if len(values) != size:
            raise InputError(
                f"the list has {len(values)} values and the reward {size}",
                key=name,
                advice="Give one value per step, null where there is none",
            )
    builder.seen(name for name in lists if name not in known)
    short = row.cells.keys() >= {*SHORT["marks"]}
    before, after = (cell_number(row.cells.get(name)) if short else None for name in SHORT["tests"])
    if before is not None:
        builder.add(row.number, {"step": 0, "eval_reward": before})
    for index in range(size):
        cells = {name: values[index] for name, values in known.items()}
        builder.add(row.number, {**cells, "step": steps[index]})
    if after is not None:
        builder.add(row.number, {"step": steps[-1], "eval_reward": after})
    of_short = (*SHORT["names"], "size", *SHORT["tests"]) if short else ()
    understood = {*lists, *OWN_NAMES, "id", *of_short}
    builder.seen(name for name in row.cells if name not in understood)
    label = row.cells.get("id")
    return Logged(
        builder.build(),
        label=str(row.number if label is None else label),
        has_own_id=label is not None,
        facts=_facts(row.cells, short),
    )


def _facts(cells: Mapping[str, Any], short: bool) -> dict[str, Any]:
    stated = {name: cells.get(name) for name in OWN_NAMES}
    if short:
        stated |= {ours: cells.get(name) for name, ours in SHORT["names"].items()}
        if stated["model"] is None and cells.get("size") is not None:
            stated["model"] = f"tiny-{cells['size']}"
    # A list is a series logged under the name of a setting (learning_rate).
    facts = {n: v for n, v in stated.items() if v is not None and not isinstance(v, list)}
    return {**SHORT["facts"], **facts} if short else facts


def _steps(cells: list[Any] | None, size: int) -> list[float]:
    if cells is None:
        return [float(place) for place in range(1, size + 1)]
    steps = [-1.0 if (step := cell_number(cell)) is None else step for cell in cells]
    whole = [step for step in steps if 0 <= step <= limits.MOST_STEPS and step == int(step)]
    rising = all(after > before for before, after in itertools.pairwise(whole))
    if len(whole) != size or not rising:
        raise InputError(
            "the steps must be whole numbers that increase, one for each reward",
            key="step",
            advice="Correct the list, or leave it out to count from 1",
        )
    return whole


def _check_rewards(cells: list[Any], key: str) -> None:
    numbers = [cell_number(cell) for cell in cells]
    for place, (cell, number) in enumerate(zip(cells, numbers, strict=True), start=1):
        if number is None and cell is not None and str(cell).strip():
            raise InputError(
                f"reward {place} of the list is {repr(cell)[:40]}, not a number",
                key=key,
                advice="Write numbers, or null where there is none",
            )
    if all(number is None for number in numbers):
        advice = "Log the mean reward of each step"
        raise InputError("the list of rewards is empty", key=key, advice=advice)


READER = Reader("JSONL with one run per line", claims, read, claim=Claim.ROW)
