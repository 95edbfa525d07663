"""Stores that their tracker's own client reads: told by their files, each with its command."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import NoReturn

from advisor.errors import InputError
from advisor.runs.logfiles import limits, parquet_file
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Reader

OF_MLFLOW = re.compile(
    rb"CREATE TABLE (?:IF NOT EXISTS )?[\"`]?metrics[\"`]?\s*\([^;]{0,400}\brun_uuid\b"
)
OF_TRACKIO = re.compile(
    rb"CREATE TABLE (?:IF NOT EXISTS )?\"?metrics\"?\s*\([^()]{0,600}\brun_name\b[^()]{0,200}"
    rb"\bmetrics TEXT"
)
COLUMNS_OF_TRACKIO = {"id", "run_name", "timestamp", "step"}
"""Columns of a copy of Trackio's table, beside a column for each metric."""

IMPORT = "from trackio.sqlite_storage import SQLiteStorage as s; s.import_from_parquet()"


def _is_mlflow_folder(log: LogFile) -> bool:
    """Whether a file describes a run or an experiment in a folder of MLflow."""
    if log.name != "meta.yaml":
        return False
    try:
        return b"lifecycle_stage:" in log.head() and b"experiment_id:" in log.head()
    except InputError:
        return False


def _mlflow_folder(log: LogFile) -> Path:
    """The folder in which the experiments lie, ``mlruns`` by default."""
    above = log.path.absolute().parents
    is_run = re.search(rb"^run_(?:id|uuid):", log.head(), re.MULTILINE)
    return above[min(2 if is_run else 1, len(above) - 1)]


def _defines(table: re.Pattern[bytes]) -> Callable[[LogFile], bool]:
    """Test of whether a file is an SQLite database in whose first part a table is defined."""

    def test(log: LogFile) -> bool:
        if log.suffix not in (".db", ".sqlite", ".sqlite3"):
            return False
        try:
            head = log.head(limits.BLOCK_BYTES)
        except InputError:
            return False
        return head.startswith(b"SQLite format 3\0") and table.search(head) is not None

    return test


def _is_trackio_project(log: LogFile) -> bool:
    """Whether a file is a database of Trackio, or the copy of its rows in Parquet."""
    if log.suffix in parquet_file.SUFFIXES:
        return set(parquet_file.column_names(log)) >= COLUMNS_OF_TRACKIO
    return _defines(OF_TRACKIO)(log)


def _trackio_project(log: LogFile) -> Path:
    """Folder and name of a project, which its database shares with its copies."""
    return log.path.absolute().parent / PurePosixPath(log.name).stem


def _of_mlflow_folder(log: LogFile) -> str:
    inspect = f"advisor inspect 'mlflow:{_mlflow_folder(log)}#EXPERIMENT'"
    return f"MLFLOW_ALLOW_FILE_STORE=true {inspect}"


def _of_mlflow_database(log: LogFile) -> str:
    return f"advisor inspect 'mlflow:sqlite:///{log.path.absolute()}#EXPERIMENT'"


def _of_trackio_project(log: LogFile) -> str:
    project = _trackio_project(log)
    folder = f"TRACKIO_DIR='{project.parent}'"
    call = f"{folder} advisor inspect 'trackio:{project.name}'"
    is_copy = log.suffix in parquet_file.SUFFIXES and log.sibling(f"{project.name}.db") is None
    # Trackio puts a copy in the place of a database that lies beside it.
    return f"{folder} python -c '{IMPORT}', then {call}" if is_copy else call


def _store(
    name: str,
    claims: Callable[[LogFile], bool],
    call: Callable[[LogFile], str],
    group: Callable[[LogFile], Path] | None = None,
) -> Reader:
    def refuse(logs: Sequence[LogFile], columns: Columns) -> NoReturn:
        tracker, _, kind = name.partition(" ")
        first = "unpack it, then " if logs[0].is_packed else ""
        raise InputError(
            f"this is a {kind} of {tracker}, read by its own client: {first}pip install "
            f"'grpo-advisor[{tracker.lower()}]', then {call(logs[0])}",
            path=logs[0].path,
        )

    return Reader(name, claims, refuse, group)


STORES: tuple[Reader, ...] = (
    _store("MLflow folder", _is_mlflow_folder, _of_mlflow_folder, _mlflow_folder),
    _store("MLflow database", _defines(OF_MLFLOW), _of_mlflow_database),
    _store("Trackio project", _is_trackio_project, _of_trackio_project, _trackio_project),
)
"""They claim a store, so that nothing else reads a part of it, and refuse it with its command."""
