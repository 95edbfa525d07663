"""Readers of all log formats, and which of them reads a file: the first that claims it."""

from __future__ import annotations

import itertools
import re
from operator import itemgetter
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile, check_text
from advisor.runs.logfiles.logged import Columns, LogCandidate, Reader, Unread
from advisor.runs.logfiles.parsing import (
    DELIMITED,
    JSON_LINES,
    PARQUET,
    SUFFIXES,
    csv_rows,
    is_number,
)
from advisor.runs.logs.tables import json_runs, table
from advisor.runs.logs.trackers import notebook, tensorboard, wandb
from advisor.runs.trainers.keys import is_like_a_score, show_keys
from advisor.runs.trainers.registry import trainer_readers, trainers

NO_PARQUET = "Parquet is not read"
LOOKED_AT = 50  # rows of a table that may name its columns in one
LOGS = "a trainer's console, JSON or CSV, TensorBoard events or a W&B run"
AS_CSV = "Convert it: pandas.read_parquet('log.parquet').to_csv('log.csv', index=False)"


OWN: tuple[Reader, ...] = (
    *(tensorboard.READER, notebook.READER, wandb.STORE, wandb.HISTORY),
    *(table.RUNS, wandb.CHART, table.READER, json_runs.READER),
)
"""Formats of trackers, and tables that any program may write."""


def readers() -> list[Reader]:
    """Readers in the order in which they are asked: the surest claims first."""
    return sorted((*trainer_readers(), *OWN), key=lambda reader: reader.claim)


def choose_reader(candidate: LogCandidate, columns: Columns, *, is_named: bool) -> Reader | None:
    """Reader of a file; None for one of a folder that is no log."""
    log = candidate.log
    for reader in readers():
        if reader.claims(log):
            return reader
    mapped = columns.keys.get("reward", "")
    likely = {mapped, *map(str.strip, mapped.split(","))} if mapped else ()
    leaves = [re.split("[/.]", name)[-1].encode() for name in likely]  # of nested groups
    if not is_named and not any(leaf in log.head_text() for leaf in leaves):
        return None
    fallback = next((r for r in readers() if log.suffix in r.suffixes), None)
    if fallback is None and is_named:
        if log.suffix in PARQUET:
            raise InputError(NO_PARQUET, path=candidate.path, advice=AS_CSV)
        check_text(log.head(), candidate.path)
        if log.suffix == ".toml":
            raise is_settings(candidate.path)
        named = console_of(log)
        problem, advice = "this is not a log that any reader knows", "" if named else f"Give {LOGS}"
        raise InputError(named or problem, path=candidate.path, advice=advice)
    return fallback


def passed_over(candidate: LogCandidate) -> Unread:
    """A file of a folder that no reader claims, and why."""
    log, path = candidate.log, candidate.path
    try:
        if not log.head_text().strip():
            return Unread(path, "the file is empty", "other" if log.suffix == ".py" else "log")
    except InputError as error:
        return Unread(path, error.problem)
    if log.suffix in PARQUET:
        return Unread(path, f"{NO_PARQUET}. {AS_CSV}")
    if log.suffix in (".yaml", ".yml", ".toml") or log.name.endswith("config.json"):
        return Unread(path, "settings, not a log", "other")
    if problem := console_of(log) or _why_no_table(log):
        return Unread(path, problem)
    return Unread(path, "not a log that any reader knows", "other")


def _why_no_table(log: LogFile) -> str:
    """Which columns of numbers may hold the reward, if a file that no reader claims is a table."""
    if log.suffix not in (*DELIMITED, *JSON_LINES, ".json"):
        return ""
    is_csv = log.suffix in DELIMITED
    problem = "a table without a column that is known to hold a reward" * is_csv
    try:
        if is_csv:
            (_, header), *rows = itertools.islice(csv_rows(log, []), LOOKED_AT)
            cells: dict[str, Any] = dict(zip(header, rows[0][1], strict=False))
            if (long := table.long_columns(header)) is not None:
                at = itemgetter(*map(header.index, long))
                cells = {"step": "1"} | dict(at(row) for _, row in rows)
        else:
            first = re.search(rb"\{[^{}]*\}", log.start())
            cells = table.flat_row(first[0] if first else b"")
    except (InputError, ValueError, IndexError, RecursionError):  # damaged, or without rows
        return problem
    is_text = any(len(str(cell)) > 80 for cell in cells.values())  # of prompts and answers
    numbers = [key for key, cell in cells.items() if is_number(str(cell)) and not is_text]
    others = [key for key in numbers if not table.PATTERNS["step"].fullmatch(key.lower())]
    likely = [key for key in others if is_like_a_score(key)] or (others if others[1:] else [])
    if not likely or len(others) == len(numbers):
        return problem
    which = f"choose with --column reward=COLUMN one of {show_keys(likely)}"
    problem = problem or "not a log that any reader knows"
    return f"{problem}; {which}, or of columns that are runs all: reward=COLUMN,COLUMN"


def console_of(log: LogFile) -> str:
    """Which trainer's console a file is that no reader claims, and what of it is read."""
    if log.suffix not in SUFFIXES or log.suffix == ".md":  # which tells of one, at most
        return ""
    head = log.readable_head().decode("utf-8", "replace")
    found = (
        one.name for one in trainers() if one.console_sign and re.search(one.console_sign, head)
    )
    name = next(found, "")
    return name and (
        f"a console of {name}, in a form that is not read. Give the run's W&B run or export, its "
        "TensorBoard events or metrics.jsonl; or print 'step 12 | reward=0.25' for each step"
    )


def is_settings(path: Path) -> InputError:
    """Error for a sidecar given where a log belongs."""
    advice = "Give the logs, and this file with --sidecar (sidecar= in Python)"
    return InputError("this holds settings (a sidecar), not a log", path=path, advice=advice)
