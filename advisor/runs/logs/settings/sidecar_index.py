"""Which sidecar speaks for which log, and which of its entries were matched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns, nearest
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.log_file import LogFile, on_disk
from advisor.runs.logs.rows.raw_run import RawRun
from advisor.runs.logs.settings.sidecar import NAMES, Entry, Sidecar, read_sidecar
from advisor.runs.logs.settings.stated_settings import Setting


class SidecarIndex:
    """The sidecars of all logs, each read once."""

    def __init__(self, given: Path | None) -> None:
        self._given = None if given is None else given.resolve()
        self._read: dict[Path, Sidecar] = {}
        self._used: set[tuple[Path, int]] = set()
        self._unnamed: set[Path] = set()
        self._nearby: dict[Path, LogFile | None] = {}
        self._named: dict[tuple[Path, tuple[Path, ...]], list[Entry]] = {}
        if self._given is not None:
            self._read[self._given] = read_sidecar(on_disk(self._given))

    def is_sidecar(self, path: Path) -> bool:
        """Whether a file is a sidecar rather than a log."""
        return path.name in NAMES or path.resolve() == self._given

    def is_used(self, path: Path) -> bool:
        """Whether a file is the sidecar of some log so far."""
        return path.resolve() in self._read

    def columns_of(self, candidate: LogCandidate) -> Columns:
        """Column map of a file: its entry's, else the sidecar's."""
        mapped = [entry.columns for entry in self._naming(candidate) if entry.columns]
        sidecar = self._sidecar(candidate)
        return mapped[-1] if mapped else sidecar.columns if sidecar else Columns()

    def names(self, candidate: LogCandidate) -> bool:
        """Whether an entry names this very file."""
        file = candidate.path.name
        return any(
            not entry.is_glob and entry.path is not None and Path(entry.path).name == file
            for entry in self._naming(candidate)
        )

    def settings_of(self, candidate: LogCandidate) -> dict[str, Setting]:
        """Settings of a file as a whole, before it is read."""
        sidecar = self._sidecar(candidate)
        settings = dict(sidecar.defaults) if sidecar else {}
        naming = self._naming(candidate)
        exact = sum(not entry.is_glob for entry in naming)
        for entry in naming:
            # Several entries with ids speak for several runs of the file, none for all of it.
            if entry.is_glob or entry.id is None or exact == 1:
                settings |= entry.settings
        return settings

    def for_run(
        self, candidate: LogCandidate, raw: RawRun, run_id: str, others: Sequence[Path]
    ) -> tuple[dict[str, Setting], str]:
        """Settings and id of a run: an entry may give another id to the only run of a file."""
        sidecar = self._sidecar(candidate)
        if sidecar is None:
            return {}, run_id
        is_one_of_several = raw.label is not None
        naming = [
            entry
            for entry in self._naming(candidate, others)
            if not is_one_of_several or entry.id is None or entry.id in (run_id, raw.label)
        ]
        naming += [e for e in sidecar.entries if e.path is None and e.id == run_id]
        # An entry for a whole file of runs is as general as a glob.
        general = [e for e in naming if e.is_glob or (is_one_of_several and e.id is None)]
        special = [e for e in naming if e not in general]
        settings = dict(sidecar.defaults)
        for entries in (general, special):
            if len(entries) > 1:
                both = " and ".join(str(entry.row) for entry in entries[:2])
                raise InputError(
                    f"entries {both} both name the run '{run_id}'",
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
        """Raise for an entry that matches nothing while some run has none: a typing error."""
        roots = {candidate.root.resolve() for candidate in files if not candidate.is_named}
        read_paths = {candidate.whole_path for candidate in files}
        for path, sidecar in self._read.items():
            is_whole = any(path.is_relative_to(root) for root in roots)
            bases = [path.parent, *roots]
            for entry in sidecar.entries:
                if path not in self._unnamed or (path, entry.row) in self._used:
                    continue
                is_read = False
                if _is_exact(entry):
                    there = [(base / str(entry.path)).resolve() for base in bases]
                    there = [place for place in there if place.exists()]
                    is_read = any(place in read_paths for place in there)
                    below = any(place.is_relative_to(root) for place in there for root in roots)
                    if there and not is_read and not below:
                        continue
                elif not is_whole:
                    continue
                by_id = entry.id is not None and (entry.path is None or is_read)
                allowed = ids if by_id else _relative(read_paths, bases)
                close = nearest(str(entry.id if by_id else entry.path), allowed)
                raise InputError(
                    f"no run has the id '{entry.id}'" if by_id else f"no log is '{entry.path}'",
                    path=path,
                    row=entry.row,
                    key="id" if by_id else "path",
                    advice=f"{close}, or remove the entry",
                )

    def _sidecar(self, candidate: LogCandidate) -> Sidecar | None:
        if self._given is not None:
            return self._read[self._given]
        folder = candidate.whole_path.parent
        if folder not in self._nearby:
            self._nearby[folder] = _nearest_sidecar(candidate.log, candidate.sidecar_top)
        nearby = self._nearby[folder]
        if nearby is None:
            return None
        path = nearby.path.resolve()
        if path not in self._read:
            self._read[path] = read_sidecar(nearby)
        return self._read[path]

    def _naming(self, candidate: LogCandidate, others: Iterable[Path] = ()) -> list[Entry]:
        """Entries whose path names a file: globs first, then exact ones."""
        sidecar = self._sidecar(candidate)
        key = (candidate.path, tuple(others))
        if sidecar is None or not sidecar.entries:
            return []
        if key in self._named:
            return self._named[key]
        paths = [candidate.whole_path, *(path.resolve() for path in others)]
        names = sidecar.names_of(paths, candidate.root.resolve())
        found = []
        for entry in sidecar.entries:
            named = entry.naming(names)
            if named is None and _is_exact(entry):
                is_there = (sidecar.path.parent / str(entry.path)).resolve() in paths
                named = entry if is_there else None
            found += [] if named is None else [named]
        self._named[key] = sorted(found, key=lambda entry: not entry.is_glob)
        return self._named[key]


def _is_exact(entry: Entry) -> bool:
    return entry.path is not None and not entry.is_glob


def _relative(paths: Iterable[Path], bases: Sequence[Path]) -> list[str]:
    return [p.relative_to(b).as_posix() for p in paths for b in bases if p.is_relative_to(b)]


def _nearest_sidecar(log: LogFile, top: Path) -> LogFile | None:
    """Nearest sidecar beside a log or above it, up to the folder ``top``."""
    # A relative path cannot be walked above its first folder.
    folder, top = log.path.resolve().parent, top.resolve()
    while True:
        present = [file for name in NAMES if (file := log.at(folder / name)) is not None]
        if len(present) > 1:
            raise InputError(
                "pilots.toml and pilots.csv stand in one folder",
                path=folder,
                advice="Keep one of them",
            )
        if present:
            return present[0]
        if folder in (top, folder.parent):
            return None
        folder = folder.parent
