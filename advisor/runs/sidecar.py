"""``pilots.toml`` or ``pilots.csv``: the settings that logs do not hold."""

from __future__ import annotations

import csv
import fnmatch
import io
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from advisor.errors import InputError
from advisor.runs.columns import Columns, nearest, parse_columns
from advisor.runs.files import read_text
from advisor.runs.settings import KEYS, Setting, check_settings

NAMES = ("pilots.toml", "pilots.csv")

PLACES = ("id", "path", "columns")
"""Keys of an entry that place it, rather than set something."""


@dataclass(frozen=True)
class Entry:
    """Settings of the runs that one ``[[run]]`` table or CSV line names.

    Attributes
    ----------
    row : int
        One-based index of the table, or line of the CSV.
    path, id : str or None
        What it matches: a relative path, a folder or a glob; or a run's id.
    settings : dict of str to Setting
    columns : Columns
    """

    row: int
    path: str | None
    id: str | None
    settings: dict[str, Setting]
    columns: Columns

    @property
    def is_glob(self) -> bool:
        """Whether the path stands for several."""
        return self.path is not None and any(mark in self.path for mark in "*?[")


@dataclass(frozen=True)
class Sidecar:
    """A sidecar file.

    Attributes
    ----------
    path : Path
    defaults : dict of str to Setting
        For every run.
    columns : Columns
        Column map for every run whose entry has none.
    entries : tuple of Entry
    """

    path: Path
    defaults: dict[str, Setting]
    columns: Columns
    entries: tuple[Entry, ...]

    def for_path(self, paths: Iterable[Path], root: Path) -> list[Entry]:
        """Entries that name a file, its folder or a glob over it; the general ones first.

        Parameters
        ----------
        paths : iterable of Path
            The file, and others that belong to the same run.
        root : Path
            Folder that was read; paths count from it or from the sidecar's own folder.

        Returns
        -------
        entries : list of Entry
            At most one glob, then at most one exact entry, save those that also name an ``id``.

        Raises
        ------
        InputError
            Two entries of one kind name the file.
        """
        names = {
            name
            for path in paths
            for base in (self.path.parent, root)
            for name in _spellings(path, base)
        }
        globs = [e for e in self.entries if e.is_glob and _glob_matches(e, names)]
        exact = [
            e for e in self.entries if e.path and not e.is_glob and _normal(e.path) in names
        ]
        for found in (globs, [e for e in exact if e.id is None], _same_id(exact)):
            if len(found) > 1:
                raise InputError(
                    f"entries {found[0].row} and {found[1].row} both name '{found[1].path}'",
                    path=self.path,
                    row=found[1].row,
                    key="path",
                    advice="Keep one of them",
                )
        return globs + exact


def find_sidecar(log: Path, root: Path) -> Path | None:
    """Nearest sidecar beside a log or above it, up to the folder ``root``.

    Raises
    ------
    InputError
        A folder holds both kinds.
    """
    folder = log.parent
    while True:
        present = [folder / name for name in NAMES if (folder / name).is_file()]
        if len(present) > 1:
            raise InputError(
                "pilots.toml and pilots.csv stand in one folder",
                path=folder,
                advice="Keep one of them",
            )
        if present:
            return present[0]
        if folder == root or folder.parent == folder:
            return None
        folder = folder.parent


