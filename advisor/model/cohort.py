"""Runs as arrays: what the model sees of the logs.

Rewards are scaled to [0, 1], rows averaged into bins, steps become the cumulative-learning-rate
clock, and hyperparameters log ratios to a reference configuration.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from advisor.common import Kind, Note, note, stated
from advisor.errors import FlatRewardError, InputError
from advisor.runs import PilotRun, Settings, Trainer, mark_copies
from advisor.theory import (
    BoolArray,
    FloatArray,
    IntArray,
    cumulative_clock,
    policy_steps,
    schedule_factors,
)

CLOCK_EXPONENTS = np.array([0.25, 0.75, 1.25, 1.75])
"""Learning-rate exponents at which each clock is tabulated; between them it is interpolated."""

MAX_BINS = 14
"""Bins per run: a pilot's curve bends once or twice, so more bins carry no more information."""

FULL, LEAST_FULL = 1 - 1e-6, 3
"""A reward at the ceiling 1, and rows there from which on it is the ceiling."""

FASTER = 3.0
"""Times the largest piloted learning rate at which the next pilot runs where none moved."""

ASSUMED_KINDS = {
    "adapter": Kind.ADAPTER_ASSUMED,
    "minibatches_per_refresh": Kind.REFRESH_ASSUMED,
    "epochs_per_refresh": Kind.REFRESH_ASSUMED,
}
"""Settings whose assumed value weighs more than that of others."""

DOUBTED = {"adapter": (Kind.ADAPTER_DOUBTED, "full"), "kl_coefficient": (Kind.KL_DOUBTED, "0")}
"""Settings of which a log may show that the assumed value, stated here, is wrong."""


class Covariates(NamedTuple):
    """What the laws see of a run: natural logs of ratios to the reference, shape (...)."""

    log_rate: Any
    log_group: Any
    log_prompts: Any
    log_parameters: Any
    log_minibatches: Any
    log_epochs: Any


@dataclass(frozen=True)
class Reference:
    """Configuration at which plateau and stiffness are stated: the geometric mean of the pilots."""

    learning_rate: float
    group_size: float
    prompts_per_step: float
    parameters: float


@dataclass(frozen=True)
class Cohort:
    """Pilot runs as arrays, rewards scaled to [0, 1]; bins of one run follow each other."""

    runs: tuple[PilotRun, ...]  # with model and task
    settings: tuple[Settings, ...]  # of each run, completed
    groups: tuple[tuple[str, str], ...]  # (task, model)
    group_of_run: IntArray
    tasks: tuple[str, ...]
    task_of_group: IntArray  # index into `tasks`
    group_parameters: FloatArray
    reference: Reference
    log_rate: FloatArray  # of each run, log ratio to the reference, as the next two
    log_group: FloatArray
    log_prompts: FloatArray
    minibatches: FloatArray  # of each run, as the next five
    epochs: FloatArray
    momentum: FloatArray
    mean_age: FloatArray
    corrected: FloatArray  # 1 where an importance ratio is used
    clipped: FloatArray  # 1 where it is clipped
    run_of_bin: IntArray
    reward: FloatArray  # mean scaled reward of a bin
    noise_per_completion: FloatArray  # Bernoulli variance p (1 - p) over the completions of a bin
    noise_per_prompt: FloatArray  # the same over its prompts
    noise_known: FloatArray  # variance of a bin from logged spreads, else 0; the two are then 0
    step: FloatArray  # mean optimizer step of the rows of a bin, as logged
    clock: FloatArray  # (bins, 4): S at `CLOCK_EXPONENTS`, in optimizer steps at peak rate
    run_of_eval: IntArray
    eval_reward: FloatArray  # mean scaled held-out reward of a bin of evaluations
    eval_clock: FloatArray  # (evaluations, 4)
    exposure: FloatArray  # of each run: steps survived, each weighted by (rate / peak)^2
    collapsed: FloatArray  # 1 where the run collapsed at the end of its exposure
    collapse_step: tuple[float | None, ...]  # optimizer step where a run's exposure ends
    fell_from: tuple[float | None, ...]  # step at which its fall began; shown, and not fitted
    floor: float  # bounds of the reward, in reward units
    ceiling: float
    eval_floor: float  # bounds of the held-out reward, in its own units
    eval_ceiling: float
    notes: tuple[Note, ...]  # what was assumed or left out

    @property
    def group_log_parameters(self) -> FloatArray:
        """log(N / N_ref) per group."""
        return np.asarray(np.log(self.group_parameters / self.reference.parameters))

    @property
    def covariates(self) -> Covariates:
        """What the laws of the model see of each run, shape (runs,)."""
        return Covariates(
            self.log_rate,
            self.log_group,
            self.log_prompts,
            self.group_log_parameters[self.group_of_run],
            np.log(self.minibatches),
            np.log(self.epochs),
        )

    @property
    def longest(self) -> float:
        """Optimizer steps of the longest pilot."""
        return max(float(run.step[-1]) for run in self.runs)

    @property
    def digest(self) -> str:
        """SHA-256 over everything the model sees."""
        sha = hashlib.sha256()
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                sha.update(name.encode() + np.ascontiguousarray(value).tobytes())
        bounds = (self.floor, self.ceiling, self.eval_floor, self.eval_ceiling)
        rest = (self.groups, self.tasks, self.reference, *bounds)
        sha.update(repr(rest).encode())
        return sha.hexdigest()


