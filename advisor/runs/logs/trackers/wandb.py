"""W&B: its own file of a run, histories with a row per log call, line charts, tables of runs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.runs.logfiles import parsing
from advisor.runs.logfiles.config_files import flatten
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Column, Columns, Logged, Reader, TableBuilder
from advisor.runs.logfiles.records import DISPLAY_NAME, MARK, OWN_COUNTER, read_store
from advisor.runs.logs.tables.table import fill
from advisor.runs.pilot_run import IN_NO_RUN
from advisor.runs.trainers import all_key_tables, key_tables, plain, spellings
from advisor.runs.trainers.key_table import COMMON_KEYS, UNSURE_STEPS
from advisor.runs.trainers.registry import cached
from advisor.text import compiled, read_toml

PATTERNS = compiled(read_toml(__file__, "trackers.toml")["wandb"])

COUNTERS = ("train/global_step", "training/global_step", "trainer/global_step", "global_step")
"""Counters of trainers that log to trackers, best first; all count what ``step`` counts there."""

OF_WANDB = "W&B's own counter of log calls"


def tracked(
    builder: TableBuilder,
    own: str,
    warnings: Sequence[str] = (),
    *,
    is_export: bool = False,
    **fields: Any,
) -> Logged:
    """A run with a step on each row that some counter has, or the tracker's ``own``."""
    if not len(builder):
        advice = "Export it again once the run has logged metrics"
        raise InputError("the history has no rows", path=builder.path, advice=advice)
    table, assumed = builder.build(), list[str]()
    count = table.pop(OWN_COUNTER)
    by_name = {plain(key): key for key in reversed(table.keys)}
    counter = next((by_name[name] for name in COUNTERS if name in by_name), None)
    has_step = "step" in by_name or (not counter and any(map(is_counter, table.keys)))
    if counter is not None:
        table = table if has_step else table.with_column("step", counter)
        assumed.append(f"steps are {counter}" + (f", not {own}" if own else ""))
    elif not has_step and len(count.at):
        table = table.with_column("step", count)
        assumed.append(
            f"steps are {own}, as the trainer logged no counter; it counts optimizer steps only "
            "where each one was logged"
        )
    thinned = _thinned_out(count, own) if is_export else []
    return Logged(table, assumptions=tuple(assumed), warnings=(*warnings, *thinned), **fields)


def _thinned_out(count: Column, own: str) -> list[str]:
    with np.errstate(over="ignore", invalid="ignore"):  # counts of any size can be logged
        steps = np.diff(np.asarray(count.value))
    gaps, times = np.unique(steps[steps > 0], return_counts=True)
    # Share of equal gaps below which a counter of log calls looks thinned out
    if times.sum() < 50 or times.max() >= 0.8 * times.sum():
        return []
    spacing = gaps @ times / times.sum()
    jumps = f"by {spacing:.2g} on average, by {gaps[times.argmax()]:g} in only {times.max()} rows"
    why = f"so the export may be a sample; scan_history() gives the rows that are {IN_NO_RUN}"
    return [f"{own} jumps unevenly ({jumps}), {why}"]


@cached
def is_counter(key: str) -> bool:
    """Whether some trainer counts its steps or its batches of rollouts under a key."""
    names = set(spellings(plain(key)))
    return any(
        not names.isdisjoint((*table.optimizer_steps, *table.refreshes)) for table in key_tables()
    ) or not names.isdisjoint((*COMMON_KEYS.optimizer_steps, *UNSURE_STEPS))


COUNTER = f"{OF_WANDB} ({OWN_COUNTER})"
CONSOLE = ("files", "output.log")
"""Where W&B keeps, next to its own file, what the same run printed."""


def is_store(log: LogFile) -> bool:
    """Whether a file is W&B's own, by its name and first bytes."""
    return log.suffix == ".wandb" and log.readable_head().startswith(MARK)


