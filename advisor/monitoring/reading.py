"""Read a log that grows, also where it no longer agrees with the settings it began with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from advisor.errors import RateContradictionError
from advisor.runs import PilotRun, read_runs


def reader(
    *,
    sidecar: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Callable[[Path | str], list[PilotRun]]:
    """Make a function from a path, or a tracker's run, to its runs.

    Where the learning rate in the log leaves that of the settings, the log counts: the run is no
    pilot whose sidecar might be wrong, and just this is what a watcher wants to see.
    """

    def read(path: Path | str) -> list[PilotRun]:
        try:
            return read_runs(path, sidecar=sidecar, overrides=overrides, columns=columns)
        except RateContradictionError as error:
            logged = {**(overrides or {}), "learning_rate": error.logged}
            runs = read_runs(path, sidecar=sidecar, overrides=logged, columns=columns)
            return [run.with_updates(warnings=(*run.warnings, error.problem)) for run in runs]

    return read