def build_cohort(
    runs: Sequence[PilotRun],
    collapse_steps: Mapping[str, float | None],
    healthy_until: Mapping[str, float | None],
    fell_from: Mapping[str, float | None] | None = None,
) -> Cohort:
    """Turn runs into arrays.

    Long because: it fills the columns of one table.
    """
    if not runs:
        raise InputError("there is no run to fit", advice="Give at least one pilot log")
    notes = _Notes()
    usable = _fit_for_use(runs, notes)
    _refuse_incomplete(usable)
    completed = [_named(run, notes) for run in usable]
    settings = tuple(run.hyperparameters.completed() for run in completed)
    floor, ceiling = _bounds(completed, notes)
    eval_floor, eval_ceiling = _eval_bounds(completed, floor, ceiling)
    _refuse_constant(completed, collapse_steps)
    falls = [collapse_steps.get(run.id) for run in completed]
    if set(falls) == {None} and not any(run.has_moved for run in completed):
        notes.add(note(Kind.NONE_MOVED))
    elif not any(run.has_risen for run in completed):
        notes.add(note(Kind.NONE_ROSE))

    names = [(str(run.task), str(run.model)) for run in completed]
    groups = sorted(set(names))
    tasks = sorted({task for task, _ in groups})
    rate, group, prompts = (
        _column(settings, name) for name in ("learning_rate", "group_size", "prompts_per_step")
    )
    group_parameters = np.array(
        [_one_size([r for r in completed if r.model == model], model) for _, model in groups]
    )
    reference = Reference(
        *(float(np.exp(np.log(one).mean())) for one in (rate, group, prompts, group_parameters))
    )
    bins, tests, exposure = [], [], []
    for index, (run, of, fall) in enumerate(zip(completed, settings, falls, strict=True)):
        healthy, factors = healthy_until.get(run.id), _factors(run, of)
        bins.append(_bin(index, run, of, factors, healthy, (floor, ceiling)))
        tests.append(_evaluations(index, run, factors, healthy, (eval_floor, eval_ceiling)))
        exposure.append(float(np.sum(factors[: int(run.step[-1] if fall is None else fall)] ** 2)))
    stacked, tested = (
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for parts in (bins, tests)
    )
    corrected = np.array([float(one.importance_ratio) for one in settings])
    return Cohort(
        runs=tuple(completed),
        settings=settings,
        groups=tuple(groups),
        group_of_run=np.array([groups.index(name) for name in names]),
        tasks=tuple(tasks),
        task_of_group=np.array([tasks.index(task) for task, _ in groups]),
        group_parameters=group_parameters,
        reference=reference,
        log_rate=np.log(rate / reference.learning_rate),
        log_group=np.log(group / reference.group_size),
        log_prompts=np.log(prompts / reference.prompts_per_step),
        minibatches=_column(settings, "minibatches_per_refresh"),
        epochs=_column(settings, "epochs_per_refresh"),
        momentum=_column(settings, "momentum"),
        mean_age=np.array([setting.mean_age for setting in settings], dtype=float),
        corrected=corrected,
        clipped=corrected.copy(),
        **stacked,
        **tested,
        exposure=np.array(exposure),
        collapsed=np.array([float(fall is not None) for fall in falls]),
        collapse_step=tuple(falls),
        fell_from=tuple((fell_from or collapse_steps).get(run.id) for run in completed),
        floor=floor,
        ceiling=ceiling,
        eval_floor=eval_floor,
        eval_ceiling=eval_ceiling,
        notes=notes.all(),
    )


