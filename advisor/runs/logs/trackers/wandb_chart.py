"""One W&B line chart as CSV: what its columns hold, and their points."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.parsing import cell_number, csv_header, csv_rows
from advisor.runs.logs.trackers.tracker import is_counter
from advisor.runs.trainers import all_key_tables, plain

SUFFIXES = (".csv", ".tsv")
SEPARATOR = " - "
BOUNDS = ("__MIN", "__MAX")
OWN_COUNTER = "_step"
OWN_AXES = ("Step", OWN_COUNTER)
AXES = re.compile(
    r"Step|_step|_runtime|_timestamp|_absolute_runtime|Wall Time|Relative Time(?: \(\w+\))?"
    r"|epoch|train/epoch|(?:train|training|trainer)/global_step|global_step"
)
"""Axes that W&B offers for a chart, and counters that users choose most."""

EXPORT = re.compile(r"(?:^|[^a-z])(?:wandb|export)", re.IGNORECASE)
COPY = re.compile(r" ?\(\d+\)$")


class Column(NamedTuple):
    """What a column of a chart holds."""

    run: str
    metric: str
    bound: str


class Point(NamedTuple):
    """Cells of one run in one row of a chart."""

    run: str
    row: int
    at: tuple[str, str]
    own: str | None
    cells: dict[str, str]


class Chart:
    """A file with a column per run and metric."""

    def __init__(self, log: LogFile, columns: Columns, *, is_alone: bool = True) -> None:
        self.notes: list[str] = []
        self.assumptions: list[str] = []
        self.averaged: set[str] = set()
        self._rows = csv_rows(log, self.notes)
        names = [cell.strip() for cell in next(self._rows)[1]]
        parsed = [_parse(name) for name in names]
        if any(column.run and not column.metric for column in parsed[1:]):
            metric, source = _metric_of(log, columns, names, is_alone)
            if metric:
                self.assumptions.append(f"every column of {log.name} holds {metric} ({source})")
            parsed = [c if c.metric else c._replace(metric=metric) for c in parsed]
        self._columns = _tell_apart(parsed, names)
        mapped = set(columns.keys.values())
        # A mapped header is read under its whole name, and so is an axis that a trainer counts.
        self._keys = [n if n in mapped else c.metric for n, c in zip(names, parsed, strict=True)]
        self._axis = names[0]
        is_key = names[0] in mapped or (names[0] not in OWN_AXES and is_counter(names[0]))
        self._axis_key = names[0] if is_key else None

    def points(self) -> Iterator[Point]:
        """Points of all runs, row by row."""
        means, counters = [], {}
        for place, column in enumerate(self._columns):
            if not place or not self._keys[place] or column.bound:
                continue
            if column.metric == OWN_COUNTER:
                counters[column.run] = place
            else:
                means.append(place)
        bounds = _bounds(self._columns)
        for number, cells in self._rows:
            cells += [""] * (len(self._columns) - len(cells))
            by_run: dict[str, dict[str, str]] = {}
            for place in means:
                if cells[place] and not cells[place].isspace():
                    found = by_run.setdefault(self._columns[place].run, {})
                    found[self._keys[place]] = cells[place]
            for run, found in by_run.items():
                if self._axis_key is not None:
                    found.setdefault(self._axis_key, cells[0])
                own = cells[counters[run]] if run in counters else None
                own = cells[0] if self._axis in OWN_AXES else own
                at = (OWN_COUNTER, own) if own else (self._axis, cells[0])
                yield Point(run, number, at, own, found)
            for run, least, most in bounds:
                if run not in self.averaged and _differ(cells[least], cells[most]):
                    self.averaged.add(run)


def is_chart(log: LogFile) -> bool:
    """Whether a header is that of a chart: ``run - metric``, or bounds beside each column."""
    if log.suffix not in SUFFIXES:
        return False
    axis, *headers = csv_header(log) or [""]
    if not headers or not axis or SEPARATOR in axis:
        return False
    names = set(headers)
    if any(header.endswith(BOUNDS) and header[:-5] in names for header in headers):
        return True
    if AXES.fullmatch(axis) is None:
        return False
    if all(SEPARATOR in header for header in headers):
        return True
    stem = PurePosixPath(log.name).stem
    if axis != "Step" or any(SEPARATOR in header or _is_known(header) for header in headers):
        return False
    return EXPORT.search(stem) is not None or bool(_metrics_like(stem))


def _parse(header: str) -> Column:
    bound = next((b for b in BOUNDS if header.endswith(b)), "")
    name = header.removesuffix(bound)
    # Names of runs hold the separator more often than names of metrics do.
    run, separator, metric = name.rpartition(SEPARATOR)
    return Column(run, metric.strip(), bound) if separator else Column(name, "", bound)


def _metric_of(log: LogFile, columns: Columns, names: list[str], is_alone: bool) -> tuple[str, str]:
    """Metric of columns that name only their run, and what told it; empty where one is mapped."""
    mapped = columns.keys.get("reward", "")
    if mapped in names:
        return "", ""
    if mapped:
        return mapped, "as mapped"
    metrics = _metrics_like(PurePosixPath(log.name).stem)
    if len(metrics) == 1:
        return metrics[0], "from the name of the file"
    if not metrics and is_alone:
        return "reward", "assumed, since its columns name only runs; a column map says otherwise"
    shown = ", ".join(names[1:4])
    raise InputError(
        f"the columns name only runs ({shown[:80]}), so their metric is not known",
        path=log.path,
        key="reward",
        advice='Name the metric of the chart in a column map: [columns] reward = "..."',
    )


def _tell_apart(parsed: list[Column], names: list[str]) -> list[Column]:
    """Number runs that share a display name: their columns have the same header."""
    times: Counter[str] = Counter()
    told = []
    for column, name in zip(parsed, names, strict=True):
        times[name] += 1
        again = times[name] > 1
        told.append(column._replace(run=f"{column.run} ({times[name]})") if again else column)
    return told


def _bounds(parsed: list[Column]) -> list[tuple[str, int, int]]:
    """Run and places of the two bounds of each metric."""
    places = {column: i for i, column in enumerate(parsed)}
    least = [c for c in parsed if c.bound == "__MIN" and c.metric != OWN_COUNTER]
    pairs = [(c.run, places[c], places.get(c._replace(bound="__MAX"))) for c in least]
    return [(run, low, high) for run, low, high in pairs if high is not None]


def _differ(least: str, most: str) -> bool:
    if least == most:
        return False
    low, high = cell_number(least), cell_number(most)
    return low is not None and high is not None and low < high


def _is_known(header: str) -> bool:
    return any(f.understands(plain(header)) for f in all_key_tables())


def _metrics_like(stem: str) -> list[str]:
    """Known metrics that the name of a file may stand for, as critic_score_mean does."""
    name = _squeeze(COPY.sub("", stem))
    matches = []
    for framework in all_key_tables():
        rewards = (key for level in framework.reward for key in level)
        series = (key for keys in framework.series.values() for key in keys)
        matches += [key for key in (*rewards, *series) if _squeeze(key) == name]
    exact = [key for key in matches if key == stem]
    return list(dict.fromkeys(exact or matches))


def _squeeze(key: str) -> str:
    squeezed = re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_")
    return squeezed.removeprefix("train_")
