"""Rows of any trainer, read by known names or a column map: CSV, JSONL or a JSON list.

A table is wide, with a column per metric, or long: a row per value, with the run, the name of the
metric and the step next to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.parsing import (
    DELIMITED,
    JSON_LINES,
    cell_number,
    csv_head,
    csv_header,
    csv_rows,
    json_list,
    json_rows,
    parse_json,
)
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.key_table import RUN_KEYS
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key, kept_keys, show_keys

SCALAR_KEY = re.compile(rb'"([^"\n]{1,120})"\s*:\s*["\d.\-NIn]')
"""A key of a JSON object followed by a number, a quoted one or null."""

OBJECT = re.compile(rb"\s*(?:\[\s*)?\{")
STEP = re.compile(r"(?:.*[/_])?(?:step|steps|checkpoint|iteration|epoch)")

METRICS = ("metric", "metric_name", "tag", "key", "variable", "measure", "series")
VALUES = ("value", "metric_value", "val")
STEPS = ("step", "global_step", "_step", "training_step", "iteration", "steps")
"""Names of the columns of a long table, best first."""

HOW_TO_LIST = "Give a list [{...}, {...}], or one object per line in a .jsonl file"


def is_wide(log: LogFile) -> bool:
    """Whether a table's header, or a row among its first, has a known name of a reward."""
    if log.suffix in DELIMITED:
        keys = csv_header(log)
    elif log.suffix in (*JSON_LINES, ".json") and OBJECT.match(text := log.start()):
        is_object = log.suffix == ".json" and text[:1] != b"["
        found = [] if is_object else dict.fromkeys(SCALAR_KEY.findall(text))
        keys = [key.decode("utf-8", "replace") for key in found]
    else:
        return False
    return has_reward_key(keys) or (
        has_evaluation_key(keys) and any(STEP.fullmatch(key.lower()) for key in keys)
    )


def read_wide(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the rows of a table."""
    (log,) = logs
    builder = TableBuilder(log.path, kept_keys(columns))
    warnings: list[str] = []
    if log.suffix in DELIMITED:
        _fill_from_csv(log, builder, warnings)
    else:
        rows = json_rows(log, warnings) if _is_lines(log) else json_list(log, None)[0]
        for number, cells in rows:
            builder.add(number, cells)
    if not len(builder):
        raise InputError("the file holds no list of rows", path=log.path, advice=HOW_TO_LIST)
    yield Logged(builder.build(), warnings=tuple(warnings))


def _fill_from_csv(log: LogFile, builder: TableBuilder, notes: list[str]) -> None:
    rows = csv_rows(log, notes)
    row, header = next(rows)
    twice = next((key for key in header if key and header.count(key) > 1), None)
    if twice is not None:
        problem = "two columns have this name"
        raise InputError(problem, path=log.path, row=row, key=twice, advice="Rename one")
    builder.seen(key for key in header if key)
    used = [(i, key) for i, key in enumerate(header) if key and builder.wants(key)]
    for number, cells in rows:
        builder.add(number, {key: cells[i] for i, key in used if i < len(cells)})
    if not len(builder):
        problem, advice = "the table has a header and no rows", "Give a log with rows"
        raise InputError(problem, path=log.path, row=1, advice=advice)


def _is_lines(log: LogFile) -> bool:
    """Whether the text holds an object per line, rather than a list or one object over several."""
    head = log.start()
    if log.suffix in JSON_LINES:
        return not head.startswith(b"[")
    if not head.startswith(b"{"):
        return False
    if head.split(b"\n", 1)[0].rstrip().endswith(b"}"):
        return True
    document = parse_json(log.text(), log.path)
    problem = f"the file is one JSON object, not a list of rows (keys seen: {show_keys(document)})"
    raise InputError(problem, path=log.path, advice=HOW_TO_LIST)


def _layout(header: Sequence[str]) -> list[int]:
    """Places of the columns with metric, value, step and names of runs; none of a wide table."""
    named = [[n for n in names if n in header][:1] for names in (METRICS, VALUES, STEPS)]
    used = [header.index(name) for names in named for name in names]
    runs = [at for at, name in enumerate(header) if name in RUN_KEYS and at not in used]
    return [*used, *runs] if len(used) == len(named) else []


def is_long(log: LogFile) -> bool:
    """Whether a header names metric, value and step, and a metric of the first rows is a reward."""
    header = [name.lower() for name in csv_header(log)] if log.suffix in DELIMITED else []
    layout = _layout(header)
    rows = csv_head(log, most=1_000)[1:] if layout else ()
    names = {cells[layout[0]].strip() for cells in rows if len(cells) == len(header)}
    return has_reward_key(names) or has_evaluation_key(names)


def read_long(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a long table; values of one run and step are one row."""
    (log,) = logs
    kept, notes = kept_keys(columns), list[str]()
    rows = csv_rows(log, notes)
    header = [name.lower() for name in next(rows)[1]]
    layout = _layout(header)
    if not layout:
        problem = "the table has no columns with metric, value and step"
        advice = "Name them so, or write one column per metric"
        raise InputError(problem, path=log.path, advice=advice)
    metric, value, at_step, *names = layout
    runs: dict[str, dict[float, dict[str, str]]] = {}
    places: dict[tuple[str, float], int] = {}
    for number, row in rows:
        if len(row) != len(header) or not kept(name := row[metric].strip()):
            continue
        step = cell_number(row[at_step])
        if step is None or not math.isfinite(step):
            problem = f"the step of this row is {row[at_step][:40]!r}, not a number"
            raise InputError(problem, path=log.path, row=number, advice="Correct the row")
        label = "/".join(row[at].strip() for at in names)
        runs.setdefault(label, {}).setdefault(step, {})[name] = row[value]
        places.setdefault((label, step), number)
    if not runs:
        raise InputError("the table holds no metric that is known", path=log.path, advice="Name it")
    several = len(runs) > 1
    for label, steps in runs.items():
        builder = TableBuilder(log.path, kept)
        for step in sorted(steps):
            builder.add(places[label, step], {**steps[step], "step": step})
        own = label if several else None
        yield Logged(builder.build(), label=own, has_own_id=several, warnings=tuple(notes))


LONG = Reader("long table (run, metric, step, value)", is_long, read_long, claim=Claim.ROW)
READER = Reader(
    "table with a reward (CSV, JSONL or JSON list)",
    is_wide,
    read_wide,
    suffixes=frozenset((*DELIMITED, *JSON_LINES, ".json")),
    claim=Claim.TABLE,
)
