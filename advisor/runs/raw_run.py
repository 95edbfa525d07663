"""What a reader hands over: one run as the log tells it, before the sidecar is heard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from advisor.runs.columns import Columns
from advisor.runs.pilot_run import FloatArray, Missing


@dataclass(frozen=True)
class RawRun:
    """One run of one log file.

    Attributes
    ----------
    path : Path
        File it was read from.
    step : ndarray of shape (rows,)
        One-based optimizer step of each row, strictly increasing.
    series : dict of str to ndarray of shape (rows,)
        By the names in ``SERIES``.
    missing : dict of str to str
        Why a series is absent or holds NaN.
    label : str or None
        Set where a file holds several runs: what tells this one apart (its id or line number).
    has_own_id : bool
        Whether ``label`` is an id that the log itself gives, rather than a line number.
    eval_step, eval_reward : ndarray of shape (evaluations,)
    facts : dict of str to object
        Hyperparameters, model, task, parameters that the log states.
    rate_is_rising : bool
        The log stops within the warm-up, so its largest learning rate is not the peak.
    logging_steps : int or None
        Optimizer steps per row, where the log states them.
    window : int
        Optimizer steps per row to use where nothing else states them.
    interval : int or None
        Refresh interval K with which steps that count refreshes were placed.
    keys_read, keys_ignored, assumptions, warnings
        As in ``PilotRun``.
    """

    path: Path
    step: FloatArray
    series: dict[str, FloatArray]
    missing: dict[str, Missing]
    label: str | None = None
    has_own_id: bool = False
    eval_step: FloatArray = field(default_factory=lambda: np.zeros(0))
    eval_reward: FloatArray = field(default_factory=lambda: np.zeros(0))
    facts: dict[str, Any] = field(default_factory=dict)
    rate_is_rising: bool = False
    logging_steps: int | None = None
    window: int = 1
    interval: int | None = None
    keys_read: dict[str, str] = field(default_factory=dict)
    keys_ignored: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Reader(NamedTuple):
    """One log format; to add one, write its module and list it in read.py.

    Attributes
    ----------
    name : str
        What the format is called in messages.
    claims : callable (path, head) -> bool
        Whether a file is of this format, from its name and its first 64 KiB.
    read : callable (path, columns, known) -> list of RawRun
        ``known`` holds what flags and sidecar say of the file as a whole.
    suffixes : frozenset of str
        File endings that the reader tries when a file was named by the user and no reader
        claims it; its error then tells what the file lacks.
    """

    name: str
    claims: Callable[[Path, bytes], bool]
    read: Callable[[Path, Columns, Mapping[str, Any]], list[RawRun]]
    suffixes: frozenset[str] = frozenset()
