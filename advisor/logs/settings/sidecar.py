"""``pilots.toml`` or ``pilots.csv``: the settings that logs do not hold."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.logfiles.columns import Columns, nearest, parse_columns
from advisor.logfiles.log_file import LogFile
from advisor.logs.settings.entries import PLACES, Entry, parse_csv_entries, parse_entry
from advisor.logs.settings.setting_keys import Setting, check_settings

NAMES = ("pilots.toml", "pilots.csv")
TABLES: dict[str, type] = {"defaults": dict, "columns": dict, "run": list}


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

    def names_of(self, paths: Iterable[Path], root: Path) -> set[str]:
        """Ways in which an entry may name a file.

        Parameters
        ----------
        paths : iterable of Path
            The file, and others that belong to the same run.
        root : Path
            Folder that was read.

        Returns
        -------
        names : set of str
            Whole; relative to the sidecar or to ``root``; or a folder between the two.
        """
        names = set()
        for path in paths:
            names.add(path.as_posix())
            for base in (self.path.parent, root):
                if path.is_relative_to(base):
                    relative = path.relative_to(base)
                    names |= {relative.as_posix(), *(p.as_posix() for p in relative.parents)}
        return names - {"."}


def find_sidecar(log: LogFile, top: Path) -> LogFile | None:
    """Nearest sidecar beside a log or above it, up to the folder ``top``.

    Raises
    ------
    InputError
        A folder holds both kinds.
    """
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


def read_sidecar(file: LogFile) -> Sidecar:
    """Read and check a sidecar.

    Raises
    ------
    InputError
        Not valid TOML or CSV, an unknown key, a value out of bounds, an entry that names no run.
    """
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
