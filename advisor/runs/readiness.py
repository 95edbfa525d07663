"""Whether a run can be fitted: what it lacks, what stands in for it, and whether it moved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from advisor.runs.pilot_run import IN_WARMUP, LEAST_REWARDS, NOT_GRPO, PilotRun
from advisor.runs.settings import REQUIRED
from advisor.theory import FloatArray

WHY = {
    **REQUIRED,
    "parameters": "the size of the model is not known",
    "minibatches_per_refresh": "the log counts batches of rollouts, and how many optimizer steps "
    "each takes is not known",
    "epochs_per_refresh": "the log counts batches of rollouts, and how often each is passed over "
    "is not known",
    "adapter": "the learning rate is one of LoRA for a model of more than 1e9 parameters, and the "
    "log tells of no adapter",
    "step_unit": "the log's counter may count optimizer steps or batches of rollouts",
}
"""Setting -> what is wrong without it."""

LARGE, FAST = 1e9, 2e-5
"""Parameters and learning rate above which full fine-tuning is rare enough to be asked for: most
public full runs of 1.5 B and more use 1e-6 to 1e-5, LoRA runs 5e-6 to 2e-4."""


def needs(run: PilotRun) -> list[str]:
    """Names of the settings without which a run cannot be fitted and which are not known."""
    if run.is_eval_only:
        return []
    lacking = run.hyperparameters.lacking
    if run.parameters is None:
        lacking.append("parameters")
    if run.step_unit == "refresh":
        factors = ("minibatches_per_refresh", "epochs_per_refresh")
        lacking += [name for name in factors if getattr(run.hyperparameters, name) is None]
    if run.step_unit == "unknown":
        lacking.append("step_unit")
    return lacking


def questions(run: PilotRun) -> list[str]:
    """What a run needs, and what it is asked for though a fit can go on without."""
    found = needs(run)
    if run.parameters is not None and may_be_lora(run):
        found.append("adapter")
    return found


def may_be_lora(run: PilotRun) -> bool:
    """Whether a log tells of no adapter at a rate of LoRA: it has one, or is no large model."""
    known = run.hyperparameters
    is_fast = (known.learning_rate or 0) > FAST and (run.parameters or math.inf) > LARGE
    return known.adapter is None and is_fast and not run.is_eval_only


def lost_rewards(run: PilotRun) -> list[str]:
    """How many rewards of a run are not finite, and where the first of them stands."""
    lost = np.flatnonzero(~np.isfinite(run.reward))
    rewards = f"{lost.size} of {run.reward.size} rewards are not finite and were left out"
    return [f"{rewards}, the first in row {at + 1} at step {run.step[at]:g}" for at in lost[:1]]


AS_REWARDS = (
    "the rewards are held-out evaluations, for no train reward is logged; one after n steps stands "
    "at step n + 1, whose rollouts the same policy would write"
)


def evaluations_as_rewards(runs: Sequence[PilotRun], *, is_fit: bool) -> list[PilotRun]:
    """Take evaluations for rewards; a fit of other runs does not wait for their settings."""
    are_alone = not is_fit or all(run.is_eval_only for run in runs)
    taken = [_with_rewards(run) if run.is_eval_only else None for run in runs]
    return [
        run if one is None or (needs(one) and not are_alone) else one
        for run, one in zip(runs, taken, strict=True)
    ]


def _with_rewards(run: PilotRun) -> PilotRun | None:
    known = np.isfinite(run.eval_reward)
    if int(known.sum()) < LEAST_REWARDS:
        return None
    return run.with_updates(
        step=run.eval_step[known] + 1,
        series={"reward": run.eval_reward[known]},
        missing={name: why for name, why in run.missing.items() if name != "reward"},
        eval_step=np.zeros(0),
        eval_reward=np.zeros(0),
        logging_steps=1,
        keys_read={n if n != "eval_reward" else "reward": k for n, k in run.keys_read.items()},
        assumptions=(*run.assumptions, AS_REWARDS),
    )


STARTS_APART = "runs that count as one model on one task start at"
"""How a warning begins of runs that are pooled though their rewards may mean other things."""


def warn_of_starts(runs: Sequence[PilotRun]) -> list[PilotRun]:
    """Warn runs of one model and task that start further apart than noise and learning explain."""
    groups: dict[tuple[str | None, str | None], list[PilotRun]] = {}
    for run in runs:
        known = np.isfinite(run.reward).sum() >= LEAST_REWARDS and AS_REWARDS not in run.assumptions
        if known and run.copy_of is None:
            groups.setdefault((run.model, run.task), []).append(run)
    warned = {run.id: line for own in groups.values() if (line := _apart(own)) for run in own}
    return [
        run.with_updates(warnings=(*run.warnings, warned[run.id])) if run.id in warned else run
        for run in runs
    ]


def _apart(runs: Sequence[PilotRun]) -> str:
    """How far apart the starts of some runs are; empty where they may be one."""
    rewards = [np.clip(run.reward[np.isfinite(run.reward)], -1e100, 1e100) for run in runs]
    starts = np.array([reward[:LEAST_REWARDS].mean() for reward in rewards])
    low, high = int(starts.argmin()), int(starts.argmax())
    noise = [np.std(np.diff(reward)) / np.sqrt(2 * LEAST_REWARDS) for reward in rewards]
    # A run that died or rose within its first rows shows where it started in the first alone.
    gap = min(starts[high] - starts[low], rewards[high][0] - rewards[low][0])
    scale = max(1.0, *(r.max() for r in rewards)) - min(0.0, *(r.min() for r in rewards))
    # Says so of 11 of 55 groups of public runs: other data, prompts or versions of a reward.
    if gap <= max(0.4 * scale, 5 * np.hypot(noise[low], noise[high])):
        return ""
    return (
        f"{STARTS_APART} {starts[low]:.3g} ('{runs[low].id}') to {starts[high]:.3g} "
        f"('{runs[high].id}'), and one reward function would start them at one level: name model "
        "and task in pilots.toml, with a task for each reward function, or leave some out"
    )


def weighty(notes: Iterable[str]) -> list[str]:
    """Sentences of those warnings of runs that bear on the answer, each once."""
    bearing = (STARTS_APART, NOT_GRPO, IN_WARMUP)
    found = dict.fromkeys(n for n in notes if any(part in n for part in bearing))
    return [f"{note[0].upper()}{note[1:]}." for note in found]


NONE_MOVED = "no pilot's reward moved by more than its noise"
"""Note of a fit that learned nothing but how slow its settings are."""


def has_moved(run: PilotRun) -> bool:
    """Whether the last third of a run's train rewards differs from the first."""
    reward = run.reward[np.isfinite(run.reward)]
    if reward.size < 2:
        return False
    third = max(1, reward.size // 3)
    noise = np.std(np.diff(reward)) / np.sqrt(2) if reward.size > 2 else 0.0
    error = noise * np.sqrt(2 / third)
    gap = abs(reward[-third:].mean() - reward[:third].mean())
    # Standard errors between the ends of a run below which it has not moved.
    return bool(gap > max(2.0 * error, 1e-9))


def at_the_floor(run: PilotRun) -> bool:
    """Whether a run shows nothing but the lowest reward after its first row: it may be dead."""
    reward = run.reward[np.isfinite(run.reward)][1:]
    return bool(reward.size and (reward <= (run.reward_floor or 0.0)).all())


def none_moved(
    runs: Iterable[PilotRun], collapse_steps: Mapping[str, float | None] | None = None
) -> bool:
    """Whether neither a gain nor a collapse can be learned from any run."""
    collapsed = {name for name, step in (collapse_steps or {}).items() if step is not None}
    return not any(run.id in collapsed or has_moved(run) for run in runs)


def per_optimizer_step(series: Mapping[str, FloatArray], interval: int) -> dict[str, FloatArray]:
    """Series of rows that each take as long as K steps do, with the time of one of them."""
    timed = {name: series[name] / interval for name in series if name == "step_time_seconds"}
    return {**series, **timed}


def seconds_per_step(run: PilotRun) -> float | None:
    """Median wall-clock seconds of an optimizer step, or None where no times were logged."""
    times = run.series.get("step_time_seconds")
    if times is None:
        return None
    known = np.isfinite(times) & (times > 0)
    if not known.any():
        return None
    spacing = float(np.median(np.diff(run.step))) if run.step.size > 1 else 1.0
    steps_per_time = max(1.0, spacing / run.logging_steps)
    return float(np.median(times[known])) / steps_per_time
