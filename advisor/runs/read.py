"""A path becomes pilot runs: which files, which reader, which settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.book import SidecarBook
from advisor.runs.columns import Columns, parse_columns
from advisor.runs.files import check_text, in_utf8, read_head
from advisor.runs.find import Found, find_files, fold_checkpoints
from advisor.runs.merge import merge_run
from advisor.runs.naming import name_files
from advisor.runs.pilot_run import PilotRun
from advisor.runs.raw_run import RawRun, Reader
from advisor.runs.readers import runs_jsonl, table, trl
from advisor.runs.settings import Setting, check_settings

READERS: tuple[Reader, ...] = (
    Reader("TRL trainer_state.json", trl.claims, trl.read),
    Reader("JSONL with one run per line", runs_jsonl.claims, runs_jsonl.read),
    Reader(
        "table with a reward (CSV, JSONL or JSON list)", table.claims, table.read, table.SUFFIXES
    ),
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
    if not given or not all(os.fspath(path) for path in given):
        raise InputError("no path was given", advice="Give at least one pilot log or a folder")
    flags = check_settings(overrides or {})
    mapped = parse_columns(columns)
    book = SidecarBook(None if sidecar is None else Path(sidecar))
    files = find_files(Path(path) for path in given)
    raws: list[tuple[Found, RawRun]] = []
    for found in files:
        if book.is_sidecar(found.path):
            continue
        file_columns = mapped or book.columns_of(found)
        reader = choose_reader(found, file_columns, is_named=found.is_named or book.names(found))
        if reader is None:
            continue
        known = {key: s.value for key, s in (book.settings_of(found) | flags).items()}
        raws += [(found, raw) for raw in reader.read(found.path, file_columns, known)]
    for found in files:
        if found.is_named and book.is_sidecar(found.path) and not (raws and book.heard(found.path)):
            raise _is_settings(found.path)
    if not raws:
        shown = ", ".join(found.path.name for found in files[:5])
        raise InputError(
            f"no log was found (files seen: {shown or 'none'})",
            path=", ".join(str(path) for path in given[:3]),
            advice=f"Give a folder or file that holds one of: {_known_formats()}",
        )
    return _merge(raws, files, book, flags)


def choose_reader(found: Found, columns: Columns, *, is_named: bool) -> Reader | None:
    """Reader of a file.

    Parameters
    ----------
    found : Found
        The file.
    columns : Columns
        Its column map: a table that holds the mapped reward is a log.
    is_named : bool
        Whether the user named the file; then something must read it.

    Returns
    -------
    reader : Reader or None
        None for a file of a folder that is no log.

    Raises
    ------
    InputError
        A named file is empty, binary, or of no known format.
    """
    head = in_utf8(read_head(found.path))
    for reader in READERS:
        if reader.claims(found.path, head):
            return reader
    mapped = columns.keys.get("reward", "").encode()
    if not is_named and not (mapped and mapped in head):
        return None
    fallback = next((r for r in READERS if found.path.suffix in r.suffixes), None)
    if fallback is None and is_named:
        check_text(head, found.path)
        if found.path.suffix == ".toml":
            raise _is_settings(found.path)
        raise InputError(
            "this is not a log that any reader knows",
            path=found.path,
            advice=f"Give one of: {_known_formats()}",
        )
    return fallback


def _is_settings(path: Path) -> InputError:
    return InputError(
        "this holds settings (a sidecar), not a log",
        path=path,
        advice="Give the logs, and this file with --sidecar (sidecar= in Python)",
    )


def _known_formats() -> str:
    return "; ".join(reader.name for reader in READERS)


def _merge(
    raws: Sequence[tuple[Found, RawRun]],
    files: Sequence[Found],
    book: SidecarBook,
    flags: Mapping[str, Setting],
) -> list[PilotRun]:
    folded = fold_checkpoints(raws)
    kept = list(dict.fromkeys(found for found, _ in folded))
    names = dict(zip(kept, name_files(kept), strict=True))
    runs: dict[str, PilotRun] = {}
    for found, (raw, *shorter) in folded:
        run_id = names[found]
        if raw.label is not None:
            run_id = raw.label if raw.has_own_id else f"{run_id}:{raw.label}"
        settings, run_id = book.for_run(found, raw, run_id, [short.path for short in shorter])
        if run_id in runs:
            raise InputError(
                f"two runs have the id '{run_id}'; the other is in {runs[run_id].path}",
                path=raw.path,
                key="id",
                advice="Give each run another id",
            )
        runs[run_id] = merge_run(raw, run_id, {**settings, **flags})
    book.refuse_unheard(files, list(runs))
    return list(runs.values())
