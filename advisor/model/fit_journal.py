"""Attempts of a fit that goes on: kept on disk, so that one that is killed starts after the last.

What is kept is found again by a hash of all that a fit turns on, and removed once it has ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from advisor._version import VERSION
from advisor.errors import StudyError
from advisor.model.posterior import Posterior
from advisor.run.digest import run_digest
from advisor.run.pilot_run import PilotRun
from advisor.run.progress import LASTING, Progress
from advisor.run.saving import DRAFT, write_whole
from advisor.run.shown import counted

MARK = "fit-"
"""How names of what is kept begin: nothing else in the folder is touched."""

HASH = 16


def key_of(runs: Sequence[PilotRun], *asked: str) -> str:
    """Hash of runs, of all that was asked, and of the version: another fit has another one."""
    told = json.dumps([VERSION, [run_digest(run) for run in runs], asked])
    return hashlib.sha256(told.encode()).hexdigest()[:HASH]


def folder_beside(out: Path) -> Path:
    """Folder of the attempts of a fit whose result goes to a file or folder."""
    return out.parent / f".{out.name}.fit"


class FitJournal:
    """Attempts of one fit in a folder; without a folder it keeps nothing.

    Parameters
    ----------
    folder : Path or None
        Made where it is missing.
    key : str
        From :func:`key_of`.
    tell : callable
        Told where something cannot be kept.
    """

    def __init__(self, folder: Path | None, key: str, tell: Progress) -> None:
        self._folder, self._key, self._tell = folder, key, tell
        self.rung = 0
        """Place of the preset among those that are tried."""
        if folder is None:
            return
        found = self._files()
        own = [file for file in found if file.name.startswith(f"{MARK}{key}-")]
        for file in set(found) - set(own):  # of other logs or settings, or of another version
            with contextlib.suppress(OSError):
                file.unlink()
        if own:
            many = f"{counted(len(own), 'attempt')} {'is' if len(own) == 1 else 'are'}"
            tell(
                LASTING[1],
                None,
                f"a fit of the same logs and settings was ended: {many} done and kept in "
                f"{folder}, and the fit goes on from there",
            )

    def kept(self, attempt: int) -> Posterior | None:
        """What an attempt gave, where it was kept and is whole."""
        if self._folder is None:
            return None
        file = self._file(attempt)
        if not file.is_file():
            return None
        try:
            return Posterior.load(file)
        except StudyError:
            return None

    def keep(self, attempt: int, posterior: Posterior) -> None:
        """Write what an attempt gave; it is on the disk when this returns."""
        if self._folder is None:
            return
        try:
            write_whole(self._file(attempt), posterior.to_bytes())
        except OSError as error:
            self._tell("Not kept", None, f"attempt {attempt + 1}: {error.strerror or error}")

    def end(self) -> None:
        """Remove what was kept: the fit has its answer."""
        if self._folder is None:
            return
        for file in self._files():
            with contextlib.suppress(OSError):
                file.unlink()
        with contextlib.suppress(OSError):  # not made, or something else lies in it
            self._folder.rmdir()

    def _file(self, attempt: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{MARK}{self._key}-{self.rung}-{attempt}.nc"

    def _files(self) -> list[Path]:
        """All that fits left in the folder, with drafts of killed writers."""
        assert self._folder is not None
        return [*self._folder.glob(f"{MARK}*.nc"), *self._folder.glob(f".{MARK}*{DRAFT}")]