def read_sidecar(path: Path) -> Sidecar:
    """Read and check a sidecar.

    Raises
    ------
    InputError
        Not valid TOML or CSV, an unknown key, a value out of bounds, an entry that names no run.
    """
    text = read_text(path)
    if path.suffix == ".csv":
        return Sidecar(path, {}, Columns(), tuple(_csv_entries(text, path)))
    if path.suffix != ".toml":
        raise InputError(
            "a sidecar is a TOML or CSV file", path=path, advice="Name it pilots.toml or pilots.csv"
        )
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"this is not valid TOML ({error})",
            path=path,
            advice="Text needs quotes, and tables are written [defaults] and [[run]]",
        ) from None
    for table in document:
        if table not in ("defaults", "columns", "run"):
            raise InputError(
                "this table or key is not one that the package reads",
                path=path,
                key=table,
                advice=nearest(table, ("defaults", "columns", "run")),
            )
    defaults, columns = document.get("defaults", {}), document.get("columns", {})
    runs = document.get("run", [])
    for name, table, kind in (
        ("defaults", defaults, dict), ("columns", columns, dict), ("run", runs, list),
    ):  # fmt: skip
        if not isinstance(table, kind):
            raise InputError(
                f"'{name}' is not a table",
                path=path,
                key=name,
                advice="Write [defaults], [columns] and one [[run]] (two brackets) per run",
            )
    for place in PLACES:
        if place in defaults:
            raise InputError(
                "this key belongs to one run, not to all",
                path=path,
                key=place,
                advice="Move it to a [[run]] table" if place != "columns" else "Use [columns]",
            )
    return Sidecar(
        path,
        check_settings(defaults, path=path),
        parse_columns(columns, path=path),
        tuple(_entry(run, path, row) for row, run in enumerate(runs, start=1)),
    )


def _entry(given: Mapping[str, Any], path: Path, row: int) -> Entry:
    for place in ("id", "path"):
        value = given.get(place)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise InputError(
                f"{value!r} is not text", path=path, row=row, key=place, advice="Put it in quotes"
            )
    if given.get("path") is None and given.get("id") is None:
        raise InputError(
            "the entry names no run",
            path=path,
            row=row,
            key="path",
            advice="Add the log's path relative to this file, or the run's id",
        )
    columns = given.get("columns", {})
    if not isinstance(columns, dict):
        raise InputError(
            f"{columns!r} is no column map",
            path=path,
            row=row,
            key="columns",
            advice='Write columns = {reward = "...", step = "..."}',
        )
    unknown = next((key for key in given if key not in KEYS and key not in PLACES), None)
    if unknown is not None:
        raise InputError(
            "this key is not one that the package reads",
            path=path,
            row=row,
            key=unknown,
            advice=nearest(unknown, (*KEYS, *PLACES)),
        )
    settings = {key: value for key, value in given.items() if key not in PLACES}
    return Entry(
        row,
        given.get("path"),
        given.get("id"),
        check_settings(settings, path=path, row=row),
        parse_columns(columns, path=path, row=row),
    )


def _csv_entries(text: str, path: Path) -> list[Entry]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    entries = []
    try:
        for cells in reader:
            if None in cells:
                raise InputError(
                    "the row has more cells than the header",
                    path=path,
                    row=reader.line_num,
                    advice="Quote cells that contain a comma",
                )
            given: dict[str, Any] = {}
            for key, cell in cells.items():
                value = (cell or "").strip()
                if not value:
                    continue
                table, dot, name = key.strip().partition(".")
                if dot and table == "columns":
                    given.setdefault("columns", {})[name] = value
                else:
                    given[key.strip()] = value
            if given:
                entries.append(_entry(given, path, reader.line_num))
    except csv.Error as error:
        raise InputError(
            f"the table cannot be read ({error})", path=path, row=reader.line_num,
            advice="Write one run per line, with a header of keys",
        ) from None  # fmt: skip
    return entries


def _normal(path: str) -> str:
    return PurePath(path.replace("\\", "/")).as_posix()


def _spellings(path: Path, base: Path) -> list[str]:
    """Ways to name a file: whole, relative to a folder, or by a folder between the two."""
    spelled = [path.as_posix()]
    if path.is_relative_to(base):
        relative = path.relative_to(base)
        spelled += [relative.as_posix(), *(p.as_posix() for p in relative.parents if p.name)]
    return spelled


def _glob_matches(entry: Entry, names: Iterable[str]) -> bool:
    pattern = _normal(entry.path or "")
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _same_id(entries: list[Entry]) -> list[Entry]:
    ids = [entry.id for entry in entries if entry.id is not None]
    doubled = next((i for i in ids if ids.count(i) > 1), None)
    return [entry for entry in entries if doubled is not None and entry.id == doubled]
