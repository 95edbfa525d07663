"""Parquet copies of Trackio's database, as its Spaces and data sets keep them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.columns import Columns
from advisor.logfiles.log_file import LogFile
from advisor.logfiles.logged import Logged
from advisor.logfiles.parquet_file import Columnar, open_columnar, open_stream, read_rows
from advisor.logs.trackers.tracker import (
    COUNTERS,
    TrackedRuns,
    flat_settings,
    is_counter,
    json_object,
    run_name,
)
from advisor.logs.trackers.trackio import COUNTS, OF_TRACKIO, tell_apart
from advisor.trainers.keys import kept_keys

NEEDED = ("run_name", "timestamp", "step")
OWN = frozenset(
    {
        *("id", "run_id", "run_name", "timestamp", "log_id", "space_id", "metrics", "created_at"),
        *OF_TRACKIO,
    }
)
"""Columns that Trackio adds to the metrics and to the configuration."""


def read(columnar: Columnar, columns: Columns) -> Iterator[Logged]:
    """Read the runs of a project."""
    log = columnar.log
    runs = TrackedRuns(log.path, columns, COUNTS)
    keeps = kept_keys(columns)
    names: dict[str, str] = {}
    wanted = [
        name
        for name in columnar.scalars
        if keeps(name) or is_counter(name) or name in (*COUNTERS, "run_id", "run_name", "metrics")
    ]
    for number, cells in enumerate(read_rows(columnar, wanted), start=1):
        run, count = _identity(cells), cells.pop("step", None)
        names[run] = run_name(cells.get("run_name")) or "unnamed"
        # The first copies kept the metrics of a row as JSON.
        packed = cells.get("metrics")
        metrics = (json_object(packed) if isinstance(packed, str | bytes) else None) or {}
        plain = {key: cell for key, cell in cells.items() if key not in OWN}
        runs.add(number, {**metrics, **plain}, count=count, run=run)
    for tracked in runs.runs.values():
        tracked.seen(name for name in columnar.names if name not in OWN and name != "step")
    yield from runs.logged(labels=tell_apart(names), settings=_settings(log))


def _identity(cells: dict[str, Any]) -> str:
    return run_name(cells.get("run_id")) or run_name(cells.get("run_name")) or ""


def _settings(log: LogFile) -> dict[str | None, dict[str, Any]]:
    stem = PurePosixPath(log.name).stem
    for name in (f"{stem}_configs.parquet", "aux/configs.parquet"):
        beside = log.at(log.path.parent / name)
        if beside is None:
            continue
        try:
            with open_stream(beside) as stream:
                columnar = open_columnar(beside, stream)
                rows = list(islice(read_rows(columnar, columnar.names), limits.MOST_RUNS_PER_FILE))
        except InputError:
            return {}
        return {
            _identity(row): flat_settings({k: v for k, v in row.items() if k not in OWN})
            for row in rows
        }
    return {}
