"""Several runs together: evaluations that stand for rewards, copies, and starts that lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from advisor.runs.arrays import FloatArray
from advisor.runs.pilot_run import LEAST_DISTINCT, NO_PILOT, STARTS_APART, PilotRun
from advisor.runs.settings import TABLES

RULE = SimpleNamespace(**TABLES["several_runs"])


def evaluations_as_rewards(runs: Sequence[PilotRun], *, is_fit: bool) -> list[PilotRun]:
    """Take evaluations for rewards; a fit of other runs does not wait for their settings."""
    are_alone = not is_fit or all(run.is_eval_only for run in runs)
    found = []
    for run in runs:
        one = _with_rewards(run) if run.is_eval_only else None
        found.append(run if one is None or (one.needs and not are_alone) else one)
    return found


def _with_rewards(run: PilotRun) -> PilotRun | None:
    known = np.isfinite(run.eval_reward)
    if int(known.sum()) < PilotRun.LEAST_REWARDS:
        return None
    return run.with_updates(
        step=run.eval_step[known] + 1,
        series={"reward": run.eval_reward[known]},
        missing={name: why for name, why in run.missing.items() if name != "reward"},
        eval_step=np.zeros(0),
        eval_reward=np.zeros(0),
        logging_steps=1,
        keys_read={n if n != "eval_reward" else "reward": k for n, k in run.keys_read.items()},
        assumptions=(*run.assumptions, RULE.as_rewards),
        rewards_are_held_out=True,
    )


def mark_copies(runs: Sequence[PilotRun]) -> list[PilotRun]:
    """Say of each run that repeats another one's numbers which that is."""
    richness = [len(r.series) + len(r.hyperparameters.model_dump(exclude_none=True)) for r in runs]
    order = sorted(range(len(runs)), key=lambda i: (-richness[i], i))
    originals: dict[tuple[bool, int], list[tuple[float, PilotRun]]] = {}
    marked = [run if run.copy_of is None else run.with_updates(copy_of=None) for run in runs]
    for i in order:
        run, curve = marked[i], _curve(marked[i])
        same = originals.setdefault((run.is_eval_only, curve.size), [])
        known = curve[np.isfinite(curve)]
        # Means differ by no more than rows do, and of a thousand runs they are quickly compared.
        level, reach = (float(known.mean()), _reach(known)) if known.size else (0.0, 0.0)
        near = (other for mean, other in same if abs(mean - level) <= 1.01 * reach)
        agreeing = (other for other in near if _agree(curve, _curve(other)))
        twin = next((other for other in agreeing if _is_proof(run, other, curve)), None)
        if twin is None:
            same.append((level, run))
        else:
            marked[i] = run.with_updates(copy_of=twin.id)
    return marked


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
    return bool(worst <= _reach(a)) and np.array_equal(np.isfinite(a), np.isfinite(b))


def _reach(values: FloatArray) -> float:
    """By how much copies of a series may differ: a share of its range, as consoles print it."""
    with np.errstate(over="ignore"):
        width = max(float(np.fmax.reduce(values) - np.fmin.reduce(values)), 1e-12)
    return float(RULE.printed * width)


def warn_of_starts(runs: Sequence[PilotRun]) -> list[PilotRun]:
    """Warn runs of one model and task that start further apart than noise and learning explain."""
    least = PilotRun.LEAST_REWARDS
    groups: dict[tuple[str | None, str | None], list[PilotRun]] = {}
    for run in runs:
        is_known = np.isfinite(run.reward).sum() >= least and not run.rewards_are_held_out
        if is_known and run.copy_of is None:
            groups.setdefault((run.model, run.task), []).append(run)
    warned = {run.id: line for own in groups.values() if (line := _apart(own)) for run in own}
    for own in groups.values():
        warned = {run.id: line for line, both in [_chained(own)] for run in both} | warned
    return [
        run.with_updates(warnings=(*run.warnings, warned[run.id])) if run.id in warned else run
        for run in runs
    ]


def _apart(runs: Sequence[PilotRun]) -> str:
    """How far apart the starts of some runs are; empty where they may be one."""
    least = PilotRun.LEAST_REWARDS
    rewards = [np.clip(run.reward[np.isfinite(run.reward)], -1e100, 1e100) for run in runs]
    starts = np.array([reward[:least].mean() for reward in rewards])
    low, high = int(starts.argmin()), int(starts.argmax())
    noise = [np.std(np.diff(reward)) / np.sqrt(2 * least) for reward in rewards]
    # A run that died or rose within its first rows shows where it started in the first alone.
    gap = min(starts[high] - starts[low], rewards[high][0] - rewards[low][0])
    scale = max(1.0, *(r.max() for r in rewards)) - min(0.0, *(r.min() for r in rewards))
    rates = [runs[place].hyperparameters.learning_rate or 0.0 for place in (low, high)]
    # Before its first row a run at a higher rate may have come far.
    if rates[1] > rates[0] and runs[high].step[0] > 1:
        return ""
    if gap <= max(RULE.apart * scale, RULE.apart_noise * np.hypot(noise[low], noise[high])):
        return ""
    return (
        f"{STARTS_APART} {starts[low]:.3g} ('{runs[low].id}') to {starts[high]:.3g} "
        f"('{runs[high].id}'), and one reward function would start them at one level: name model "
        "and task in pilots.toml, with a task for each reward function, or leave some out"
    )


def _chained(runs: Sequence[PilotRun]) -> tuple[str, list[PilotRun]]:
    """Which runs begin where others of their settings end, as stages of one do, and what to do."""
    found, both = list[str](), list[PilotRun]()
    ends = {run.id: _from_to(run) for run in runs}
    for later in runs:
        of = later.hyperparameters
        same = (of.learning_rate, of.group_size, of.refresh_interval)
        for one in runs:
            own = one.hyperparameters
            if (own.learning_rate, own.group_size, own.refresh_interval) != same or one is later:
                continue
            (start, end, error), (begin, _, noise) = ends[one.id], ends[later.id]
            rise, noise = end - start, float(np.hypot(error, noise))
            begun, spacing = later.step[0] - 1, max(one.logging_steps, later.logging_steps)
            goes_on = 0 <= begun - one.step[-1] < one.logging_steps + 1
            is_own = (one.task, one.model) == (later.task, later.model)
            within = is_own and one.step[0] + 2 * spacing < begun < one.step[-1]
            level, least = (max(n * noise, share * rise) for n, share in RULE.chained)
            is_next = begin - start > least and abs(begin - end) <= level
            if goes_on or within or (same[0] and is_next):
                where = f"within '{one.id}'" if within else f"where '{one.id}' ends"
                found.append(f"'{later.id}' begins {where}")
                both += [one, later]
                break
    more = f" ({len(found) - 1} more do so)" if len(found) > 1 else ""
    return (f"{found[0]}{more}: {NO_PILOT}" if found else ""), both


def _from_to(run: PilotRun) -> tuple[float, float, float]:
    """Means of the first and of the last rewards, and the standard error of one."""
    reward = np.clip(run.reward[np.isfinite(run.reward)], -1e100, 1e100)
    rows = max(PilotRun.LEAST_REWARDS, reward.size // 20)
    error = float(np.std(np.diff(reward)) / np.sqrt(2 * rows))
    return float(reward[:rows].mean()), float(reward[-rows:].mean()), error
