"""What a reader hands over, and what a reader is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.table import Table


@dataclass(frozen=True)
class Logged:
    """One run as a file has it: its rows under the trainer's own keys.

    Attributes
    ----------
    table : Table
        Rows in the order of the file.
    label : str or None
        Set where a file holds several runs: what tells this one apart (its name or place).
    has_own_id : bool
        Whether ``label`` is a name that the log itself gives, rather than a place.
    framework : str or None
        Name of the `KeyTable` where the format tells it; by default its keys do.
    settings : mapping of str to object
        Settings that stand in the log itself, under the trainer's own names, flattened with dots.
    facts : mapping of str to object
        Settings in the package's names (``advisor.runs.logs.stated_settings.KEYS``).
    logging_steps, planned_steps : int or None
        Optimizer steps per row and of the whole run, where the log states or implies them.
    assumptions, warnings : tuple of str
    """

    table: Table
    label: str | None = None
    has_own_id: bool = False
    framework: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    logging_steps: int | None = None
    planned_steps: int | None = None
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Claim(IntEnum):
    """By what a reader knows its format; the surest sign is asked for first."""

    FILE = 1
    """A file name or first bytes that no other format has."""
    ROW = 2
    """Rows in a form that no other format has."""
    LINE = 3
    """Printed lines in a form that only one trainer prints."""
    DICT = 4
    """Printed dictionaries, which the reward functions of other trainers print too."""
    PAIRS = 5
    """Printed lines that count steps and state a reward."""
    TABLE = 6
    """Any table with a reward."""


class Reader(NamedTuple):
    """One log format; a trainer's own are listed in its `Trainer`, others in ``logs.readers``.

    Attributes
    ----------
    name : str
        What the format is called in messages.
    claims : callable (LogFile) -> bool
        Whether a file is of this format, from its name and its first bytes. Never raises for
        what the file holds.
    read : callable (sequence of LogFile, Columns) -> iterable of Logged
        Raises nothing but `InputError`.
    group : callable (LogFile) -> Path, optional
        Files of one group are one log and are read together; by default each is its own.
    suffixes : frozenset of str
        File endings that the reader tries when the user named a file and no reader claims it;
        its error then tells what the file lacks.
    claim : Claim
        Decides which reader is asked first.
    """

    name: str
    claims: Callable[[LogFile], bool]
    read: Callable[[Sequence[LogFile], Columns], Iterable[Logged]]
    group: Callable[[LogFile], Path] | None = None
    suffixes: frozenset[str] = frozenset()
    claim: Claim = Claim.FILE
