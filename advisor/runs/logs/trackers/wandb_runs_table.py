"""W&B's table of runs as CSV, which holds the settings of the runs whose charts lie beside it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LogFile, on_disk

MARKS = frozenset({"Name", "State"})
"""Columns that every such table has."""

OF_THE_TABLE = frozenset(
    {"Name", "State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep", "ID", "Group"}
)


def settings_by_run(chart: LogFile) -> dict[str, dict[str, str]]:
    """Settings of each run by its display name, from tables in the folder of a chart."""
    found: dict[str, dict[str, str]] = {}
    for log in _siblings(chart):
        for name, settings in _read(log).items():
            if name in found:
                both = found[name].keys() & settings.keys()
                settings = {key: settings[key] for key in both if found[name][key] == settings[key]}
            found[name] = settings
    return found


def is_runs_table(log: LogFile) -> bool:
    """Whether a CSV is W&B's table of runs."""
    if log.suffix != ".csv":
        return False
    try:
        first = log.head_text().decode("utf-8", "replace").lstrip("\ufeff").splitlines()[:1]
    except InputError:
        return False
    return bool(first) and set(next(csv.reader(first), [])) >= MARKS


def _siblings(chart: LogFile) -> list[LogFile]:
    folder = chart.path.parent
    if chart.member_of is not None and folder.is_relative_to(chart.member_of.path):
        logs = [log for path, log in chart.member_of.members.items() if path.parent == folder]
    else:
        logs = [on_disk(path) for path in _csv_files(folder)]
    return [log for log in logs if log.path != chart.path and is_runs_table(log)]


def _csv_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix.lower() == ".csv")
    except OSError:
        return []


def _read(log: LogFile) -> Mapping[str, dict[str, str]]:
    """Settings by run; of a name with several rows those that are the same in all."""
    found: dict[str, dict[str, str]] = {}
    try:
        text = log.text(limit=limits.MOST_CONFIG_BYTES)
        for row in csv.DictReader(text.splitlines()):
            name = (row.get("Name") or "").strip()
            settings = {
                key: cell.strip()
                for key, cell in row.items()
                if key and key not in OF_THE_TABLE and isinstance(cell, str) and cell.strip()
            }
            if name in found:
                before = found[name]
                settings = {k: v for k, v in settings.items() if before.get(k) == v}
            if name:
                found[name] = settings
    except (InputError, csv.Error):
        return {}
    return found
