"""What a transformers trainer logs, and the ``trainer_state.json`` in which it keeps it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.console_text import is_number
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Columns, Logged, Reader
from advisor.runs.logfiles.parsing import cell_number, json_list
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.keys import kept_keys

SUMMARY_KEY = "train_runtime"
"""Key of the row that closes a run."""

OF_SUMMARY = ("train_", "total_flos", "epoch", "step")
"""Beginnings of that row's own keys; TRL adds to it the metrics that no other row has taken: the
mean reward of fewer steps than a row averages."""

COMPANIONS = frozenset({"epoch", "learning_rate", "grad_norm", "reward_std", "kl"})
"""Keys of which one stands next to the reward of a logged row, also where it has no loss."""


def is_event(cells: Mapping[str, str]) -> bool:
    """Whether a dict is what a trainer logs, rather than some other that was printed."""
    if is_number(cells.get("loss")) or SUMMARY_KEY in cells or is_evaluation(cells):
        return True
    # A reward alone is no event: reward functions print what they found of a single completion.
    return is_number(cells.get("reward")) and not COMPANIONS.isdisjoint(cells)


def is_evaluation(cells: Mapping[str, str]) -> bool:
    """Whether a dict is what a trainer logs of an evaluation."""
    return any(key.startswith("eval_") and is_number(value) for key, value in cells.items())


def claims(log: LogFile) -> bool:
    """Whether a file is a trainer state, by its name or its ``log_history``."""
    return log.name.endswith("trainer_state.json") or (
        log.suffix == ".json" and b'"log_history"' in log.head()
    )


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of a trainer state."""
    (log,) = logs
    builder = TableBuilder(log.path, kept_keys(columns))
    rows, state = json_list(log, "log_history")
    has_kl = False
    for number, cells in rows:
        has_kl = has_kl or "kl" in cells
        if SUMMARY_KEY in cells:
            cells = {key: cell for key, cell in cells.items() if key.startswith(OF_SUMMARY)}
        builder.add(number, cells)
    if not len(builder):
        raise InputError(
            "the run logged no row yet",
            path=log.path,
            key="log_history",
            advice="Lower logging_steps, or wait until the run has logged",
        )
    planned = _count(state.get("max_steps"))
    yield Logged(
        builder.build(),
        framework="TRL",
        # TRL computes and logs the KL term exactly when its coefficient is not zero.
        facts={} if has_kl else {"kl_coefficient": 0.0},
        logging_steps=_logging_steps(state, planned),
        planned_steps=planned,
    )


def _logging_steps(state: Mapping[str, Any], planned: int | None) -> int | None:
    value = cell_number(state.get("logging_steps"))
    if value is not None and 0 < value < 1 and planned:  # a share of the run in transformers
        return max(1, math.ceil(value * planned))
    return _count(value)


def _count(value: Any) -> int | None:
    number = cell_number(value)
    return int(number) if number is not None and math.isfinite(number) and number >= 1 else None


READER = Reader("TRL trainer_state.json", claims, read)
