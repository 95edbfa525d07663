"""Outcomes as lines of JSON in a folder, one line per item, so that work goes on where it ended."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import IO

from advisor.engine.outcome import Outcome
from advisor.engine.shard import Shard
from advisor.errors import InputError, unwritable

STEM = "items"


def read_kept(folder: Path, hashes: Collection[str]) -> dict[str, Outcome]:
    """Final outcomes that a folder holds, by content hash; lines that break off are passed over.

    Parameters
    ----------
    folder : Path
        May not exist yet.
    hashes : collection of str
        Those that are asked for.

    Returns
    -------
    kept : dict of str to Outcome
    """
    found: dict[str, Outcome] = {}
    for path in sorted(folder.glob(f"{STEM}*.jsonl")):
        with _opened(path) as lines:
            for line in lines:
                try:
                    told = json.loads(line)
                    mark = told.pop("hash")
                    outcome = Outcome(**told)
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue  # a writer was killed within its line
                if mark in hashes and outcome.is_final:
                    found[mark] = outcome
    return found


def _opened(path: Path) -> IO[str]:
    try:
        return path.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"what is kept cannot be read ({error.strerror or error})",
            path=path,
            argument="keep",
            advice="Check its permissions, or give another folder",
        ) from error


class Keeper:
    """Appends outcomes to a file of a folder; with no folder it keeps nothing.

    Parameters
    ----------
    folder : Path or None
        Made where it is missing.
    shard : Shard or None
        Whose file it is.

    Raises
    ------
    InputError
        The folder cannot be written.
    """

    def __init__(self, folder: Path | None, shard: Shard | None) -> None:
        self._stream: io.RawIOBase | None = None
        if folder is None:
            return
        self._path = folder / f"{STEM}{shard.suffix if shard else ''}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._stream = self._path.open("a+b", buffering=0)
            self._end_line(self._path)
        except OSError as error:
            raise unwritable("what is done", error, self._path, "keep") from error

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def keep(self, content_hash: str, outcome: Outcome) -> None:
        """Write one line; it is on the disk when this returns.

        Raises
        ------
        InputError
            The disk is full, or not there any more. A line that breaks off is passed over later.
        """
        if self._stream is None:
            return
        line = json.dumps({"hash": content_hash, **vars(outcome)}, separators=(",", ":"))
        left = memoryview(line.encode() + b"\n")
        try:
            while left:  # what a full disk takes of it is less than all, and no error yet
                left = left[self._stream.write(left) :]
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise unwritable("what is done", error, self._path, "keep") from error

    def _end_line(self, path: Path) -> None:
        """End a line in which an earlier writer was killed."""
        assert self._stream is not None
        if size := path.stat().st_size:
            self._stream.seek(size - 1)
            if self._stream.read(1) != b"\n":
                self._stream.write(b"\n")
