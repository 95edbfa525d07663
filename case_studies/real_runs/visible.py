"""Indexed runs beside those that the package's own readers find in the same files.

A run counts as found where one of the file's runs has the rewards that the index's own way of
reading gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from index import IndexedRun, read_index

import advisor
from advisor.runs import PilotRun
from advisor.theory import FloatArray

SAME = 2e-5
"""Difference up to which two rewards are the same number."""

LEAST_SHARE = 0.9
"""Share of a run's rewards that the index must hold: rows may be left out with a reason."""


class Compared(NamedTuple):
    """One run of the index and the reader's."""

    indexed: IndexedRun
    run: PilotRun | None


def compare(folder: Path) -> tuple[list[Compared], list[str]]:
    """Every run of a folder's index beside the reader's, and what the index cannot read."""
    indexed, unread = read_index(folder)
    by_path: dict[str, list[PilotRun]] = {}
    for run in advisor.inspect(folder).runs:
        by_path.setdefault(run.path, []).append(run)
    compared = []
    for entry in indexed:
        file = entry.row["local_file"]
        whole = folder / file
        path = whole if whole.is_file() else folder / file.partition(":")[0]
        compared.append(Compared(entry, _match(entry, by_path.get(str(path), []))))
    return compared, unread


def _curve(run: PilotRun) -> FloatArray:
    curve = run.eval_reward if run.is_eval_only else run.reward
    return curve[np.isfinite(curve)]


def _match(entry: IndexedRun, here: Sequence[PilotRun]) -> PilotRun | None:
    """Run of the file with most rewards of the index, at least nine tenths of its own."""
    scored = [(_share(_curve(run), entry.reward), run) for run in here]
    best = max(scored, key=lambda item: item[0], default=(0.0, None))
    return best[1] if best[0] >= LEAST_SHARE else None


def _share(rewards: FloatArray, index: FloatArray) -> float:
    """Share of the rewards that stand, in this order, among those of the index, and the reverse."""
    shorter, longer = sorted((np.round(rewards, 5), np.round(index, 5)), key=len)
    at = hits = 0
    for value in shorter:
        there = np.flatnonzero(np.abs(longer[at:] - value) <= SAME)
        if there.size:
            at, hits = at + int(there[0]) + 1, hits + 1
    return hits / max(shorter.size, 1)
