"""Which files to look at, and what a reader of them is: given a column map, it hands over runs."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile, on_disk, open_archive
from advisor.runs.logfiles.table import Table
from advisor.runs.pilot_run import SERIES

STEP_UNITS = ("optimizer", "refresh")
OPTIONS = ("step", "step_unit", "filter", "eval_reward", "eval_filter")


@dataclass(frozen=True)
class Columns:
    """A column map."""

    keys: Mapping[str, str] = field(default_factory=dict)
    filter: Mapping[str, str] = field(default_factory=dict)
    eval_filter: Mapping[str, str] = field(default_factory=dict)
    step_unit: str | None = None

    def __bool__(self) -> bool:
        return bool(self.keys or self.filter or self.eval_filter or self.step_unit)


def parse_columns(
    columns: Mapping[str, Any] | None, *, path: Path | None = None, row: int | None = None
) -> Columns:
    """Check a column map."""

    def refuse(name: str, problem: str, advice: str) -> NoReturn:
        raise InputError(problem, path=path, row=row, key=f"columns.{name}", advice=advice)

    def parse_filter(name: str) -> dict[str, str]:
        conditions: dict[str, str] = {}
        for part in filter(str.strip, given.pop(name, "").split(",")):
            key, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not key:
                advice = f'Write for example {name} = "type=rollout"'
                refuse(name, f"'{part.strip()}' is not of the form key=value", advice)
            conditions[key] = value
        return conditions

    allowed = (*SERIES, *OPTIONS)
    given: dict[str, str] = {}
    for name, value in (columns or {}).items():
        if name not in allowed:
            problem = "this column is not one that the package reads"
            refuse(name, problem, nearest(name, allowed))
        if not isinstance(value, str) or not value.strip():
            problem = f"the column map needs the name of a key of the log, not {value!r}"
            refuse(name, problem, f'For example {name} = "train/{name}"')
        given[name] = value.strip()
    unit = given.pop("step_unit", None)
    if unit is not None and unit not in STEP_UNITS:
        advice = "Use 'optimizer' (optimizer steps) or 'refresh' (batches of rollouts)"
        refuse("step_unit", f"'{unit}' is no unit of steps", advice)
    kept, evaluated = parse_filter("filter"), parse_filter("eval_filter")
    return Columns(given, kept, evaluated, unit)


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Advice that names the closest allowed name, or all of them where none is close."""
    names = sorted(allowed)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"The nearest is '{close[0]}'"
    more = f" or {len(names) - 30} more" if len(names) > 40 else ""
    return f"Use one of {', '.join(names[: 30 if more else 40])}{more}"


@dataclass(frozen=True)
class Logged:
    """One run as a file has it: its rows in the order of the file, under the trainer's keys."""

    table: Table
    # What tells this run apart where a file holds several (its name or place), and whether that is
    # a name which the log itself gives.
    label: str | None = None
    has_own_id: bool = False
    # Name of the `KeyTable` where the format tells it; by default its keys do.
    framework: str | None = None
    # Settings that stand in the log itself, under the trainer's own names, flattened with dots.
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Settings in the package's names (``advisor.runs.logs.stated_settings.KEYS``).
    facts: Mapping[str, Any] = field(default_factory=dict)
    # Optimizer steps per row and of the whole run, where the log states or implies them.
    logging_steps: int | None = None
    planned_steps: int | None = None
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Claim(IntEnum):
    """By what a reader knows its format; the surest sign is asked for first."""

    FILE = 1  # a file name or first bytes that no other format has
    ROW = 2  # rows in a form that no other format has
    LINE = 3  # printed lines in a form that only one trainer prints
    DICT = 4  # printed dictionaries, which the reward functions of other trainers print too
    PAIRS = 5  # printed lines that count steps and state a reward
    TABLE = 6  # any table with a reward


class Reader(NamedTuple):
    """One log format; a trainer's own are listed in its `Trainer`, others in ``logs.readers``."""

    # What the format is called in messages.
    name: str
    # Whether a file is of this format, from its name and its first bytes. Never raises for what
    # the file holds.
    claims: Callable[[LogFile], object]
    # Raises nothing but `InputError`.
    read: Callable[[Sequence[LogFile], Columns], Iterable[Logged]]
    # Files of one group are one log and are read together; by default each is its own.
    group: Callable[[LogFile], Path] | None = None
    # File endings that the reader tries when the user named a file and no reader claims it; its
    # error then tells what the file lacks.
    suffixes: frozenset[str] = frozenset()
    # Decides which reader is asked first.
    claim: Claim = Claim.FILE


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
            advice = "Check the path, relative to the folder you are in"
            raise InputError("there is no such file or folder", path=path, advice=advice)
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
        is_archive = log.suffix == ".zip" and not log.is_packed and log.head(4) == b"PK\x03\x04"
        return open_archive(log) if is_archive else [log]
    except InputError as error:
        if unread is None:
            raise
        unread.append(Unread(log.path, error.problem))
        return []