def planned_factors(settings: Settings, steps: int) -> FloatArray:
    """Learning rate over its peak for each optimizer step of the schedule, shape (steps,)."""
    return _tabulated(settings.schedule, settings.warmup_steps, settings.planned_steps, steps)[0]


def clock_table(settings: Settings, steps: int) -> FloatArray:
    """S after 0..steps optimizer steps at every tabulated exponent, shape (steps + 1, 4)."""
    return _tabulated(settings.schedule, settings.warmup_steps, settings.planned_steps, steps)[1]


@lru_cache(maxsize=64)  # of an answer nearly all configurations have one schedule
def _tabulated(
    schedule: Any, warmup_steps: int, planned_steps: int | None, steps: int
) -> tuple[FloatArray, FloatArray]:
    factors = schedule_factors(
        schedule, steps, warmup_steps=warmup_steps, planned_steps=planned_steps
    )
    return factors, cumulative_clock(factors, CLOCK_EXPONENTS)


_NODES = np.linalg.inv(np.vander(CLOCK_EXPONENTS, increasing=True)).T


def clock_polynomial(table: FloatArray) -> FloatArray:
    """Coefficients of S as a cubic in the learning-rate exponent; exact for a constant schedule."""
    return np.asarray(table @ _NODES)


def _clock(factors: FloatArray, steps: FloatArray) -> FloatArray:
    """S at every tabulated exponent, the mean over steps of shape (rows, steps) behind each row."""
    clocks = [cumulative_clock(factors, float(a)) for a in CLOCK_EXPONENTS]
    grid = np.arange(factors.size + 1, dtype=float)
    return np.stack([np.interp(steps, grid, clock).mean(axis=1) for clock in clocks], axis=1)


class _Notes:
    """What was assumed, warned of or left out, once for all runs it concerns."""

    def __init__(self) -> None:
        self._runs: dict[Note, list[str]] = {}

    def add(self, remark: Note, run: str | None = None) -> None:
        self._runs.setdefault(remark, []).extend([] if run is None else [run])

    def all(self) -> tuple[Note, ...]:
        return tuple(
            replace(remark, about=runs[0] if len(runs) == 1 else f"{len(runs)} runs" * bool(runs))
            for remark, runs in self._runs.items()
        )


def _refuse_incomplete(runs: Sequence[PilotRun]) -> None:
    """Raise where runs lack something, and ask for all of it."""
    lacking = [run for run in runs if run.needs]
    asked = Trainer.asked_of(lacking)
    if asked is None:
        return
    first, names = lacking[0], list(dict.fromkeys(name for run in lacking for name in run.needs))
    who, reasons = f"run '{first.id}'", list(first.needs.values())
    if len(lacking) > 1:
        who, reasons = f"{len(lacking)} of {len(runs)} runs", list(asked.sentences)
    keys = [first.keys_read.get("step", name) if name == "step_unit" else name for name in names]
    why = f"{who} cannot be fitted yet: {'; '.join(reasons)}"
    raise InputError(why, path=first.path, key=", ".join(keys), advice=asked.text)


