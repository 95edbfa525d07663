"""Long tables: a row per value, with the run, the name of the metric and the step beside it."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.common_keys import RUN_KEYS
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key, kept_keys

SUFFIXES = frozenset({".csv", ".tsv"})
METRICS = ("metric", "metric_name", "tag", "key", "variable", "measure", "series")
VALUES = ("value", "metric_value", "val")
STEPS = ("step", "global_step", "_step", "training_step", "iteration", "steps")


class Layout(NamedTuple):
    """Places of the columns that a long table has."""

    metric: int
    value: int
    step: int
    runs: tuple[int, ...]


def claims(log: LogFile) -> bool:
    """Whether a header names metric, value and step, and a metric of the first rows is a reward."""
    if log.suffix not in SUFFIXES:
        return False
    lines = log.head_text().decode("utf-8", "replace").lstrip("\ufeff").splitlines()
    if len(lines) < 2:
        return False
    delimiter = max(",;\t", key=lines[0].count)
    header = [cell.strip().strip('"').lower() for cell in lines[0].split(delimiter)]
    layout = _layout(header)
    if layout is None:
        return False
    names = {
        cells[layout.metric].strip().strip('"')
        for line in lines[1:-1] or lines[1:]
        if len(cells := line.split(delimiter)) == len(header)
    }
    return has_reward_key(names) or has_evaluation_key(names)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a long table; values of one run and step are one row."""
    (log,) = logs
    lines = (f"{line.text}\n" for line in log.lines())
    first = next(lines, "")
    rows = csv.reader(itertools.chain((first,), lines), delimiter=max(",;\t", key=first.count))
    try:
        header = [cell.strip().lower() for cell in next(rows, [])]
    except csv.Error:
        header = []
    layout = _layout(header)
    if layout is None:
        raise InputError(
            "the table has no columns with metric, value and step",
            path=log.path,
            advice="Name them so, or write one column per metric",
        )
    runs, numbers = _collect(log, rows, len(header), layout, kept := kept_keys(columns))
    if not runs:
        raise InputError("the table holds no metric that is known", path=log.path, advice="Name it")
    for label, steps in runs.items():
        builder = TableBuilder(log.path, kept)
        for step in sorted(steps):
            builder.add(numbers[label, step], {**steps[step], "step": step})
        several = len(runs) > 1
        yield Logged(builder.build(), label=label if several else None, has_own_id=several)


def _collect(
    log: LogFile, rows: Any, width: int, layout: Layout, kept: Callable[[str], bool]
) -> tuple[dict[str, dict[float, dict[str, str]]], dict[tuple[str, float], int]]:
    """Values by run, step and metric, and the row of the first one of each run and step."""
    runs: dict[str, dict[float, dict[str, str]]] = {}
    numbers: dict[tuple[str, float], int] = {}
    cells = 0
    try:
        for row in rows:
            if len(row) != width or not kept(name := row[layout.metric].strip()):
                continue
            step = _step(row[layout.step])
            if step is None:
                raise InputError(
                    f"the step of this row is {row[layout.step][:40]!r}, not a number",
                    path=log.path,
                    row=rows.line_num,
                    advice="Correct the row",
                )
            label = "/".join(row[at].strip() for at in layout.runs)
            if label not in runs and len(runs) >= limits.MOST_RUNS_PER_FILE:
                raise InputError(
                    f"the table names more than {limits.MOST_RUNS_PER_FILE:,} runs",
                    path=log.path,
                    row=rows.line_num,
                    advice="Split it by run",
                )
            runs.setdefault(label, {}).setdefault(step, {})[name] = row[layout.value]
            numbers.setdefault((label, step), rows.line_num)
            cells += 1
            if cells > limits.MOST_CHART_CELLS:
                raise InputError(
                    f"the table holds more than {limits.MOST_CHART_CELLS:,} values",
                    path=log.path,
                    advice="Write one column per metric",
                )
    except csv.Error as error:
        raise InputError(
            f"the table cannot be read ({error})",
            path=log.path,
            row=rows.line_num,
            advice="Copy the file again (it may have been cut while it was written)",
        ) from None
    return runs, numbers


def _step(cell: str) -> float | None:
    try:
        step = float(cell)
    except ValueError:
        return None
    return step if math.isfinite(step) else None


def _layout(header: Sequence[str]) -> Layout | None:
    places = [_first(header, names) for names in (METRICS, VALUES, STEPS)]
    if any(place is None for place in places):
        return None
    metric, value, step = (int(place) for place in places if place is not None)
    used = {metric, value, step}
    runs = [at for at, name in enumerate(header) if name in RUN_KEYS and at not in used]
    return Layout(metric, value, step, tuple(runs))


def _first(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


READER = Reader(
    "long table (run, metric, step, value)",
    claims,
    read,
    claim=Claim.ROW,
)
