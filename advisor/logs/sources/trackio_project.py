"""Trackio: its client knows where the database of a project lies; that is read as a file is."""

from __future__ import annotations

from typing import Any

from advisor.errors import SourceError
from advisor.logfiles.find import LogCandidate
from advisor.logfiles.log_file import on_disk
from advisor.logs.sources.answers import not_installed


def candidates(project: str) -> list[LogCandidate]:
    """The database of a project of this machine, with the rows that a live run wrote last."""
    place = f"trackio:{project}"
    storage = _client(place)
    path = storage.get_project_db_path(project)
    if not path.is_file():
        known = ", ".join(sorted(storage.get_projects())[:8]) or "none"
        raise SourceError(
            f"Trackio has no project '{project}' on this machine (it has: {known})",
            path=place,
            advice="Check the name, and TRACKIO_DIR, the folder in which Trackio keeps them",
        )
    return [LogCandidate(on_disk(path), path.parent, True, path.parent)]


def _client(place: str) -> Any:
    try:
        from trackio.sqlite_storage import SQLiteStorage
    except ImportError:
        raise not_installed(place, "Trackio's", "trackio") from None
    return SQLiteStorage