def _named(run: PilotRun, notes: _Notes) -> PilotRun:
    """Name a run's model and task, and note what is assumed."""
    given = run.hyperparameters.assumed
    assumed = [
        note(ASSUMED_KINDS.get(name, Kind.SETTING_ASSUMED), name=name, value=value, why=why)
        for name, (value, why) in given.items()
        if name not in DOUBTED or name not in run.questions
    ]
    assumed += [
        note(kind, value=value, doubt=run.questions[name])
        for name, (kind, value) in DOUBTED.items()
        if name in run.questions
    ]
    assumed += [
        note(Kind.NAME_ASSUMED, name=key) for key in ("model", "task") if getattr(run, key) is None
    ]
    remarks = [stated(line, Kind.LOST_REWARDS) for line in run.lost_rewards]
    for line in run.warnings:
        weighty = PilotRun.weighty([line])
        remarks += [stated(one, Kind.WEIGHTY_WARNING) for one in weighty]
        remarks += [] if weighty else [stated(line, Kind.RUN_WARNING)]
    remarks += [stated(line, Kind.RUN_REMARK) for line in run.assumptions]
    for line in run.left_out:
        notes.add(stated(line, Kind.NOT_READ))
    for remark in (*remarks, *assumed):
        notes.add(remark, run.id)
    return run.with_updates(
        model=PilotRun.UNNAMED_MODEL if run.model is None else run.model,
        task=PilotRun.UNNAMED_TASK if run.task is None else run.task,
        assumptions=(*run.assumptions, *map(str, assumed)),
    )


def _fit_for_use(runs: Sequence[PilotRun], notes: _Notes) -> list[PilotRun]:
    """Runs with a train reward, each once."""
    for run in runs:
        if run.is_eval_only:
            notes.add(note(Kind.ONLY_EVALUATIONS), run.id)
    marked = mark_copies([run for run in runs if not run.is_eval_only])
    for run in marked:
        if run.copy_of is not None:
            notes.add(note(Kind.COPY, run=run.id, of=run.copy_of))
        if run.frozen_since is not None:
            notes.add(note(Kind.FROZEN), run.id)
    kept = [run for run in marked if run.copy_of is None]
    if kept and not (moving := [run for run in kept if run.frozen_since is None]):
        problem = "the gradient is exactly 0 though groups differ: the weights do not move"
        advice = "Check that the adapter is trained and that the optimizer holds its weights"
        raise InputError(problem, path=kept[0].path, key="gradient_norm", advice=advice)
    kept = moving if kept else []
    if not kept:
        problem = "no run has a train reward"
        advice = "Give the training logs, not only evaluations of checkpoints"
        raise InputError(problem, path=runs[0].path, key="reward", advice=advice)
    groups: dict[tuple[str | None, str | None], list[PilotRun]] = {}
    for run in kept:
        groups.setdefault((run.task, run.model), []).append(run)
    unlike = {run.id for own in groups.values() if _are_two_measures(own, notes) for run in own}
    nothing = {"eval_step": np.zeros(0), "eval_reward": np.zeros(0)}
    return [run.with_updates(**nothing) if run.id in unlike else run for run in kept]


def _are_two_measures(runs: Sequence[PilotRun], notes: _Notes) -> bool:
    """Whether held-out rewards of one model and task have several keys, and those lie apart."""
    by_key: dict[str, list[float]] = {}
    for run in runs:
        known = run.eval_reward[np.isfinite(run.eval_reward)]
        # Of how many samples a mean is makes no other measure of it.
        key = re.sub(r"@\d+", "", run.keys_read.get("eval_reward", ""))
        by_key.setdefault(key, []).extend(known)
    by_key = {key: own for key, own in by_key.items() if own}
    ends = sorted((min(own), max(own)) for own in by_key.values())
    apart = any(low[1] < high[0] for low, high in pairwise(ends))
    if apart:
        notes.add(note(Kind.HELD_OUT_APART, keys=" and ".join(sorted(by_key))))
    return apart