def read_run_file(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of W&B's own file."""
    (log,) = logs
    notes: list[str] = []
    config: dict[str, Any] = {}
    builder = TableBuilder(log.path)
    for number, row in enumerate(read_store(log, notes, config), start=1):
        cells = {key: text.strip('"') for key, text in row.items() if text != "null"}
        builder.add(number, cells)
    name = config.pop(DISPLAY_NAME, None)
    named = {"label": name, "has_own_id": True} if name else {}
    yield tracked(builder, COUNTER, notes, settings=flatten(config), **named)


def console_of(store: Path) -> Path:
    """Where the console of the run of W&B's own file lies."""
    return store.parent.joinpath(*CONSOLE)


def is_history(log: LogFile) -> bool:
    """Whether the rows of a text file have W&B's own keys."""
    if log.suffix in (".csv", ".tsv"):
        own = {OWN_COUNTER, "_runtime", "_timestamp"}
        return len(own.intersection(parsing.csv_header(log))) >= 2
    if log.suffix not in (".jsonl", ".ndjson", ".json"):
        return False
    # Charts and tables may fill the first lines of a long row; any line of the head will do.
    begins = re.match(rb"\[\s*\{" if log.suffix == ".json" else rb"\{", log.start())
    return begins is not None and PATTERNS["line_bytes"].search(log.head_text()) is not None


def read_history(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the run of a history."""
    (log,) = logs
    builder = TableBuilder(log.path)
    notes = fill(builder, log)
    yield tracked(builder, COUNTER, notes, is_export=True)


STORE = Reader("W&B run file", is_store, read_run_file)
HISTORY = Reader("W&B history", is_history, read_history)


SEPARATOR = " - "
BOUNDS = ("__MIN", "__MAX")
OWN_AXES = ("Step", OWN_COUNTER)

IS_AVERAGED = (
    "points of the chart are means over several logged rows (its bounds differ from its values), "
    "so the noise of the reward is understated; export the history instead"
)


def is_chart(log: LogFile) -> bool:
    """Whether a header is that of a chart: ``run - metric``, or bounds next to each column."""
    axis, *headers = (parsing.csv_header(log) if log.suffix in parsing.DELIMITED else []) or [""]
    if not headers or not axis or SEPARATOR in axis:
        return False
    if any(header.endswith(BOUNDS) and header[:-5] in headers for header in headers):
        return True
    if PATTERNS["axes"].fullmatch(axis) is None:
        return False
    if all(SEPARATOR in header for header in headers):
        return True
    known = (any(t.understands(plain(h)) for t in all_key_tables()) for h in headers)
    if axis != "Step" or any(SEPARATOR in header for header in headers) or any(known):
        return False
    stem = PurePosixPath(log.name).stem
    return PATTERNS["export"].search(stem) is not None or bool(_metrics_like(stem))


Place = tuple[str, str]  # An axis, and where a point lies on it

Points = dict[Place, tuple[int, dict[str, str]]]
"""Row and cells of each point of a run; W&B's own counter is one of them."""


def read_charts(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a chart, or of all charts of a folder."""
    runs: dict[str, Points] = {}
    notes: list[str] = []
    failures: list[InputError] = []
    assumptions: list[str] = []
    averaged: set[str] = set()
    for log in sorted(logs, key=lambda log: log.path):
        own: list[str] = []
        try:
            chart, assumed, means = _chart(log, columns, own, is_alone=len(logs) == 1)
        except InputError as error:
            failures.append(error)
            notes.append(f"{log.name} was left out: {error.problem}")
            continue
        _join(runs, chart, PurePosixPath(log.name).stem)
        averaged |= means
        assumptions += assumed
        notes += own if len(logs) == 1 else [f"{log.name}: {note}" for note in own]
    if len(failures) == len(logs):
        raise failures[0]
    if not runs:
        tracked(TableBuilder(logs[0].path), OF_WANDB)  # says that there are no rows
    stated = _settings_by_run(logs[0])
    for name, points in runs.items():
        builder = TableBuilder(logs[0].path)
        for place in sorted(points, key=_place_on_axis):
            builder.add(*points[place])
        grouped = f"'{name}' is a mean over runs that W&B grouped; their noise is averaged out"
        warnings = [grouped] if name.startswith("Group: ") else []
        warnings = warnings or ([IS_AVERAGED] if name in averaged else [])
        own_fields = {"label": name, "has_own_id": True, "settings": stated.get(name, {})}
        logged = tracked(builder, OF_WANDB, [*notes, *warnings], is_export=True, **own_fields)
        yield replace(logged, assumptions=(*assumptions, *logged.assumptions))


class _Column(NamedTuple):
    """What a column of a chart holds."""

    run: str
    metric: str
    bound: str


def _chart(
    log: LogFile, columns: Columns, notes: list[str], *, is_alone: bool
) -> tuple[dict[str, Points], list[str], set[str]]:
    """Runs of a file with a column per run and metric, what was assumed, and runs of means."""
    rows = parsing.csv_rows(log, notes)
    _, names = next(rows)
    parsed, assumed = list(_parse(names)), list[str]()
    if any(column.run and not column.metric for column in parsed[1:]):
        metric, source = _metric_of(log, columns, names, is_alone)
        if metric:
            assumed.append(f"every column of {log.name} holds {metric} ({source})")
        parsed = [c if c.metric else c._replace(metric=metric) for c in parsed]
    axis, mapped = names[0], set(columns.keys.values())
    # A mapped header is read under its whole name, and so is an axis that a trainer counts.
    keys = [n if n in mapped else c.metric for n, c in zip(names, parsed, strict=True)]
    is_key = axis in mapped or (axis not in OWN_AXES and is_counter(axis))
    runs: dict[str, Points] = {}
    averaged: set[str] = set()
    for number, cells in rows:
        found: dict[str, dict[str, str]] = {}
        bounds: dict[tuple[str, str], dict[str, str]] = {}
        for column, key, cell in zip(parsed[1:], keys[1:], cells[1:], strict=False):
            if column.bound and key != OWN_COUNTER:
                bounds.setdefault((column.run, key), {})[column.bound] = cell
            elif key and cell.strip() and not column.bound:
                found.setdefault(column.run, {})[key] = cell
        for (run, _), own in bounds.items():
            low, high = (parsing.cell_number(own.get(name)) for name in BOUNDS)
            averaged |= {run} if low is not None and high is not None and low < high else set()
        for run, own in found.items():
            counter = own.pop(OWN_COUNTER, None)
            counter = cells[0] if axis in OWN_AXES else counter
            if not own:
                continue
            if is_key:
                own.setdefault(axis, cells[0])
            own |= {OWN_COUNTER: counter} if counter else {}
            place = (OWN_COUNTER, counter) if counter else (axis, cells[0])
            runs.setdefault(run, {})[place] = number, own
    return runs, assumed, averaged


def _join(runs: dict[str, Points], chart: dict[str, Points], name: str) -> None:
    """Put the points of one more chart to those of the same runs."""
    for run, points in chart.items():
        known = runs.get(run, {})
        both = [(known[place][1], points[place][1]) for place in points if place in known]
        if any(one[key] != other[key] for one, other in both for key in one.keys() & other):
            # Another run of the same name, or the same one at another time.
            run = f"{run} ({name})"
            known = runs.get(run, {})
        for place, (row, cells) in points.items():
            first, before = known.get(place, (row, {}))
            known[place] = first, {**before, **cells}
        runs[run] = known


def _place_on_axis(place: Place) -> float:
    number = parsing.cell_number(place[1])
    return math.inf if number is None or math.isnan(number) else number


def _parse(names: Iterable[str]) -> Iterator[_Column]:
    """Columns by their headers; runs that share a display name, and so a header, are numbered."""
    times: Counter[str] = Counter()
    for header in names:
        times[header] += 1
        again = f" ({times[header]})" if times[header] > 1 else ""
        bound = next((b for b in BOUNDS if header.endswith(b)), "")
        name = header.removesuffix(bound)
        # Names of runs hold the separator more often than names of metrics do.
        run, separator, metric = name.rpartition(SEPARATOR)
        yield _Column(
            (run if separator else name) + again, metric.strip() if separator else "", bound
        )


def _metric_of(log: LogFile, columns: Columns, names: list[str], is_alone: bool) -> tuple[str, str]:
    """Metric of columns that name only their run, and its source; empty where one is mapped."""
    mapped = columns.keys.get("reward", "")
    if mapped:
        return ("", "") if mapped in names else (mapped, "as mapped")
    metrics = _metrics_like(PurePosixPath(log.name).stem)
    if len(metrics) == 1:
        return metrics[0], "from the name of the file"
    if not metrics and is_alone:
        return "reward", "assumed, since its columns name only runs; a column map says otherwise"
    shown = ", ".join(names[1:4])
    problem = f"the columns name only runs ({shown[:80]}), so their metric is not known"
    advice = 'Name the metric of the chart in a column map: [columns] reward = "..."'
    raise InputError(problem, path=log.path, key="reward", advice=advice)


def _metrics_like(stem: str) -> list[str]:
    """Known metrics that the name of a file may stand for, as critic_score_mean does."""
    name = _squeeze(re.sub(r" ?\(\d+\)$", "", stem))
    matches = []
    for table in all_key_tables():
        levels = (*table.reward, *table.series.values())
        matches += [key for level in levels for key in level if _squeeze(key) == name]
    return list(dict.fromkeys([key for key in matches if key == stem] or matches))


def _squeeze(key: str) -> str:
    squeezed = re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_")
    return squeezed.removeprefix("train_")


def is_runs_table(log: LogFile) -> bool:
    """Whether a CSV is W&B's table of runs, by two columns that every such table has."""
    try:
        return log.suffix == ".csv" and {"Name", "State"} <= set(parsing.csv_header(log))
    except InputError:
        return False


def _settings_by_run(chart: LogFile) -> dict[str, dict[str, str]]:
    """Settings by display name, from tables next to a chart: those that all rows of it share."""
    found: dict[str, dict[str, str]] = {}
    folder = chart.path.parent
    for name in sorted(chart.names_in(folder)):
        log = chart.at(folder / name)
        if log is None or not is_runs_table(log):
            continue
        try:
            (_, header), *rows = parsing.csv_rows(log, [])
        except InputError:
            continue
        for _, cells in rows:
            row = {key: cell.strip() for key, cell in zip(header, cells, strict=False)}
            own = PATTERNS["of_the_table"].fullmatch
            settings = {key: cell for key, cell in row.items() if cell and not own(key)}
            known = found.get(row["Name"], settings)
            shared = {key: cell for key, cell in settings.items() if known.get(key) == cell}
            found[row["Name"]] = shared
    return found


# W&B exports one metric at a time, and its charts share their runs.
CHART = Reader(
    "W&B chart as CSV", is_chart, read_charts, lambda log: log.path.parent, claim=Claim.ROW
)
