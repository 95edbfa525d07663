"""SQLite files of trackers, opened so that nothing beside them is written and nothing hangs."""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.log_file import LogFile

MAGIC = b"SQLite format 3\0"
SUFFIXES = (".db", ".sqlite", ".sqlite3")
TABLE = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}


def holds_table(log: LogFile, definition: re.Pattern[bytes]) -> bool:
    """Whether a file is an SQLite database whose schema has a definition."""
    if log.suffix not in SUFFIXES:
        return False
    try:
        if not log.magic(16).startswith(MAGIC):
            return False
        if definition.search(_start(log)):
            return True
        # The first rows of a live database stand beside it until they are merged.
        ahead = _write_ahead(log)
        return ahead is not None and definition.search(_start(ahead)) is not None
    except InputError:
        return False


@contextmanager
def open_database(log: LogFile) -> Iterator[sqlite3.Connection]:
    """Open a database for reading."""
    ahead = _write_ahead(log)
    try:
        if not log.is_packed and ahead is None:
            # Immutable: SQLite then makes no file of locks or of shared memory beside it.
            uri = f"{log.path.resolve().as_uri()}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                yield _guarded(connection)
            return
        with tempfile.TemporaryDirectory(prefix="advisor-") as folder:
            copy = Path(folder, "log.db")
            _copy(log, copy)
            if ahead is not None:
                _copy(ahead, Path(folder, "log.db-wal"))
            with closing(sqlite3.connect(copy)) as connection:
                yield _guarded(connection)
    except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError, UnicodeError) as error:
        raise InputError(
            f"the database cannot be read ({error})",
            path=log.path,
            advice="Copy it again while no run writes to it",
        ) from None


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """Names of the columns of a plain table; nothing where it is none."""
    found = connection.execute(
        "SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)
    ).fetchall()
    # A view or a virtual table of that name may compute without end.
    if len(found) != 1 or found[0][0] != "table" or not TABLE.match(str(found[0][1])):
        return []
    return [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]


def _start(log: LogFile) -> bytes:
    with log.open() as stream:
        return stream.read(limits.SQLITE_SCHEMA_BYTES)


def _write_ahead(log: LogFile) -> LogFile | None:
    """File of rows that are not merged into a database yet."""
    beside = log.at(log.path.parent / f"{log.path.name}-wal")
    return beside if beside is not None and beside.magic(1) else None


def _copy(log: LogFile, path: Path) -> None:
    with log.open() as source, path.open("wb") as target:
        shutil.copyfileobj(source, target, limits.BLOCK_BYTES)
        if target.tell() > limits.MOST_SQLITE_BYTES_COPIED:
            raise InputError(
                f"the database is larger than {limits.MOST_SQLITE_BYTES_COPIED >> 20} MiB",
                path=log.path,
                advice="Unpack it, or stop the run that writes to it, and give the file itself",
            )


def _guarded(connection: sqlite3.Connection) -> sqlite3.Connection:
    end = time.monotonic() + limits.MOST_SQLITE_QUERY_SECONDS
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.MOST_SQLITE_VALUE_BYTES)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.set_authorizer(_only_reading)
    connection.set_progress_handler(
        lambda: time.monotonic() > end, limits.SQLITE_INSTRUCTIONS_PER_CHECK
    )
    return connection


def _only_reading(
    action: int, first: str | None, second: str | None, database: str | None, source: str | None
) -> int:
    is_schema = action == sqlite3.SQLITE_PRAGMA and first == "table_info"
    return sqlite3.SQLITE_OK if action in READING or is_schema else sqlite3.SQLITE_DENY
