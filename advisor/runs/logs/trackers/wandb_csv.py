"""W&B's exports of a page: line charts as CSV, put together by run, and the table of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.parsing import cell_number, csv_header, csv_rows
from advisor.runs.logs.trackers.tracker import Counts, TrackedRuns
from advisor.runs.logs.trackers.wandb_chart import Chart, Point, is_chart

COUNTS = Counts("W&B's own counter of log calls", warns_of_samples=True)
OF_THE_TABLE = frozenset(
    {"Name", "State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep", "ID", "Group"}
)
"""Columns of W&B's table of runs that are no settings."""


def group(log: LogFile) -> Path:
    """Folder of a chart: W&B exports one metric at a time, and its charts share their runs."""
    return log.path.parent


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a chart, or of all charts of a folder."""
    runs = TrackedRuns(logs[0].path, columns, COUNTS)
    source = Chart(logs[0], columns) if len(logs) == 1 else _Merged(logs, columns)
    for point in source.points():
        runs.add(point.row, point.cells, count=point.own, run=point.run)
    warnings: dict[str | None, list[str]] = {
        run: [*source.notes, *_warn(run or "", run in source.averaged)] for run in runs.runs
    }
    stated = _settings_by_run(logs[0])
    names = list(runs.runs)
    logged_runs = runs.logged(
        warnings=warnings, assumptions=tuple(source.assumptions), own_ids=True
    )
    for logged in logged_runs:
        name = logged.label or (names[0] if len(names) == 1 else None)
        settings = stated.get(name or "", {})
        yield replace(logged, settings={**settings, **logged.settings}) if settings else logged


class _Merged:
    """Several charts of the same runs: one row per run and place on the axis."""

    def __init__(self, logs: Sequence[LogFile], columns: Columns) -> None:
        self.notes: list[str] = []
        self.assumptions: list[str] = []
        self.averaged: set[str] = set()
        self._runs: dict[str, dict[tuple[str, str], Point]] = {}
        failure: InputError | None = None
        for log in sorted(logs, key=lambda log: log.path):
            try:
                self._take(log, Chart(log, columns, is_alone=False))
            except InputError as error:
                failure = failure or error
                self.notes.append(f"{log.name} was left out: {error.problem}")
        if failure is not None and not self._runs:
            raise failure

    def points(self) -> Iterator[Point]:
        """Points of all runs, each run's in the order of the axis."""
        for run, points in self._runs.items():
            ordered = sorted(points.values(), key=lambda point: _place(point.at[1]))
            for number, point in enumerate(ordered, start=1):
                yield point._replace(run=run, row=number)

    def _take(self, log: LogFile, chart: Chart) -> None:
        found: dict[str, list[Point]] = {}
        for point in chart.points():
            found.setdefault(point.run, []).append(point)
        self.notes += [f"{log.name}: {note}" for note in chart.notes]
        self.assumptions += chart.assumptions
        self.averaged |= chart.averaged
        for run, points in found.items():
            known = self._runs.get(run, {})
            if any(_contradict(known[p.at].cells, p.cells) for p in points if p.at in known):
                # Another run of the same name, or the same one at another time.
                run = f"{run} ({PurePosixPath(log.name).stem})"
                known = self._runs.get(run, {})
            for point in points:
                before = known[point.at].cells if point.at in known else {}
                known[point.at] = point._replace(cells={**before, **point.cells})
            self._runs[run] = known


def _contradict(one: dict[str, str], other: dict[str, str]) -> bool:
    return any(one[key] != other[key] for key in one.keys() & other.keys())


def _place(at: str) -> float:
    place = cell_number(at)
    return math.inf if place is None or math.isnan(place) else place


def _warn(run: str, is_averaged: bool) -> list[str]:
    if run.startswith("Group: "):
        return [f"'{run}' is a mean over runs that W&B grouped; their noise is averaged out"]
    if is_averaged:
        return [
            "points of the chart are means over several logged rows (its bounds differ from its "
            "values), so the noise of the reward is understated; export the history instead"
        ]
    return []


def is_runs_table(log: LogFile) -> bool:
    """Whether a CSV is W&B's table of runs, by two columns that every such table has."""
    try:
        return log.suffix == ".csv" and {"Name", "State"} <= set(csv_header(log))
    except InputError:
        return False


def _settings_by_run(chart: LogFile) -> dict[str, dict[str, str]]:
    """Settings by display name, from tables beside a chart: those that all rows of a name share."""
    found: dict[str, dict[str, str]] = {}
    for log in chart.beside():
        if not is_runs_table(log):
            continue
        try:
            header, *rows = [cells for _, cells in csv_rows(log, [])]
        except InputError:
            continue
        for cells in rows:
            row = {key: cell.strip() for key, cell in zip(header, cells, strict=False)}
            settings = {key: cell for key, cell in row.items() if cell and key not in OF_THE_TABLE}
            name = row["Name"]
            known = found.get(name, settings)
            found[name] = {key: cell for key, cell in settings.items() if known.get(key) == cell}
    return found


READER = Reader("W&B chart as CSV", is_chart, read, group, claim=Claim.ROW)
