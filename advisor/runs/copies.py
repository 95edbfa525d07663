"""Runs that are stored more than once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

ALIKE = 2e-3
"""Share of the reward's range by which copies may differ: consoles print four digits."""

LEAST_DISTINCT = 4
"""Distinct values of the reward below which two runs may agree by chance."""


def mark_copies(runs: Sequence[PilotRun]) -> list[PilotRun]:
    """Say of each run that repeats another one's numbers which that is."""
    order = sorted(range(len(runs)), key=lambda i: (-_richness(runs[i]), i))
    curves = [_curve(run) for run in runs]
    originals: dict[tuple[bool, int], list[int]] = {}
    marked = list(runs)
    for i in order:
        same = originals.setdefault((runs[i].is_eval_only, curves[i].size), [])
        alike = (j for j in same if _alike(curves[i], curves[j]))
        twin = next((j for j in alike if _is_proof(runs[i], runs[j], curves[i])), None)
        if twin is None:
            same.append(i)
        else:
            marked[i] = runs[i].with_updates(copy_of=runs[twin].id)
    return marked


def _richness(run: PilotRun) -> int:
    settings = run.hyperparameters.model_dump().values()
    return len(run.series) + sum(value is not None for value in settings)


def _curve(run: PilotRun) -> FloatArray:
    return run.eval_reward if run.is_eval_only else run.reward


def _is_proof(one: PilotRun, other: PilotRun, curve: FloatArray) -> bool:
    """Whether two runs whose rewards agree cannot have come to that by chance."""
    if _is_varied(curve):
        return True
    # A flat reward proves nothing; what else was logged may.
    shared = sorted(set(one.series) & set(other.series) - {"reward", "learning_rate"})
    pairs = [(one.series[name], other.series[name]) for name in shared]
    return any(_is_varied(a) for a, _ in pairs) and all(_alike(a, b) for a, b in pairs)


def _is_varied(values: FloatArray) -> bool:
    return np.unique(values[np.isfinite(values)]).size >= LEAST_DISTINCT


def _alike(a: FloatArray, b: FloatArray) -> bool:
    """Whether two series agree up to printing, missing cells included."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)
    worst = np.fmax.reduce(apart)
    if not worst <= ALIKE * max(float(np.fmax.reduce(a) - np.fmin.reduce(a)), 1e-12):
        return False
    return np.array_equal(np.isfinite(a), np.isfinite(b))
