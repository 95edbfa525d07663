"""A path becomes pilot runs: which files, which reader, which settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.columns import Columns, nearest, parse_columns
from advisor.runs.files import read_head, read_text
from advisor.runs.find import Found, find_files, fold_checkpoints, name_files
from advisor.runs.merge import merge_run
from advisor.runs.pilot_run import PilotRun
from advisor.runs.raw_run import RawRun, Reader
from advisor.runs.readers import runs_jsonl, table, trl
from advisor.runs.settings import Setting, check_settings
from advisor.runs.sidecar import NAMES, Entry, Sidecar, find_sidecar, read_sidecar

READERS: tuple[Reader, ...] = (
    Reader("TRL trainer_state.json", trl.claims, trl.read),
    Reader("JSONL with one run per line", runs_jsonl.claims, runs_jsonl.read),
    Reader("table (CSV, JSONL or JSON list)", table.claims, table.read, table.SUFFIXES),
)
"""Log formats; the first that claims a file reads it, so the particular ones come first."""

PathLike = str | os.PathLike[str]


def read_runs(
    paths: PathLike | Iterable[PathLike],
    *,
    sidecar: PathLike | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> list[PilotRun]:
    """Read pilot runs from logs.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files, or folders searched for logs at every depth.
    sidecar : path-like, optional
        ``pilots.toml`` or ``pilots.csv`` with the settings that logs do not hold. By default the
        nearest one beside a log or above it, up to the folder given.
    overrides : mapping, optional
        Settings for all runs; they come before the sidecar's, which come before the log's.
    columns : mapping, optional
        Column map for all files, for keys that no reader knows:
        ``{"reward": "train/acc", "step": "iteration", "step_unit": "refresh"}``.

    Returns
    -------
    runs : list of PilotRun
        Sorted by path, with unique ids.

    Raises
    ------
    InputError
        A file, sidecar entry or override is wrong, or no log was found.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise InputError("no path was given", advice="Give at least one pilot log or a folder")
    flags = check_settings(overrides or {})
    mapped = parse_columns(columns)
    book = _SidecarBook(None if sidecar is None else Path(sidecar))
    raws: list[tuple[Found, RawRun]] = []
    files = find_files(Path(path) for path in given)
    for found in files:
        if found.path.name in NAMES or found.path == book.given:
            continue
        file_columns = mapped or book.columns_of(found)
        reader = _choose(found, file_columns, is_listed=bool(file_columns) and book.lists(found))
        if reader is None:
            continue
        known = {key: s.value for key, s in (book.settings_of(found) | flags).items()}
        raws += [(found, raw) for raw in reader.read(found.path, file_columns, known)]
    if not raws:
        _refuse_nothing(given, [found.path for found in files])
    runs = _merge(fold_checkpoints(raws), book, flags)
    book.refuse_unused(files)
    return runs


def _merge(
    folded: Sequence[tuple[Found, list[RawRun]]], book: _SidecarBook, flags: dict[str, Setting]
) -> list[PilotRun]:
    names = dict(
        zip(
            (singles := list({found.path: found for found, _ in folded}.values())),
            name_files(singles),
            strict=True,
        )
    )
    runs: dict[str, PilotRun] = {}
    for found, (raw, *shorter) in folded:
        default = names[found]
        if raw.label is not None:
            default = raw.label if raw.has_own_id else f"{default}:{raw.label}"
        settings, run_id = book.for_run(found, raw, default, [s.path for s in shorter])
        if run_id in runs:
            raise InputError(
                f"two runs have the id '{run_id}', the other is in {runs[run_id].path}",
                path=raw.path,
                key="id",
                advice="Give each run another id",
            )
        runs[run_id] = merge_run(raw, run_id, settings | flags)
    return list(runs.values())


def _choose(found: Found, columns: Columns, is_listed: bool) -> Reader | None:
    """Reader of a file; none for a file of a folder that is no log."""
    head = read_head(found.path)
    for reader in READERS:
        if reader.claims(found.path, head):
            return reader
    reward = columns.keys.get("reward", "").encode()
    may_be_log = found.is_named or is_listed or (reward and reward in head)
    if not may_be_log:
        return None
    fallback = next((r for r in READERS if found.path.suffix in r.suffixes), None)
    if fallback is None and found.is_named:
        read_text(found.path)  # an empty, binary or unreadable file says so itself
        raise InputError(
            "this is not a log that any reader knows",
            path=found.path,
            advice=f"Known: {'; '.join(reader.name for reader in READERS)}",
        )
    return fallback


