"""What a run can be known again by: copies, and hashes of its first rows and of all it holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

PRINTED = 2e-3
"""Share of the reward's range by which copies may differ: consoles print four digits."""

LEAST_DISTINCT = 4
"""Distinct values of the reward below which two runs may agree by chance."""


def mark_copies(runs: Sequence[PilotRun]) -> list[PilotRun]:
    """Say of each run that repeats another one's numbers which that is."""
    order = sorted(range(len(runs)), key=lambda i: (-_richness(runs[i]), i))
    originals: dict[tuple[bool, int], list[PilotRun]] = {}
    marked = list(runs)
    for i in order:
        run, curve = runs[i], _curve(runs[i])
        same = originals.setdefault((run.is_eval_only, curve.size), [])
        agreeing = (other for other in same if _agree(curve, _curve(other)))
        twin = next((other for other in agreeing if _is_proof(run, other, curve)), None)
        if twin is None:
            same.append(run)
        else:
            marked[i] = run.with_updates(copy_of=twin.id)
    return marked


def _richness(run: PilotRun) -> int:
    return len(run.series) + len(run.hyperparameters.model_dump(exclude_none=True))


def _curve(run: PilotRun) -> FloatArray:
    return run.eval_reward if run.is_eval_only else run.reward


def _is_proof(one: PilotRun, other: PilotRun, curve: FloatArray) -> bool:
    """Whether two runs whose rewards agree cannot have come to that by chance."""
    if _is_varied(curve):
        return True
    # A flat reward proves nothing; what else was logged may.
    shared = set(one.series) & set(other.series) - {"reward", "learning_rate"}
    pairs = [(one.series[name], other.series[name]) for name in shared]
    return any(_is_varied(a) for a, _ in pairs) and all(_agree(a, b) for a, b in pairs)


def _is_varied(values: FloatArray) -> bool:
    return np.unique(values[np.isfinite(values)]).size >= LEAST_DISTINCT


def _agree(a: FloatArray, b: FloatArray) -> bool:
    """Whether two series agree up to printing, missing cells included."""
    with np.errstate(invalid="ignore"):
        worst = np.fmax.reduce(np.abs(a - b))
    least = max(float(np.fmax.reduce(a) - np.fmin.reduce(a)), 1e-12)
    return bool(worst <= PRINTED * least) and np.array_equal(np.isfinite(a), np.isfinite(b))


DIGITS = 3
"""Decimals and significant digits of a reward that count: consoles print four."""


def fingerprint(run: PilotRun) -> str:
    """Hash of a run's first rows and its settings, which a longer or shorter log of it shares."""
    known = np.isfinite(run.reward)
    rewards = [_printed(value) for value in run.reward[known]]
    distinct = list(dict.fromkeys(rewards))
    if len(distinct) < LEAST_DISTINCT:
        return ""
    count = rewards.index(distinct[LEAST_DISTINCT - 1]) + 1
    settings = run.hyperparameters
    steps = [f"{step:g}" for step in run.step[known][:count]]
    rate = f"{settings.learning_rate:.3g}" if settings.learning_rate else ""
    parts = ((rate, settings.group_size), steps, rewards[:count])
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _printed(reward: float) -> str:
    return f"{round(float(reward), DIGITS) + 0.0:.{DIGITS}g}"


_FIELDS = {"id", "model", "task", "parameters", "hyperparameters", "missing", "copy_of"}
_FIELDS |= {"logging_steps", "step_unit", "reward_floor", "reward_ceiling", "path"}


def run_digest(run: PilotRun) -> str:
    """Hash of a run's rows and settings."""
    fields = run.model_dump(mode="json", include=_FIELDS)
    fields["path"] = fields["path"].replace("\\", "/").rpartition("/")[2]
    sha = hashlib.sha256(json.dumps(fields, sort_keys=True).encode())
    rows = {"step": run.step, "eval_step": run.eval_step, "eval_reward": run.eval_reward}
    for kind in (rows, run.series, run.parts):
        for name in sorted(kind):
            sha.update(f"|{name}|".encode())
            sha.update(np.ascontiguousarray(kind[name], dtype=float).tobytes())
    return sha.hexdigest()