def _bounds(runs: Sequence[PilotRun], notes: _Notes) -> tuple[float, float]:
    """Reward floor and ceiling: given, or inferred from the cohort and said."""
    low = min(float(np.nanmin(run.reward)) for run in runs)
    high = max(float(np.nanmax(run.reward)) for run in runs)
    floors = {run.reward_floor for run in runs} - {None}
    ceilings = {run.reward_ceiling for run in runs} - {None}
    for name, values in (("reward_floor", floors), ("reward_ceiling", ceilings)):
        if len(values) > 1:
            problem = f"runs differ in {name}: {sorted(v for v in values if v is not None)}"
            advice = "Fit runs on one reward scale together, others apart"
            raise InputError(problem, key=name, advice=advice)
    floor, ceiling = next(iter(floors), None), next(iter(ceilings), None)
    if floor is None:
        floor = 0.0 if low >= 0 else low
        notes.add(note(Kind.REWARD_FLOOR, value=floor, low=low))
    if ceiling is None:
        _refuse_mixed_scales(runs, notes)
        ceiling = 1.0 if high <= 1 else high + 0.25 * (high - floor)
        inside = "rewards lie in [0, 1]" if low >= 0 else f"highest logged {high:g}"
        why = inside if high <= 1 else f"highest logged {high:g}, plus a quarter"
        kind = Kind.REWARD_CEILING if high <= 1 else Kind.CEILING_DOUBTED
        likely = " (100 for percentages)" if low >= 0 and 20 < high <= 100 else ""
        notes.add(note(kind, value=ceiling, why=why, likely=likely))
    for run in runs:
        low, high = float(np.nanmin(run.reward)), float(np.nanmax(run.reward))
        if low < floor or high > ceiling:
            raise InputError(
                f"run '{run.id}' has rewards {low:g} to {high:g}, outside [{floor:g}, {ceiling:g}]",
                path=run.path,
                key="reward_floor" if low < floor else "reward_ceiling",
                advice="Give in pilots.toml the least and the most that the reward can be",
            )
    return float(floor), float(ceiling)


def _refuse_mixed_scales(runs: Sequence[PilotRun], notes: _Notes) -> None:
    """Raise where some runs score up to 1 and others of their task a hundred or so."""
    tops = {run.id: float(np.nanmax(run.reward)) for run in runs}
    for task in dict.fromkeys(run.task for run in runs):  # notes come in the order of the runs
        own = [run for run in runs if run.task == task]
        # Of one task some may count in shares, and those beyond twenty in percent or points.
        small = [run for run in own if 0.2 < tops[run.id] <= 1]
        large = [run for run in own if tops[run.id] > 20.0]
        above = [run for run in own if tops[run.id] > 1.05]  # than rounding makes of 1
        if small and above and not large:
            # A run that touches 1 and never passes it has its ceiling there.
            full = [run for run in small if int(np.sum(run.reward >= FULL)) >= LEAST_FULL]
            parts = {frozenset(run.parts) for run in (*small, *above)}
            if full or len(parts) > 1:
                small, large = full or small, above
            else:
                one, other = small[0].id, above[0].id
                ends: dict[str, Any] = {"small_top": tops[one], "large_top": tops[other]}
                notes.add(note(Kind.ONE_SCALE, small=one, large=other, **ends))
        if small and large:
            raise InputError(
                f"run '{small[0].id}' has rewards up to {tops[small[0].id]:g}, run "
                f"'{large[0].id}' up to {tops[large[0].id]:g}: they are on different scales",
                path=large[0].path,
                key="reward",
                advice="Fit them apart, or give one reward_floor and reward_ceiling in pilots.toml",
            )