def _refuse_nothing(given: Sequence[PathLike], seen: Sequence[Path]) -> None:
    shown = ", ".join(path.name for path in seen[:5]) or "no file"
    raise InputError(
        f"no log was found (seen: {shown})",
        path=", ".join(str(path) for path in given[:3]),
        advice=f"Give a folder that holds one of: {'; '.join(reader.name for reader in READERS)}",
    )


class _SidecarBook:
    """Sidecars by log, each read once."""

    def __init__(self, given: Path | None) -> None:
        self.given = given
        self._read: dict[Path, Sidecar] = {}
        self._used: set[tuple[Path, int]] = set()

    def of(self, found: Found) -> Sidecar | None:
        """Sidecar of a log."""
        # Found paths may be relative; above their first folder only resolved ones can be walked.
        path = self.given or find_sidecar(found.path.resolve(), found.sidecar_root.resolve())
        if path is None:
            return None
        path = path.resolve()
        if path not in self._read:
            self._read[path] = read_sidecar(path)
        return self._read[path]

    def _entries(self, found: Found, others: Iterable[Path] = ()) -> list[Entry]:
        sidecar = self.of(found)
        if sidecar is None:
            return []
        paths = [path.resolve() for path in (found.path, *others)]
        return sidecar.for_path(paths, found.root.resolve())

    def lists(self, found: Found) -> bool:
        """Whether an entry names the file."""
        return bool(self._entries(found))

    def columns_of(self, found: Found) -> Columns:
        """Column map of a file: its entry's, else the sidecar's."""
        mapped = [entry.columns for entry in self._entries(found) if entry.columns]
        sidecar = self.of(found)
        return mapped[-1] if mapped else sidecar.columns if sidecar else Columns()

    def settings_of(self, found: Found) -> dict[str, Setting]:
        """Settings of a file as a whole."""
        sidecar = self.of(found)
        settings = dict(sidecar.defaults) if sidecar else {}
        for entry in self._entries(found):
            if entry.id is None or entry.path is not None:
                settings |= entry.settings
        return settings

    def for_run(
        self, found: Found, raw: RawRun, default: str, others: Sequence[Path]
    ) -> tuple[dict[str, Setting], str]:
        """Settings and id of a run: defaults, then globs, then the entry that names it."""
        sidecar = self.of(found)
        if sidecar is None:
            return {}, default
        settings, run_id = dict(sidecar.defaults), default
        several = raw.label is not None
        by_path = [e for e in self._entries(found, others) if not several or e.id in (None, default)]
        by_id = [e for e in sidecar.entries if e.path is None and e.id == default]
        if len(by_id) > 1 or (by_id and any(not e.is_glob for e in by_path)):
            raise InputError(
                f"two entries name the run '{default}'",
                path=sidecar.path,
                row=by_id[-1].row,
                key="id",
                advice="Keep one of them",
            )
        for entry in (*by_path, *by_id):
            settings |= entry.settings
            self._used.add((sidecar.path, entry.row))
            if entry.id is not None and not several and not entry.is_glob:
                run_id = entry.id
        return settings, run_id

    def refuse_unused(self, files: Sequence[Found]) -> None:
        """Raise for an entry whose path exists nowhere: a typing error would drop its settings."""
        roots = {found.root.resolve() for found in files}
        for path, sidecar in self._read.items():
            for entry in sidecar.entries:
                if entry.path is None or entry.is_glob or (path, entry.row) in self._used:
                    continue
                bases = {path.parent, *roots}
                if any((base / entry.path).exists() for base in bases):
                    continue
                known = {found.path.resolve() for found in files}
                names = [p.relative_to(b).as_posix() for p in known for b in bases if p.is_relative_to(b)]
                raise InputError(
                    f"there is no log '{entry.path}'",
                    path=path,
                    row=entry.row,
                    key="path",
                    advice=nearest(entry.path, names),
                )
