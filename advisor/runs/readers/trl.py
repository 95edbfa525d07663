"""TRL and every transformers trainer: ``trainer_state.json`` with its ``log_history``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.columns import Columns
from advisor.runs.files import Row, parse_json, read_text
from advisor.runs.raw_run import RawRun
from advisor.runs.rows import collect_run
from advisor.runs.series import cell_number

NAME = "trainer_state.json"


def claims(path: Path, head: bytes) -> bool:
    """Whether a file is a trainer state, by its name or its ``log_history``."""
    return path.name.endswith(NAME) or (path.suffix == ".json" and b'"log_history"' in head)


def read(path: Path, columns: Columns, known: Mapping[str, Any]) -> list[RawRun]:
    """Read the one run of a trainer state.

    Parameters
    ----------
    path : Path
        ``trainer_state.json`` of an output folder or of a checkpoint.
    columns : Columns
        Column map, empty as a rule.
    known : mapping
        What flags and sidecar say of the run.

    Returns
    -------
    runs : list of RawRun

    Raises
    ------
    InputError
        The file holds no ``log_history`` with rewards.
    """
    state = parse_json(read_text(path), path)
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list) or not all(isinstance(row, dict) for row in history):
        raise InputError(
            "the file has no list of logged rows",
            path=path,
            key="log_history",
            advice="Give the trainer_state.json that the trainer wrote",
        )
    if not history:
        raise InputError(
            "the run logged no row yet",
            path=path,
            key="log_history",
            advice="Lower logging_steps, or wait until the run has logged",
        )
    rows = [Row(number, cells) for number, cells in enumerate(history, start=1)]
    planned = _count(state.get("max_steps"))
    run = collect_run(
        rows,
        path,
        columns,
        known,
        logging_steps=_logging_steps(state, planned),
        planned_steps=planned,
    )
    if not any("kl" in row for row in history):
        # TRL computes and logs the KL term exactly when its coefficient is not zero.
        run = dataclasses.replace(run, facts={**run.facts, "kl_coefficient": 0.0})
    return [run]


def _logging_steps(state: Mapping[str, Any], planned: int | None) -> int | None:
    value = cell_number(state.get("logging_steps"))
    if value is not None and 0 < value < 1 and planned:  # a share of the run in transformers
        return max(1, math.ceil(value * planned))
    return _count(value)


def _count(value: Any) -> int | None:
    number = cell_number(value)
    return int(number) if number is not None and math.isfinite(number) and number >= 1 else None
