"""MLflow's database, its store since version 3.7 and verl's from the start."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.columns import Columns
from advisor.logfiles.database import columns_of, holds_table, open_database
from advisor.logfiles.log_file import LogFile
from advisor.logfiles.logged import Logged, Reader
from advisor.logs.trackers.mlflow import Points

TABLE = re.compile(
    rb"CREATE TABLE (?:IF NOT EXISTS )?[\"`]?metrics[\"`]?\s*\([^;]{0,400}\brun_uuid\b"
)
NEEDED = {"key", "value", "timestamp", "run_uuid"}
DELETED = "deleted"


def claims(log: LogFile) -> bool:
    """Whether a file is a database with MLflow's table of metrics."""
    return holds_table(log, TABLE)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of all experiments."""
    log = logs[0]
    with open_database(log) as connection:
        names = set(columns_of(connection, "metrics"))
        if not names >= NEEDED:
            raise InputError(
                "the database has no table 'metrics' with MLflow's columns",
                path=log.path,
                advice="Give the database of MLflow, or the metrics of a run as CSV",
            )
        labels, deleted = _runs(connection)
        runs = _points(connection, names, log, columns, deleted)
        settings = _parameters(connection, runs)
    known = {run: points for run, points in runs.items() if len(points)}
    if not known:
        raise InputError(
            "no run in the database has values of known metrics",
            path=log.path,
            advice="Name the metric of the reward in a column map",
        )
    for run, points in known.items():
        table, assumptions = points.table()
        yield Logged(
            table,
            label=labels.get(run, run),
            settings=settings.get(run, {}),
            assumptions=assumptions,
        )


def _runs(connection: sqlite3.Connection) -> tuple[dict[str, str], set[str]]:
    """Label of each run, and the runs that were deleted."""
    names = columns_of(connection, "runs")
    if not {"run_uuid", "name", "lifecycle_stage"} <= set(names):
        return {}, set()
    labels, deleted = {}, set()
    for run, name, stage in connection.execute("SELECT run_uuid, name, lifecycle_stage FROM runs"):
        short = str(run)[: limits.RUN_ID_CHARACTERS_SHOWN]
        labels[str(run)] = f"{name} ({short})" if name else str(run)
        if stage == DELETED:
            deleted.add(str(run))
    return labels, deleted


def _points(
    connection: sqlite3.Connection,
    names: set[str],
    log: LogFile,
    columns: Columns,
    deleted: set[str],
) -> dict[str, Points]:
    step = "step" if "step" in names else "0"
    is_nan = "is_nan" if "is_nan" in names else "0"
    runs: dict[str, Points] = {}
    total = 0
    # By row, not by an index: within one metric the order of logging tells restarts.
    rows = connection.execute(
        f"SELECT run_uuid, key, value, timestamp, {step}, {is_nan} FROM metrics NOT INDEXED"
    )
    for run, key, value, time, at, is_missing in rows:
        run = str(run)
        if run in deleted:
            continue
        points = runs.get(run)
        if points is None:
            points = runs[run] = Points(log.path, columns)
        if not points.wants(str(key)) or not isinstance(value, int | float):
            continue
        total += 1
        if total > limits.MOST_MLFLOW_POINTS:
            raise InputError(
                f"the database holds more than {limits.MOST_MLFLOW_POINTS:,} values of known "
                "metrics",
                path=log.path,
                advice="Export the runs that you want to have read",
            )
        points.add(str(key), _number(time), float("nan") if is_missing else value, _number(at))
    return runs


def _parameters(
    connection: sqlite3.Connection, runs: dict[str, Points]
) -> dict[str, dict[str, Any]]:
    if not {"run_uuid", "key", "value"} <= set(columns_of(connection, "params")):
        return {}
    settings: dict[str, dict[str, Any]] = {}
    for run, key, value in connection.execute("SELECT run_uuid, key, value FROM params"):
        own = settings.setdefault(str(run), {}) if str(run) in runs else {}
        is_short = len(str(value)) <= limits.MOST_MLFLOW_PARAMETER_BYTES
        if is_short and len(own) < limits.MOST_TRACKED_SETTINGS:
            own[str(key).replace("/", ".")] = (
                value if isinstance(value, int | float) else str(value)
            )
    return settings


def _number(cell: Any) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


READER = Reader("MLflow database", claims, read)
