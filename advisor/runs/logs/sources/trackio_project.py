"""A project of Trackio on this machine: its runs with every row, through Trackio's own client."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from advisor.errors import SourceError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.configs import flatten
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logs.sources.answers import first_line, not_installed, run_of
from advisor.runs.logs.trackers.tracker import TrackedRun

COUNTER = "Trackio's own counter of log calls"
OF_TRACKIO = ("_Username", "_Created", "_Group")
"""What Trackio adds to a run's configuration."""


def candidates(project: str) -> list[LogCandidate]:
    """Runs of a project, with the rows that a live run wrote last."""
    place = f"trackio:{project}"
    try:
        from trackio import sqlite_storage
    except ImportError:
        raise not_installed(place, "Trackio's", "trackio") from None
    storage = sqlite_storage.SQLiteStorage
    try:
        has_project = storage.get_project_db_path(project).is_file()
        known = ", ".join(sorted(storage.get_projects())[:8]) or "none"
        runs = storage.get_run_records(project) if has_project else []
    except Exception as error:
        raise _refused(place, error) from error
    if not has_project:
        raise SourceError(
            f"Trackio has no project '{project}' on this machine (it has: {known})",
            path=place,
            advice="Check the name, and TRACKIO_DIR, the folder in which Trackio keeps them",
        )
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
        raise _refused(str(path), error) from error
    run = TrackedRun(path, columns, COUNTER)
    for number, row in enumerate(rows, start=1):
        cells = {key: cell for key, cell in row.items() if key not in ("step", "timestamp")}
        run.add(number, cells, row["step"])
    own: dict[str, Any] = {key: cell for key, cell in config.items() if key not in OF_TRACKIO}
    yield run.logged(label=name, has_own_id=True, settings=flatten(own))


def _refused(place: str, error: Exception) -> SourceError:
    """Error in words that a user can act on."""
    return SourceError(
        f"Trackio's client failed ({type(error).__name__}: {first_line(error)})",
        path=place,
        advice="Open it with 'trackio show', or install the client that this was made for: "
        "pip install -U 'grpo-advisor[trackio]'",
    )
