"""Paths become pilot runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.logs.survey import Surveyor, known_formats
from advisor.run.pilot_run import PilotRun

PathLike = str | os.PathLike[str]


def read_runs(
    paths: PathLike | Iterable[PathLike],
    *,
    sidecar: PathLike | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> list[PilotRun]:
    """Read pilot runs from logs.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files, or folders and zip archives searched for logs at every depth.
    sidecar : path-like, optional
        ``pilots.toml`` or ``pilots.csv`` with the settings that logs do not hold. By default the
        nearest one beside a log or above it, up to the folder given.
    overrides : mapping, optional
        Settings for all runs; they come before the sidecar's, which come before those of config
        files beside a log and before what its metrics tell.
    columns : mapping, optional
        Column map for all files, for keys that no reader knows:
        ``{"reward": "train/acc", "step": "iteration", "step_unit": "refresh"}``.

    Returns
    -------
    runs : list of PilotRun
        Sorted by path, with unique ids.

    Raises
    ------
    InputError
        A log, sidecar entry or override is wrong, or no log was found. `advisor.survey` lists
        what cannot be read instead.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given or not all(os.fspath(path) for path in given):
        raise InputError("no path was given", advice="Give at least one pilot log or a folder")
    reading = Surveyor(
        None if sidecar is None else Path(sidecar), overrides, columns, is_strict=True
    )
    found = reading.survey([Path(path) for path in given])
    if not found.runs:
        shown = ", ".join(path.name for path, _ in found.unread[:5])
        raise InputError(
            f"no log was found (files seen: {shown or 'none'})",
            path=", ".join(str(path) for path in given[:3]),
            advice=f"Give a folder or file that holds one of: {known_formats()}",
        )
    return found.runs