def _refuse_constant(runs: Sequence[PilotRun], collapse_steps: Mapping[str, float | None]) -> None:
    """Raise where no reward ever changed: there is no noise either that a rise could hide in."""
    has_lost = any(collapse_steps.get(run.id) is not None for run in runs)
    if has_lost or any(np.nanmin(run.reward) < np.nanmax(run.reward) for run in runs):
        return
    raise FlatRewardError(
        "reward is the same in every row in "
        f"{'the only run' if len(runs) == 1 else f'all {len(runs)} runs'}: "
        "there is no curve to learn from",
        path=runs[0].path,
        key="reward",
        advice=_next_pilot(runs),
    )


def _next_pilot(runs: Sequence[PilotRun]) -> str:
    """What to run next where nothing moved: a faster pilot, else easier prompts."""
    best = max(runs, key=lambda run: run.hyperparameters.learning_rate or 0.0)
    rate, group = best.hyperparameters.learning_rate, best.hyperparameters.group_size
    if not any(np.any(np.nan_to_num(run.reward)) for run in runs):
        return (
            "No completion was ever rewarded. Check the reward function and the parser of answers; "
            "then take easier prompts, or a reward with steps between nothing and all"
        )
    trainer = Trainer.named(best.framework)
    faster = f"{trainer.setting_name('learning_rate')} = {FASTER * (rate or 0.0):.3g}"
    same = f", {trainer.setting_name('group_size')} = {group}" if group else ""
    return (
        f"Next pilot: {faster}{same}, all else as in '{best.id}' ({FASTER:g} times its rate), and "
        "as long. Check first that groups are not all right or all wrong (frac_reward_zero_std)"
    )


def _one_size(runs: Sequence[PilotRun], model: str) -> float:
    sizes = {run.parameters for run in runs}
    if len(sizes) > 1:
        raise InputError(
            f"model '{model}' is given with {len(sizes)} sizes: {sorted(s for s in sizes if s)}",
            key="parameters",
            advice="Give every model one name per size",
        )
    return float(next(iter(sizes)) or 0)


def _factors(run: PilotRun, settings: Settings) -> FloatArray:
    """Learning rate over its peak for each optimizer step: as logged, else from the schedule."""
    steps = int(run.step[-1])
    logged = run.series.get("learning_rate")
    if logged is not None and np.isfinite(logged).sum() > 1:
        known = np.isfinite(logged)
        grid = np.arange(1, steps + 1, dtype=float)
        factors = np.interp(grid, run.step[known], logged[known]) / settings.learning_rate
        return np.asarray(np.clip(factors, 0.0, 1.0))
    return planned_factors(settings, steps)


