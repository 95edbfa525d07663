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
    claims: Callable[[LogFile], bool]
    # Raises nothing but `InputError`.
    read: Callable[[Sequence[LogFile], Columns], Iterable[Logged]]
    # Files of one group are one log and are read together; by default each is its own.
    group: Callable[[LogFile], Path] | None = None
    # File endings that the reader tries when the user named a file and no reader claims it; its
    # error then tells what the file lacks.
    suffixes: frozenset[str] = frozenset()
    # Decides which reader is asked first.
    claim: Claim = Claim.FILE
