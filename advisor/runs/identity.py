"""What a run can be known again by: copies, and hashes of its first rows and of all it holds."""

from __future__ import annotations

import hashlib
import json
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


DIGITS = 3
"""Decimals and significant digits of a reward that count: consoles print four."""


def fingerprint(run: PilotRun) -> str:
    """Hash of a run's first rows and its settings, which a longer or shorter log of it shares."""
    known = np.isfinite(run.reward)
    rewards = [_told(value) for value in run.reward[known]]
    first: dict[str, int] = {}
    for row, reward in enumerate(rewards):
        first.setdefault(reward, row)
    if len(first) < LEAST_DISTINCT:
        return ""
    count = list(first.values())[LEAST_DISTINCT - 1] + 1
    settings = run.hyperparameters
    steps = [f"{step:g}" for step in run.step[known][:count]]
    told = (f"{settings.learning_rate:.3g}" if settings.learning_rate else "", settings.group_size)
    return hashlib.sha256(repr((told, steps, rewards[:count])).encode()).hexdigest()


def _told(reward: float) -> str:
    return f"{round(float(reward), DIGITS) + 0.0:.{DIGITS}g}"


_TOLD = {"id", "model", "task", "parameters", "hyperparameters", "missing", "copy_of"}
_TOLD |= {"logging_steps", "step_unit", "reward_floor", "reward_ceiling", "path"}


def run_digest(run: PilotRun) -> str:
    """Hash of a run's rows and settings."""
    told = run.model_dump(mode="json", include=_TOLD)
    told["path"] = told["path"].replace("\\", "/").rpartition("/")[2]
    sha = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    rows = {"step": run.step, "eval_step": run.eval_step, "eval_reward": run.eval_reward}
    for kind in (rows, run.series, run.parts):
        for name in sorted(kind):
            sha.update(f"|{name}|".encode())
            sha.update(np.ascontiguousarray(kind[name], dtype=float).tobytes())
    return sha.hexdigest()
