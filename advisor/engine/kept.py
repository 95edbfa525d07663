"""Outcomes as lines of JSON in a folder, one line per item, so that work goes on where it ended."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import IO

from advisor.engine.outcome import Outcome
from advisor.engine.shard import Shard
from advisor.errors import unwritable

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
        with path.open(encoding="utf-8", errors="replace") as lines:
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
        self._stream: IO[bytes] | None = None
        if folder is None:
            return
        path = folder / f"{STEM}{shard.suffix if shard else ''}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("a+b")
            self._end_line(path)
        except OSError as error:
            raise unwritable("what is done", error, path, "keep") from error

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def keep(self, content_hash: str, outcome: Outcome) -> None:
        """Write one line; it is on the disk when this returns."""
        if self._stream is None:
            return
        line = json.dumps({"hash": content_hash, **vars(outcome)}, separators=(",", ":"))
        self._stream.write(line.encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _end_line(self, path: Path) -> None:
        """End a line in which an earlier writer was killed."""
        assert self._stream is not None
        if size := path.stat().st_size:
            self._stream.seek(size - 1)
            if self._stream.read(1) != b"\n":
                self._stream.write(b"\n")
