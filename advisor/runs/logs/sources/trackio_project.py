"""A project of Trackio on this machine: its runs with every row, through Trackio's own client."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.config_files import flatten
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logs.sources.answers import refusal, run_of
from advisor.runs.logs.trackers.tracker import TrackedRun

COUNTER = "Trackio's own counter of log calls"
OF_TRACKIO = ("_Username", "_Created", "_Group")  # What Trackio adds to a run's configuration


def candidates(project: str) -> list[LogCandidate]:
    """Runs of a project, with the rows that a live run wrote last."""
    place = f"trackio:{project}"
    try:
        from trackio import sqlite_storage
    except ImportError:
        raise refusal(place, "missing") from None
    storage = sqlite_storage.SQLiteStorage
    try:
        has_project = storage.get_project_db_path(project).is_file()
        known = ", ".join(sorted(storage.get_projects())[:8]) or "none"
        runs = storage.get_run_records(project) if has_project else []
    except Exception as error:
        raise refusal(place, "failed", error) from error
    if not has_project:
        raise refusal(place, "unknown", f"'{project}' on this machine (it has: {known})")
    return [
        run_of(
            place,
            run["id"] or run["name"],
            "Trackio project",
            partial(_read, storage, project, run),
        )
        for run in runs
    ]


def _read(
    storage: Any, project: str, record: dict[str, str], path: Path, columns: Columns
) -> Iterator[Logged]:
    """Read the rows of one run."""
    name = record["name"]
    try:
        rows = storage.get_logs(project, name, run_id=record["id"])
        config = storage.get_run_config(project, name, run_id=record["id"]) or {}
    except Exception as error:
        raise refusal(str(path), "failed", error) from error
    run = TrackedRun(path, columns, COUNTER)
    for number, row in enumerate(rows, start=1):
        cells = {key: cell for key, cell in row.items() if key not in ("step", "timestamp")}
        run.add(number, cells, row["step"])
    own: dict[str, Any] = {key: cell for key, cell in config.items() if key not in OF_TRACKIO}
    yield run.logged(label=name, has_own_id=True, settings=flatten(own))
