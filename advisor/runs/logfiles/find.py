"""Which files to look at."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile, is_archive, on_disk, open_archive
from advisor.runs.logfiles.logged import Reader


@dataclass(frozen=True)
class LogCandidate:
    """A file that may hold a log."""

    log: LogFile
    root: Path
    is_named: bool
    sidecar_top: Path
    reader: Reader | None = None

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.log.path

    @cached_property
    def whole_path(self) -> Path:
        """Path from the root of the file system."""
        return self.path.resolve()


class Unread(NamedTuple):
    """A file that was not read, and why."""

    path: Path
    reason: str


def find_files(paths: Iterable[Path], unread: list[Unread] | None) -> list[LogCandidate]:
    """Files named, and all files below the folders and in the archives named, sorted, each once."""
    found: dict[Path, LogCandidate] = {}
    for path in paths:
        try:
            is_folder, is_file = path.is_dir(), path.is_file()
        except (OSError, ValueError):  # a name longer than the system allows, or with a NUL
            is_folder = is_file = False
        if is_folder:
            for file in _below(path):
                for log in _members(on_disk(file), unread):
                    found.setdefault(log.path.resolve(), LogCandidate(log, path, False, path))
        elif is_file:
            log = on_disk(path)
            top = path.resolve().parent.parent.parent
            for member in _members(log, unread):
                is_named = member is log
                root = path.parent if is_named else path
                found[member.path.resolve()] = LogCandidate(member, root, is_named, top)
        else:
            raise InputError(
                "there is no such file or folder",
                path=path,
                advice="Check the path, relative to the folder you are in",
            )
    return list(found.values())


def _below(folder: Path) -> list[Path]:
    """Plain files at every depth, without hidden ones."""
    files = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(place, name) for name in names if not name.startswith(".")]
    return sorted(path for path in files if path.is_file())


def _members(log: LogFile, unread: list[Unread] | None) -> list[LogFile]:
    try:
        return open_archive(log) if is_archive(log) else [log]
    except InputError as error:
        if unread is None:
            raise
        unread.append(Unread(log.path, error.problem))
        return []
