"""Stores that their tracker's own client reads: told by their files, each with its command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NoReturn

from advisor.errors import InputError
from advisor.runs.logfiles import parquet_file
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Reader
from advisor.runs.logfiles.parquet_file import column_names

SUFFIXES = (".db", ".sqlite", ".sqlite3")
SQLITE = b"SQLite format 3\0"
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
META = "meta.yaml"
RUN_ID = re.compile(rb"^run_(?:id|uuid):", re.MULTILINE)


def _is_mlflow_folder(log: LogFile) -> bool:
    """Whether a file describes a run or an experiment in a folder of MLflow."""
    if log.name != META:
        return False
    try:
        head = log.head()
    except InputError:
        return False
    return b"lifecycle_stage:" in head and b"experiment_id:" in head


def _mlflow_folder(log: LogFile) -> Path:
    """The folder in which the experiments lie, ``mlruns`` by default."""
    above = log.path.absolute().parents
    return above[min(2 if RUN_ID.search(log.head()) else 1, len(above) - 1)]


def _refuse_mlflow_folder(logs: Sequence[LogFile], columns: Columns) -> NoReturn:
    """Say how MLflow's client reads a folder."""
    folder = _mlflow_folder(logs[0])
    call = f"MLFLOW_ALLOW_FILE_STORE=true advisor inspect 'mlflow:{folder}#EXPERIMENT'"
    raise _refused(logs[0], "a folder of MLflow", "mlflow", call)


def _is_mlflow_database(log: LogFile) -> bool:
    """Whether a file is a database with MLflow's table of metrics."""
    return _defines(log, OF_MLFLOW)


def _refuse_mlflow_database(logs: Sequence[LogFile], columns: Columns) -> NoReturn:
    """Say how MLflow's client reads a database."""
    call = f"advisor inspect 'mlflow:sqlite:///{logs[0].path.absolute()}#EXPERIMENT'"
    raise _refused(logs[0], "a database of MLflow", "mlflow", call)


def _is_trackio_project(log: LogFile) -> bool:
    """Whether a file is a database of Trackio, or the copy of its rows in Parquet."""
    names = set(column_names(log)) if log.suffix in parquet_file.SUFFIXES else set()
    return _defines(log, OF_TRACKIO) or names >= COLUMNS_OF_TRACKIO


def _trackio_project(log: LogFile) -> Path:
    """Folder and name of a project, which its database shares with its copies."""
    return log.path.absolute().parent / PurePosixPath(log.name).stem


def _refuse_trackio_project(logs: Sequence[LogFile], columns: Columns) -> NoReturn:
    """Say how Trackio's client reads a project, or a copy of one."""
    log = logs[0]
    project = _trackio_project(log)
    folder = f"TRACKIO_DIR='{project.parent}'"
    call = f"{folder} advisor inspect 'trackio:{project.name}'"
    is_database = log.suffix in SUFFIXES or log.sibling(f"{project.name}.db") is not None
    what = "a project of Trackio" if is_database else "a copy of a project of Trackio"
    # Trackio puts a copy in the place of a database that lies beside it.
    call = call if is_database else f"{folder} python -c '{IMPORT}', then {call}"
    raise _refused(log, what, "trackio", call)


def _defines(log: LogFile, table: re.Pattern[bytes]) -> bool:
    """Whether a file is an SQLite database in whose first part a table is defined."""
    if log.suffix not in SUFFIXES:
        return False
    try:
        if log.head(len(SQLITE)) != SQLITE:
            return False
        return table.search(log.head(1 << 20)) is not None
    except InputError:
        return False


def _refused(log: LogFile, what: str, extra: str, call: str) -> InputError:
    """Error in one sentence, which a list of unread files shows as well."""
    first = "unpack it, then " if log.is_packed else ""
    return InputError(
        f"this is {what}, read by its own client: {first}pip install 'grpo-advisor[{extra}]', "
        f"then {call}",
        path=log.path,
    )


STORES: tuple[Reader, ...] = (
    Reader("MLflow folder", _is_mlflow_folder, _refuse_mlflow_folder, _mlflow_folder),
    Reader("MLflow database", _is_mlflow_database, _refuse_mlflow_database),
    Reader("Trackio project", _is_trackio_project, _refuse_trackio_project, _trackio_project),
)
"""They claim a store, so that nothing else reads a part of it, and refuse it with its command."""
