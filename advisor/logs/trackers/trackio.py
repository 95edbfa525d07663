"""Trackio: one SQLite file per project, the metrics of each row as JSON."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.columns import Columns
from advisor.logfiles.database import columns_of, holds_table, open_database
from advisor.logfiles.log_file import LogFile
from advisor.logfiles.logged import Logged, Reader
from advisor.logs.trackers.tracker import Counts, TrackedRuns, flat_settings, json_object, run_name

TABLE = re.compile(
    rb"CREATE TABLE (?:IF NOT EXISTS )?\"?metrics\"?\s*\([^()]{0,600}\brun_name\b[^()]{0,200}"
    rb"\bmetrics TEXT"
)
COUNTS = Counts("Trackio's own counter of log calls")
OF_TRACKIO = ("_Username", "_Created", "_Group")
"""What Trackio adds to a run's configuration."""


def claims(log: LogFile) -> bool:
    """Whether a file is a database with Trackio's table of metrics."""
    return holds_table(log, TABLE)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a project."""
    log = logs[0]
    runs = TrackedRuns(log.path, columns, COUNTS)
    with open_database(log) as connection:
        names = columns_of(connection, "metrics")
        if not {"run_name", "metrics"} <= set(names):
            raise InputError(
                "the database has no table 'metrics' with Trackio's columns",
                path=log.path,
                advice="Give the <project>.db of Trackio, or an export as CSV or JSONL",
            )
        # A run that was renamed keeps its id; before there were ids its name was all there was.
        identity = "run_id" if "run_id" in names else "run_name"
        project = "project_name" if "project_name" in names else "NULL"
        step = "step" if "step" in names else "NULL"
        last_name: dict[str, str] = {}
        rows = connection.execute(
            f"SELECT {project}, {identity}, run_name, {step}, metrics FROM metrics"
        )
        for number, (folder, who, name, count, text) in enumerate(rows, start=1):
            if number > limits.MOST_TRACKIO_ROWS:
                raise InputError(
                    f"the database holds more than {limits.MOST_TRACKIO_ROWS:,} rows",
                    path=log.path,
                    advice="Export the runs that you want to have read",
                )
            cells = json_object(text) if isinstance(text, str | bytes) else None
            if cells is None:
                raise InputError(
                    "the metrics are no JSON object",
                    path=log.path,
                    row=number,
                    advice="Copy it again",
                )
            run = _joined(folder, who)
            runs.add(number, cells, count=count, run=run)
            last_name[run] = _joined(folder, run_name(name) or "unnamed")
        settings = _settings(connection, identity)
    yield from runs.logged(labels=tell_apart(last_name), settings=settings)


def _joined(project: Any, run: Any) -> str:
    """Name of a run; the first version kept all projects in one file."""
    return f"{run}" if project is None else f"{project}/{run}"


def tell_apart(names: Mapping[str, str]) -> dict[str | None, str]:
    """Name of each run by its id, with the start of the id where names repeat."""
    times = Counter(names.values())
    return {
        run: f"{name} ({run[: limits.RUN_ID_CHARACTERS_SHOWN]})" if times[name] > 1 else name
        for run, name in names.items()
    }


def _settings(connection: sqlite3.Connection, identity: str) -> dict[str | None, dict[str, Any]]:
    known = columns_of(connection, "configs")
    if not {"config", identity} <= set(known):
        return {}
    project = "project_name" if "project_name" in known else "NULL"
    found: dict[str | None, dict[str, Any]] = {}
    for folder, run, text in connection.execute(
        f"SELECT {project}, {identity}, config FROM configs"
    ):
        config = json_object(text) if isinstance(text, str | bytes) else None
        if config is not None and len(found) < limits.MOST_RUNS_PER_FILE:
            own = {name: value for name, value in config.items() if name not in OF_TRACKIO}
            found[_joined(folder, run)] = flat_settings(own)
    return found


READER = Reader("Trackio database", claims, read)
