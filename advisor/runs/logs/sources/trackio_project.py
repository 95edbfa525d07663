"""A project of Trackio on this machine: its runs with every row, through Trackio's own client."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from advisor.errors import SourceError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logs.sources.answers import not_installed, run_of
from advisor.runs.logs.trackers.tracker import Counts, TrackedRuns, flat_settings

COUNTS = Counts("Trackio's own counter of log calls")
OF_TRACKIO = ("_Username", "_Created", "_Group")
"""What Trackio adds to a run's configuration."""


def candidates(project: str) -> list[LogCandidate]:
    """Runs of a project, with the rows that a live run wrote last."""
    place = f"trackio:{project}"
    storage = _client(place)
    try:
        if not storage.get_project_db_path(project).is_file():
            known = ", ".join(sorted(storage.get_projects())[:8]) or "none"
            raise SourceError(
                f"Trackio has no project '{project}' on this machine (it has: {known})",
                path=place,
                advice="Check the name, and TRACKIO_DIR, the folder in which Trackio keeps them",
            )
        runs = storage.get_run_records(project)
    except SourceError:
        raise
    except Exception as error:
        raise _refused(place, error) from error
    return [
        run_of(
            place,
            run["id"] or run["name"],
            "Trackio project",
            partial(_read, storage, project, run),
        )
        for run in runs
    ]


def _client(place: str) -> Any:
    try:
        from trackio.sqlite_storage import SQLiteStorage
    except ImportError:
        raise not_installed(place, "Trackio's", "trackio") from None
    return SQLiteStorage


def _read(
    storage: Any, project: str, run: dict[str, str], path: Path, columns: Columns
) -> Iterator[Logged]:
    """Read the rows of one run."""
    try:
        rows = storage.get_logs(project, run["name"], run_id=run["id"])
        config = storage.get_run_config(project, run["name"], run_id=run["id"]) or {}
    except Exception as error:
        raise _refused(str(path), error) from error
    runs = TrackedRuns(path, columns, COUNTS)
    for number, row in enumerate(rows, start=1):
        cells = {key: cell for key, cell in row.items() if key not in ("step", "timestamp")}
        runs.add(number, cells, count=row["step"])
    own = {name: value for name, value in config.items() if name not in OF_TRACKIO}
    yield from runs.logged(
        labels={None: run["name"]}, settings={None: flat_settings(own)}, own_ids=True
    )


def _refused(place: str, error: Exception) -> SourceError:
    """Error in words that a user can act on."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
    return SourceError(
        f"Trackio's client failed ({type(error).__name__}: {said})",
        path=place,
        advice="Open it with 'trackio show', or install the client that this was made for: "
        "pip install -U 'grpo-advisor[trackio]'",
    )
