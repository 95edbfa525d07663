"""Parquet files through pyarrow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LogFile

SUFFIXES = (".parquet", ".pq")
SCALARS = ("integer", "floating", "boolean", "string", "large_string", "binary", "null")


def column_names(log: LogFile) -> list[str]:
    """Names of the columns of a file, from its footer; none where the file is broken."""
    try:
        with _opened(log) as file:
            return [str(name) for name in file.schema_arrow.names]
    except InputError:
        return []


def parquet_rows(log: LogFile, wanted: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
    """Cells of each row that are not null, of the columns wanted that hold numbers or text."""
    import pyarrow as arrow  # type: ignore[import-untyped]

    def is_scalar(kind: Any) -> bool:
        kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
        return any(getattr(arrow.types, f"is_{scalar}")(kind) for scalar in SCALARS)

    with _opened(log) as file:
        fields = [field for field in file.schema_arrow if wanted(field.name)]
        names = [str(field.name) for field in fields if is_scalar(field.type)]
        for batch in file.iter_batches(4096, columns=names, use_threads=False) if names else ():
            yield from (
                {name: cell for name, cell in row.items() if cell is not None}
                for row in batch.to_pylist()
            )


@contextmanager
def _opened(log: LogFile) -> Iterator[Any]:
    """Open a file; what pyarrow raises for a broken one becomes an `InputError`."""
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        with _stream(log) as stream:
            yield parquet.ParquetFile(stream)
    except InputError:
        raise
    except (arrow.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        raise InputError(
            f"the Parquet file cannot be read ({str(error).splitlines()[0][:200]})",
            path=log.path,
            advice="Copy it again (it may have been cut while it was written)",
        ) from None


def _stream(log: LogFile) -> BinaryIO:
    """Seekable stream: Parquet is read from its end."""
    if log.is_packed:
        return io.BytesIO(log.read(limits.MOST_PARQUET_BYTES_HELD))
    log.head(4)  # a missing or unreadable file is a typed error here
    return log.opener()
