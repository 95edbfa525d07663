"""Long tables: a row per value, with the run, the name of the metric and the step beside it."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.parsing import cell_number, csv_header, csv_rows
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.key_table import RUN_KEYS
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key, kept_keys

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
    if log.suffix not in (".csv", ".tsv"):
        return False
    header = [name.lower() for name in csv_header(log)]
    layout = _layout(header)
    if layout is None:
        return False
    lines = log.head_text().decode("utf-8", "replace").lstrip("\ufeff").splitlines()
    rows = csv.reader(lines[1:-1] or lines[1:], delimiter=max(",;\t", key=lines[0].count))
    names = {cells[layout.metric].strip() for cells in rows if len(cells) == len(header)}
    return has_reward_key(names) or has_evaluation_key(names)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a long table; values of one run and step are one row."""
    (log,) = logs
    kept, notes = kept_keys(columns), list[str]()
    rows = csv_rows(log, notes)
    header = [name.lower() for name in next(rows)[1]]
    layout = _layout(header)
    if layout is None:
        raise InputError(
            "the table has no columns with metric, value and step",
            path=log.path,
            advice="Name them so, or write one column per metric",
        )
    runs: dict[str, dict[float, dict[str, str]]] = {}
    places: dict[tuple[str, float], int] = {}
    for number, row in rows:
        if len(row) != len(header) or not kept(name := row[layout.metric].strip()):
            continue
        step = cell_number(row[layout.step])
        if step is None or not math.isfinite(step):
            raise InputError(
                f"the step of this row is {row[layout.step][:40]!r}, not a number",
                path=log.path,
                row=number,
                advice="Correct the row",
            )
        label = "/".join(row[at].strip() for at in layout.runs)
        runs.setdefault(label, {}).setdefault(step, {})[name] = row[layout.value]
        places.setdefault((label, step), number)
    if not runs:
        raise InputError("the table holds no metric that is known", path=log.path, advice="Name it")
    for label, steps in runs.items():
        builder = TableBuilder(log.path, kept)
        for step in sorted(steps):
            builder.add(places[label, step], {**steps[step], "step": step})
        several = len(runs) > 1
        yield Logged(
            builder.build(),
            label=label if several else None,
            has_own_id=several,
            warnings=tuple(notes),
        )


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
