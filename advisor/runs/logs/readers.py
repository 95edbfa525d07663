"""Readers of all log formats, and which of them reads a file: the first that claims it."""

from __future__ import annotations

from pathlib import Path

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.log_file import check_text
from advisor.runs.logfiles.logged import Reader
from advisor.runs.logs.tables import json_runs, runs_jsonl, table
from advisor.runs.logs.trackers import notebook, tensorboard, wandb_csv, wandb_history
from advisor.runs.logs.trackers.stores import STORES
from advisor.runs.trainers.registry import trainer_readers

OWN: tuple[Reader, ...] = (
    tensorboard.READER,
    notebook.READER,
    wandb_history.STORE,
    wandb_history.HISTORY,
    wandb_history.PARQUET_HISTORY,
    runs_jsonl.READER,
    wandb_csv.READER,
    table.LONG,
    table.READER,
    json_runs.READER,
)
"""Formats of trackers, and tables that any program may write."""


def readers() -> list[Reader]:
    """Readers in the order in which they are asked: the surest claims first."""
    return sorted((*trainer_readers(), *STORES, *OWN), key=lambda reader: reader.claim)


def choose_reader(candidate: LogCandidate, columns: Columns, *, is_named: bool) -> Reader | None:
    """Reader of a file; None for one of a folder that is no log."""
    log = candidate.log
    for reader in readers():
        if reader.claims(log):
            return reader
    mapped = columns.keys.get("reward", "").encode()
    if not is_named and not (mapped and mapped in log.head_text()):
        return None
    fallback = next((r for r in readers() if log.suffix in r.suffixes), None)
    if fallback is None and is_named:
        check_text(log.head(), candidate.path)
        if log.suffix == ".toml":
            raise is_settings(candidate.path)
        problem, advice = "this is not a log that any reader knows", known_formats()
        raise InputError(problem, path=candidate.path, advice=f"Give one of: {advice}")
    return fallback


def why_no_log(candidate: LogCandidate) -> str:
    """Reason for which a file of a folder was passed over."""
    log = candidate.log
    try:
        if not log.head_text().strip():
            return "the file is empty"
    except InputError as error:
        return error.problem
    if log.suffix in (".yaml", ".yml", ".toml") or log.name.endswith("config.json"):
        return "settings, not a log"
    if log.suffix in (".csv", ".tsv"):
        return "a table without a column that is known to hold a reward"
    return "not a log that any reader knows"


def is_settings(path: Path) -> InputError:
    """Error for a sidecar given where a log belongs."""
    advice = "Give the logs, and this file with --sidecar (sidecar= in Python)"
    return InputError("this holds settings (a sidecar), not a log", path=path, advice=advice)


def known_formats() -> str:
    """Names of all formats, for messages."""
    names = (reader.name.partition(" (")[0] for reader in readers() if reader not in STORES)
    return ", ".join(dict.fromkeys(names))
