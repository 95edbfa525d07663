"""Parquet files through pyarrow, which reads no more than is wanted and runs nothing."""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LogFile

SUFFIXES = (".parquet", ".pq")
MAGIC = b"PAR1"
SAFE = (14, 0, 1)
"""First version of pyarrow that does not unpickle what a file says (CVE-2023-47248)."""

SCALARS = ("integer", "floating", "boolean", "string", "large_string", "binary", "null")


class Columnar(NamedTuple):
    """An open file.

    Attributes
    ----------
    log : LogFile
    file : pyarrow.parquet.ParquetFile
    names, scalars : list of str
        Columns, and those that hold numbers or text.
    """

    log: LogFile
    file: Any
    names: list[str]
    scalars: list[str]


def open_stream(log: LogFile, limit: int = limits.MOST_PARQUET_BYTES_HELD) -> BinaryIO:
    """Seekable stream of a file, of the one on disk where it lies there as it is."""
    if log.is_packed:
        return io.BytesIO(log.read(limit))
    log.magic(4)  # a missing or unreadable file is a typed error here
    return log.opener()


def read_footer(stream: BinaryIO, log: LogFile) -> bytes:
    """Footer of a file, once its marks and its length hold."""
    try:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        start = stream.read(4)
        stream.seek(max(0, size - 8))
        end = stream.read(8)
        length = int.from_bytes(end[:4], "little")
        is_whole = size >= 12 and start == MAGIC == end[4:]
        if not is_whole or not 0 < length <= min(size - 12, limits.MOST_PARQUET_FOOTER_BYTES):
            raise _broken("it does not end as a Parquet file does", log)
        stream.seek(size - 8 - length)
        footer = stream.read(length)
        stream.seek(0)
    except OSError as error:
        raise _broken(str(error), log) from None
    return footer


def column_test(log: LogFile) -> Callable[[str], bool] | None:
    """Function that tells whether a file has a column of a name; None where the file is broken."""
    try:
        with open_stream(log, limits.MOST_PARQUET_BYTES_CLAIMED) as stream:
            footer = read_footer(stream, log)
    except InputError:
        return None

    def has(name: str) -> bool:
        # A name stands in the footer's list of columns behind its length.
        raw = name.encode()
        return len(raw) < 128 and bytes([len(raw)]) + raw in footer

    return has


def open_columnar(log: LogFile, stream: BinaryIO) -> Columnar:
    """Open a file whose footer holds."""
    read_footer(stream, log)
    arrow, parquet = _pyarrow(log)
    try:
        file = parquet.ParquetFile(stream, buffer_size=limits.BLOCK_BYTES)
        fields = list(file.schema_arrow)
        names = [str(field.name) for field in fields]
        scalars = [str(field.name) for field in fields if _is_scalar(arrow.types, field.type)]
        _refuse_large(file, log)
    except InputError:
        raise
    except _errors(arrow) as error:
        raise _broken(str(error), log) from None
    if len(set(names)) < len(names):
        raise _broken("two columns have one name", log)
    return Columnar(log, file, names, scalars)


def read_rows(columnar: Columnar, wanted: list[str]) -> Iterator[dict[str, Any]]:
    """Cells of each row that are not null, a batch of rows at a time."""
    arrow, _ = _pyarrow(columnar.log)
    if not wanted:
        return
    try:
        for batch in columnar.file.iter_batches(
            limits.PARQUET_BATCH_ROWS, columns=wanted, use_threads=False
        ):
            lists = [(name, batch.column(name).to_pylist()) for name in batch.schema.names]
            for row in range(batch.num_rows):
                yield {name: cells[row] for name, cells in lists if cells[row] is not None}
    except InputError:
        raise
    except _errors(arrow) as error:
        raise _broken(str(error), columnar.log) from None


def _refuse_large(file: Any, log: LogFile) -> None:
    rows = file.metadata.num_rows
    if rows > limits.MOST_PARQUET_ROWS:
        raise InputError(
            f"the file holds {rows:,} rows, more than any run logs",
            path=log.path,
            advice="Give the history of a run, one row per step",
        )
    # Asking a row group for its columns can end the process where their statistics are damaged.
    groups = range(file.metadata.num_row_groups)
    size = max((file.metadata.row_group(i).total_byte_size for i in groups), default=0)
    if size > limits.MOST_PARQUET_GROUP_BYTES:
        raise InputError(
            f"a row group unpacks to {size >> 20} MiB",
            path=log.path,
            advice="Write it again in smaller row groups, without texts",
        )


def _is_scalar(types: Any, kind: Any) -> bool:
    if types.is_dictionary(kind):  # categories of pandas
        kind = kind.value_type
    return any(getattr(types, f"is_{scalar}")(kind) for scalar in SCALARS)


def _pyarrow(log: LogFile) -> tuple[Any, Any]:
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        problem = "reading Parquet needs pyarrow, which is not installed"
    else:
        numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", str(arrow.__version__))
        if numbers is not None and tuple(map(int, numbers.groups())) >= SAFE:
            return arrow, parquet
        problem = f"pyarrow {arrow.__version__} can be made to run code by a Parquet file"
    raise InputError(
        problem,
        path=log.path,
        advice="Run 'pip install -U pyarrow', or export the history as CSV",
    )


def _errors(arrow: Any) -> tuple[type[BaseException], ...]:
    """What pyarrow raises for a file that is not as it should be."""
    own = cast("type[BaseException]", arrow.ArrowException)
    return (own, OSError, ValueError, TypeError, KeyError, IndexError, MemoryError, OverflowError)


def _broken(problem: str, log: LogFile) -> InputError:
    return InputError(
        f"the Parquet file cannot be read ({problem.splitlines()[0][:200]})",
        path=log.path,
        advice="Copy it again (it may have been cut while it was written)",
    )
