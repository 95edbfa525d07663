"""``pilots.toml``: the settings that logs do not hold, and for which log."""

from __future__ import annotations

import fnmatch
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile, on_disk
from advisor.runs.logfiles.logged import Columns, LogCandidate, nearest, parse_columns
from advisor.runs.logs.located_run import RawRun
from advisor.runs.logs.stated_settings import KEYS, Setting, check_settings

NAMES = ("pilots.toml", "pilots.csv")
"""The second, of 1.0, is refused: no run may lose its settings in silence."""
TABLES: dict[str, type] = {"defaults": dict, "columns": dict, "run": list}

PLACES = ("id", "path", "columns")  # Keys of an entry that place it, rather than set something
SIDECAR = "settings of the runs (sidecar)"  # Why a file that was read is none of the logs


@dataclass(frozen=True)
class Entry:
    """Settings of the runs that one entry names."""

    row: int
    path: str | None
    id: str | None
    settings: dict[str, Setting]
    columns: Columns

    @property
    def has_marks(self) -> bool:
        """Whether the path can stand for several: a glob, or a name with such a character."""
        return self.path is not None and any(mark in self.path for mark in "*?[")


class Naming(NamedTuple):
    """Entries that name a file: as one of several, and it alone."""

    globs: list[Entry]
    exact: list[Entry]


@dataclass(frozen=True)
class Sidecar:
    """A sidecar file."""

    path: Path
    defaults: dict[str, Setting]
    columns: Columns
    entries: tuple[Entry, ...]

    def naming(self, paths: Sequence[Path], root: Path) -> Naming:
        """Entries that name a file below the folder that was read."""
        names = set()
        for path in paths:
            names.add(path.as_posix())
            for base in (self.path.parent, root):
                if path.is_relative_to(base):
                    relative = path.relative_to(base)
                    names |= {relative.as_posix(), *(p.as_posix() for p in relative.parents)}
        names.discard(".")
        naming = Naming([], [])
        for one in (entry for entry in self.entries if entry.path is not None):
            wanted = PurePath(str(one.path).replace("\\", "/")).as_posix()
            at = None if one.has_marks else (self.path.parent / str(one.path)).resolve()
            # A name that holds such a character comes before a glob.
            if wanted in names or at in paths:
                naming.exact.append(one)
            elif one.has_marks and any(fnmatch.fnmatchcase(name, wanted) for name in names):
                naming.globs.append(one)
        return naming


def read_sidecar(file: LogFile) -> Sidecar:
    """Read and check a sidecar."""
    path = file.path.resolve()
    wrong = partial(InputError, path=path)
    if not path.exists():
        advice = "Check the path, relative to the folder you are in"
        raise wrong("there is no such file", argument="sidecar", advice=advice)
    if path.is_dir():
        raise wrong("this sidecar is a folder", advice="Give the pilots.toml in it")
    if path.suffix != ".toml":
        advice = "Write pilots.toml: a [[run]] table with path and settings for each run"
        raise wrong("a sidecar is a TOML file", advice=advice)
    text = file.text(give="Write [defaults] or [[run]] tables in UTF-8, or remove the file")
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        problem = f"this is not valid TOML ({error})"
        advice = "Text needs quotes, and tables are written [defaults] and [[run]]"
        raise wrong(problem, row=int(line.group(1)) if line else None, advice=advice) from None
    for name, table in document.items():
        if name not in TABLES:
            problem = "this table or key is not one that the package reads"
            raise wrong(problem, key=name, advice=nearest(name, TABLES))
        if not isinstance(table, TABLES[name]):
            advice = "Write [defaults], [columns], and [[run]] (two brackets) for each run"
            raise wrong(f"'{name}' is not the table it should be", key=name, advice=advice)
    defaults = document.get("defaults", {})
    for key in PLACES:
        if key in defaults:
            advice = "Use [columns]" if key == "columns" else "Move it to a [[run]] table"
            raise wrong("this key belongs to one run, not to all", key=key, advice=advice)
    return Sidecar(
        path,
        check_settings(defaults, path=path),
        parse_columns(document.get("columns", {}), path=path),
        tuple(_entry(run, path, row) for row, run in enumerate(document.get("run", []), 1)),
    )