def _bin(
    index: int,
    run: PilotRun,
    settings: Settings,
    factors: FloatArray,
    healthy_until: float | None,
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """Average a run's rows into bins: mean reward, mean clock, effective rows."""
    floor, ceiling = bounds
    keep = np.isfinite(run.reward)
    if healthy_until is not None:
        # The first row stays even when collapse is immediate: it still tells the start.
        keep &= (run.step <= healthy_until) | (run.step == run.step[keep][0])
    step, reward = run.step[keep], (run.reward[keep] - floor) / (ceiling - floor)
    # A row that averages a logging window speaks for the policies of that whole window.
    offsets = np.arange(run.logging_steps, dtype=float)
    used = policy_steps(
        np.maximum(step[:, None] - offsets, 1.0),
        settings.minibatches_per_refresh,
        settings.epochs_per_refresh,
        settings.lag,
    )
    clock = _clock(factors, used)
    edges = _edges(step.size)
    sizes = np.array([part.size for part in edges], dtype=float)
    mean = np.array([reward[part].mean() for part in edges])
    # Epochs score the same completions again: only new ones count as information.
    rows = np.maximum(sizes * run.logging_steps / settings.epochs_per_refresh, 1.0)
    level = _smooth(mean, sizes)
    prompts = rows * settings.prompts_per_step
    completions = prompts * settings.group_size
    chance = level * (1 - level)
    within = _within_groups(run, keep, edges, chance, ceiling - floor)
    is_known = np.isfinite(within)
    return {
        "run_of_bin": np.full(sizes.size, index, dtype=np.int64),
        "reward": mean,
        "noise_per_completion": np.where(is_known, 0.0, chance / completions),
        "noise_per_prompt": np.where(is_known, 0.0, chance / prompts),
        "noise_known": np.where(is_known, within / completions + (chance - within) / prompts, 0.0),
        "step": np.array([step[part].mean() for part in edges]),
        "clock": np.array([clock[part].mean(axis=0) for part in edges]),
    }


def _edges(rows: int) -> list[IntArray]:
    """Rows of each bin: few at the start, more later, at least one; none of no rows."""
    bins = min(MAX_BINS, rows)
    if not bins:
        return []
    # A curve is steepest at its start, where a bin must be short.
    ends = np.ceil(rows * (np.arange(1, bins) / bins) ** 1.5 - 1e-9).astype(int)
    ends = np.maximum(ends, np.arange(1, bins))
    return np.split(np.arange(rows), np.minimum(ends, rows - bins + np.arange(1, bins)))


def _within_groups(
    run: PilotRun, keep: BoolArray, edges: Sequence[IntArray], chance: FloatArray, scale: float
) -> FloatArray:
    """Variance within groups of each bin, NaN where the spread was not logged."""
    spread = run.series.get("reward_std_within_group")
    if spread is None:
        return np.full(chance.shape, np.nan)
    spread = spread[keep] / scale
    silent = run.series.get("silent_group_share")
    # Without the share of silent groups they are taken to be silent or as spread as all.
    speaking = np.full(spread.shape, np.nan) if silent is None else 1 - silent[keep]
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(speaking > 0, spread**2 / speaking, 0.0)
        variance = np.where(np.isfinite(speaking), variance, np.nan)
        out = np.array([_mean(variance[part]) for part in edges])
        guess = np.array([_mean(spread[part]) for part in edges]) * np.sqrt(chance)
    return np.asarray(np.minimum(np.where(np.isfinite(out), out, guess), chance))


def _mean(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def _eval_bounds(runs: Sequence[PilotRun], floor: float, ceiling: float) -> tuple[float, float]:
    """Bounds of the held-out reward: those of the train reward where it lies within them."""
    seen = np.concatenate([run.eval_reward for run in runs])
    seen = seen[np.isfinite(seen)]
    if not seen.size or (seen.min() >= floor and seen.max() <= ceiling):
        return floor, ceiling
    low, high = float(min(0.0, seen.min())), float(max(1.0, seen.max()))
    return low, high if high <= 1 else high + 0.25 * (high - low)


def _evaluations(
    index: int,
    run: PilotRun,
    factors: FloatArray,
    healthy_until: float | None,
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """Average a run's evaluations into bins; one at step t tests the policy after t steps."""
    keep = np.isfinite(run.eval_reward)
    if healthy_until is not None:
        keep &= run.eval_step <= healthy_until
    floor, ceiling = bounds
    step, reward = run.eval_step[keep], (run.eval_reward[keep] - floor) / (ceiling - floor)
    clock = _clock(factors, step[:, None])
    edges = _edges(step.size)
    return {
        "run_of_eval": np.full(len(edges), index, dtype=np.int64),
        "eval_reward": np.array([reward[part].mean() for part in edges]),
        "eval_clock": np.array([clock[part].mean(axis=0) for part in edges]).reshape(-1, 4),
    }


def _smooth(mean: FloatArray, sizes: FloatArray) -> FloatArray:
    """Three-bin average kept off 0 and 1, for the Bernoulli variance of a bin."""

    def three(values: FloatArray) -> FloatArray:
        return np.convolve(values, np.ones(3))[1 : 1 + values.size]

    return np.clip(three(mean * sizes) / three(sizes), 0.02, 0.98)


def _column(settings: Sequence[Settings], name: str) -> FloatArray:
    return np.array([getattr(setting, name) for setting in settings], dtype=float)
