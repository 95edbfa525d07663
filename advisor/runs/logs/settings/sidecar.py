"""``pilots.toml`` or ``pilots.csv``: the settings that logs do not hold."""

from __future__ import annotations

import csv
import fnmatch
import io
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns, nearest, parse_columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logs.settings.stated_settings import KEYS, Setting, check_settings

NAMES = ("pilots.toml", "pilots.csv")
TABLES: dict[str, type] = {"defaults": dict, "columns": dict, "run": list}

PLACES = ("id", "path", "columns")
"""Keys of an entry that place it, rather than set something."""


@dataclass(frozen=True)
class Entry:
    """Settings of the runs that one entry names."""

    row: int
    path: str | None
    id: str | None
    settings: dict[str, Setting]
    columns: Columns
    is_literal: bool = False

    @property
    def is_glob(self) -> bool:
        """Whether the path stands for several."""
        has_marks = self.path is not None and any(mark in self.path for mark in "*?[")
        return has_marks and not self.is_literal

    def naming(self, names: set[str]) -> Entry | None:
        """Return the entry if its path is one of the names of a file, or as a glob matches one."""
        if self.path is None:
            return None
        wanted = PurePath(self.path.replace("\\", "/")).as_posix()
        if wanted in names:
            return replace(self, is_literal=True)  # also where the name holds a mark of globs
        matches = self.is_glob and any(fnmatch.fnmatchcase(name, wanted) for name in names)
        return self if matches else None


@dataclass(frozen=True)
class Sidecar:
    """A sidecar file."""

    path: Path
    defaults: dict[str, Setting]
    columns: Columns
    entries: tuple[Entry, ...]

    def names_of(self, paths: Iterable[Path], root: Path) -> set[str]:
        """Ways in which an entry may name the files of a run below the folder that was read."""
        names = set()
        for path in paths:
            names.add(path.as_posix())
            for base in (self.path.parent, root):
                if path.is_relative_to(base):
                    relative = path.relative_to(base)
                    names |= {relative.as_posix(), *(p.as_posix() for p in relative.parents)}
        return names - {"."}


def read_sidecar(file: LogFile) -> Sidecar:
    """Read and check a sidecar."""
    path = file.path.resolve()
    if path.is_dir():
        raise InputError(
            "this sidecar is a folder", path=path, advice="Give the pilots.toml or pilots.csv in it"
        )
    text = file.text(give="Write [defaults] or [[run]] tables in UTF-8, or remove the file")
    if path.suffix == ".csv":
        return Sidecar(path, {}, Columns(), tuple(parse_csv_entries(text, path)))
    if path.suffix != ".toml":
        raise InputError(
            "a sidecar is a TOML or CSV file", path=path, advice="Name it pilots.toml or pilots.csv"
        )
    document = _parse_toml(text, path)
    defaults, columns = document.get("defaults", {}), document.get("columns", {})
    misplaced = next((key for key in defaults if key in PLACES), None)
    if misplaced is not None:
        raise InputError(
            "this key belongs to one run, not to all",
            path=path,
            key=misplaced,
            advice="Use [columns]" if misplaced == "columns" else "Move it to a [[run]] table",
        )
    return Sidecar(
        path,
        check_settings(defaults, path=path),
        parse_columns(columns, path=path),
        tuple(parse_entry(run, path, row) for row, run in enumerate(document.get("run", []), 1)),
    )


def _parse_toml(text: str, path: Path) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        raise InputError(
            f"this is not valid TOML ({error})",
            path=path,
            row=int(line.group(1)) if line else None,
            advice="Text needs quotes, and tables are written [defaults] and [[run]]",
        ) from None
    for name, table in document.items():
        if name not in TABLES:
            raise InputError(
                "this table or key is not one that the package reads",
                path=path,
                key=name,
                advice=nearest(name, TABLES),
            )
        if not isinstance(table, TABLES[name]):
            raise InputError(
                f"'{name}' is not the table it should be",
                path=path,
                key=name,
                advice="Write [defaults], [columns], and [[run]] (two brackets) for each run",
            )
    return document


def parse_entry(given: Mapping[str, Any], path: Path, row: int) -> Entry:
    """Check one entry."""
    if not isinstance(given, dict):
        raise InputError(
            f"{given!r} is not a table", path=path, row=row, key="run", advice="Write [[run]]"
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
    for place in ("id", "path"):
        value = given.get(place)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise InputError(
                f"{value!r} is not text", path=path, row=row, key=place, advice="Put it in quotes"
            )
    if "\0" in str(given.get("path")):
        raise InputError(
            "the path holds a NUL character, which no file's name can hold",
            path=path,
            row=row,
            key="path",
            advice="Write the log's path relative to this file again",
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
    settings = {key: value for key, value in given.items() if key not in PLACES}
    return Entry(
        row,
        given.get("path"),
        given.get("id"),
        check_settings(settings, path=path, row=row),
        parse_columns(columns, path=path, row=row),
    )


def parse_csv_entries(text: str, path: Path) -> list[Entry]:
    """Entries of a CSV sidecar; an empty cell sets nothing, ``columns.reward`` maps a column."""
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
                table, dot, name = key.strip().partition(".")
                value = (cell or "").strip()
                if value and dot and table == "columns":
                    given.setdefault("columns", {})[name] = value
                elif value:
                    given[key.strip()] = value
            if given:
                entries.append(parse_entry(given, path, reader.line_num))
    except csv.Error as error:
        raise InputError(
            f"the table cannot be read ({error})",
            path=path,
            row=reader.line_num,
            advice="Write one run per line, with a header of keys",
        ) from None
    if not entries:
        raise InputError(
            "the table has no rows below its header",
            path=path,
            row=1,
            advice="Write a header of keys (path, learning_rate, ...) and one run per line",
        )
    return entries