def _entry(given: Mapping[str, Any], path: Path, row: int) -> Entry:
    """Check one entry."""
    wrong = partial(InputError, path=path, row=row)
    if not isinstance(given, dict):
        raise wrong(f"{given!r} is not a table", key="run", advice="Write [[run]]")
    for place in ("id", "path"):
        value = given.get(place)
        is_name = isinstance(value, str) and value.strip() and "\0" not in value
        if value is not None and not is_name:
            raise wrong(f"{value!r} is not text", key=place, advice="Put it in quotes")
    settings = {key: value for key, value in given.items() if key not in PLACES}
    checked = check_settings(settings, path=path, row=row, known=(*KEYS, *PLACES))
    if given.get("path") is None and given.get("id") is None:
        advice = "Add the log's path relative to this file, or the run's id"
        raise wrong("the entry names no run", key="path", advice=advice)
    columns = given.get("columns", {})
    if not isinstance(columns, dict):
        advice = 'Write columns = {reward = "...", step = "..."}'
        raise wrong(f"{columns!r} is no column map", key="columns", advice=advice)
    columns = parse_columns(columns, path=path, row=row)
    return Entry(row, given.get("path"), given.get("id"), checked, columns)


class SidecarIndex:
    """The sidecars of all logs, each read once, and which of their entries were matched."""

    def __init__(self, given: Path | None) -> None:
        self._given = None if given is None else given.resolve()
        self.read: dict[Path, Sidecar] = {}
        self._used: set[tuple[Path, int]] = set()
        self._unnamed: set[Path] = set()
        self._nearby: dict[tuple[Path, Path], LogFile | None] = {}
        self._named: dict[tuple[Path, ...], Naming] = {}
        if self._given is not None:
            self.read[self._given] = read_sidecar(on_disk(self._given))

    def is_sidecar(self, path: Path) -> bool:
        """Whether a file is a sidecar rather than a log."""
        return path.name in NAMES or path.resolve() == self._given

    def columns_of(self, candidate: LogCandidate) -> Columns:
        """Column map of a file: its entry's, else the sidecar's."""
        sidecar, naming = self._naming(candidate)
        mapped = [one.columns for one in (*naming.globs, *naming.exact) if one.columns]
        return mapped[-1] if mapped else sidecar.columns if sidecar else Columns()

    def names(self, candidate: LogCandidate) -> bool:
        """Whether an entry names this very file."""
        exact = self._naming(candidate)[1].exact
        return any(Path(one.path or "").name == candidate.path.name for one in exact)

    def settings_of(self, candidate: LogCandidate) -> dict[str, Setting]:
        """Settings of a file as a whole, before it is read."""
        sidecar, (globs, exact) = self._naming(candidate)
        settings = dict(sidecar.defaults) if sidecar else {}
        # Several entries with ids speak for several runs of the file, none for all of it.
        for one in (*globs, *(one for one in exact if one.id is None or len(exact) == 1)):
            settings |= one.settings
        return settings

    def for_run(
        self, candidate: LogCandidate, raw: RawRun, run_id: str, others: Sequence[Path]
    ) -> tuple[dict[str, Setting], str]:
        """Settings and id of a run: an entry may give another id to the only run of a file."""
        sidecar, (general, special) = self._naming(candidate, others)
        if sidecar is None:
            return {}, run_id
        special = special + [e for e in sidecar.entries if e.path is None and e.id == run_id]
        if raw.label is not None:
            own = (None, run_id, raw.label)
            # An entry for a whole file of runs is as general as a glob.
            whole = [one for one in special if one.id is None]
            general = [one for one in (*general, *whole) if one.id in own]
            special = [one for one in special if one.id is not None and one.id in own]
        settings = dict(sidecar.defaults)
        for entries in (general, special):
            if len(entries) > 1:
                raise InputError(
                    f"entries {entries[0].row} and {entries[1].row} both name the run '{run_id}'",
                    path=sidecar.path,
                    row=entries[1].row,
                    key="path" if entries[1].path else "id",
                    advice="Keep one of them",
                )
            for entry in entries:
                settings |= entry.settings
                self._used.add((sidecar.path, entry.row))
        if not special:
            self._unnamed.add(sidecar.path)
        elif special[0].id is not None:
            run_id = special[0].id
        return settings, run_id

    def refuse_unmatched(self, files: Sequence[LogCandidate], ids: Sequence[str]) -> None:
        """Raise for an entry that matches nothing, where all that it may name was read."""
        roots = {candidate.root.resolve() for candidate in files if not candidate.is_named}
        read_paths = {candidate.whole_path for candidate in files}
        shown = ", ".join(ids[:20]) + (f" and {len(ids) - 20} more" if len(ids) > 20 else "")
        for path in sorted(self.read):
            is_read_whole = any(path.is_relative_to(root) for root in roots)
            if path not in self._unnamed and not is_read_whole:
                continue  # of one of several runs that it names
            bases = [path.parent, *roots]
            for entry in self.read[path].entries:
                if (path, entry.row) in self._used:
                    continue
                there = [path]
                if entry.path is not None and not entry.has_marks:
                    there = [(base / entry.path).resolve() for base in bases]
                    there = [place for place in there if os.path.exists(place)]  # of any length
                is_read = any(place in read_paths for place in there)
                is_below = any(place.is_relative_to(root) for place in there for root in roots)
                if there and not is_read and not is_below:
                    continue  # what lies outside the folders that were read was not asked for
                by_id = entry.id is not None and (entry.path is None or is_read)
                logs = [file for file in read_paths if not self.is_sidecar(file)]
                pairs = [(p, base) for p in logs for base in bases if p.is_relative_to(base)]
                allowed = ids if by_id else {p.relative_to(b).as_posix() for p, b in pairs}
                close = nearest(str(entry.id if by_id else entry.path), allowed)
                if entry.path in ids:
                    close = f"Write id = '{entry.path}', for it is the name of a run"
                raise InputError(
                    f"no run has the id '{entry.id}'" if by_id else f"no log is '{entry.path}'",
                    path=path,
                    row=entry.row,
                    key="id" if by_id else "path",
                    advice=f"{close} (runs there are: {shown}), or remove the entry",
                )

    def _naming(
        self, candidate: LogCandidate, others: Iterable[Path] = ()
    ) -> tuple[Sidecar | None, Naming]:
        """Sidecar of a file, and the entries whose path names it."""
        sidecar = self._sidecar(candidate)
        if sidecar is None:
            return None, Naming([], [])
        paths = (candidate.whole_path, *(path.resolve() for path in others))
        if paths not in self._named:
            self._named[paths] = sidecar.naming(paths, candidate.root.resolve())
        return sidecar, self._named[paths]

    def _sidecar(self, candidate: LogCandidate) -> Sidecar | None:
        if self._given is not None:
            return self.read[self._given]
        folders = candidate.path.parent, candidate.whole_path.parent
        if folders not in self._nearby:
            self._nearby[folders] = _nearest_sidecar(candidate)
        nearby = self._nearby[folders]
        if nearby is None:
            return None
        path = nearby.path.resolve()
        if path not in self.read:
            self.read[path] = read_sidecar(nearby)
        return self.read[path]


def _nearest_sidecar(candidate: LogCandidate) -> LogFile | None:
    """Nearest sidecar next to a log or above it, up to two folders above the one that was given."""
    log = candidate.log
    levels = 3 + max(0, len(log.path.parent.parts) - len(candidate.root.parts))
    # Next to a link before what it leads to.
    for start in dict.fromkeys((log.path.absolute().parent, candidate.whole_path.parent)):
        # A run of a tracker lies in no folder.
        is_place = log.archive is not None or start.is_dir()
        for folder in (start, *start.parents)[: levels if is_place else 0]:
            present = [file for name in NAMES if (file := log.at(folder / name)) is not None]
            if present:
                return present[-1]
    return None
