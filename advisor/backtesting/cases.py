"""What is asked: cohorts of finished runs, or a model left out, and how each run ended."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.forecast import FINAL_SHARE, final_rows
from advisor.runs import PilotRun
from advisor.theory import FloatArray

COHORT = 10  # Runs of one cohort
FEWEST = 4  # Runs from which those of one task and model are a cohort of their own
LEAST_ROWS = 20  # Rows of a run from which its end can be told apart from its beginning


class Case(NamedTuple):
    """One run: what is seen of it, at which steps it is predicted, and its outcome."""

    seen: PilotRun
    steps: FloatArray  # (times,)
    target: float  # mean train reward of these steps
    held_out: float | None = None  # mean of the evaluations of its last tenth, in their units


class CohortCases(NamedTuple):
    """Runs that are forecast together."""

    name: str
    cases: tuple[Case, ...]
    bounds: tuple[float, float]


def make_cases(
    runs: Sequence[PilotRun], seen: float, *, least_steps: float = 0
) -> tuple[list[CohortCases], list[str]]:
    """Cut finished runs into cohorts and each run into what is seen and what is asked."""
    finished, left_out = finished_runs(runs, least_steps)
    cohorts = []
    for name, members in grouped(finished):
        cases = []
        for run in members:
            rewards = int(np.isfinite(run.reward[run.step <= seen * run.step[-1]]).sum())
            if rewards >= PilotRun.LEAST_REWARDS:
                cases.append(cut(run, seen))
            else:
                what = f"{rewards} rewards in its first {seen:.0%}"
                left_out.append(f"{run.id}: {what} (a forecast needs {PilotRun.LEAST_REWARDS})")
        if cases:
            cohorts.append(CohortCases(name, tuple(cases), bounds_of(members)))
    return cohorts, left_out


def grouped(runs: Sequence[PilotRun]) -> list[tuple[str, list[PilotRun]]]:
    """Cohorts of finished runs by name: at most ten runs each, as :func:`make_cases` says."""
    parts, numbers = [], Counter[str]()
    for name, members in _groups(runs):
        shuffled = _shuffled(members)
        for at in range(0, len(shuffled), COHORT):
            numbers[name] += 1
            parts.append((f"{name} {numbers[name]}", shuffled[at : at + COHORT]))
    return parts


def finished_runs(
    runs: Sequence[PilotRun], least_steps: float = 0
) -> tuple[list[PilotRun], list[str]]:
    """Runs that can be asked about, and why each of the others cannot."""
    finished, left_out = [], []
    for run in runs:
        why = _unusable(run, least_steps)
        if why:
            left_out.append(f"{run.id}: {why}")
        else:
            finished.append(run)
    return finished, left_out


def nothing_to_ask(left_out: Sequence[str]) -> InputError:
    """What to say where every run was left out."""
    example = f" ({len(left_out)} left out; for example {left_out[0]})" if left_out else ""
    advice = f"Give finished runs with settings and {LEAST_ROWS} or more logged rewards"
    return InputError(f"no run can be asked about{example}", advice=advice)


def cut(run: PilotRun, seen: float) -> Case:
    """Cut one run."""
    asked, tested = final_rows(run), run.eval_step > (1 - FINAL_SHARE) * run.step[-1]
    came = run.eval_reward[tested]
    held_out = float(came.mean()) if came.size else None
    reward = float(np.nanmean(run.reward[asked]))
    return Case(run.first_part(seen), run.step[asked], reward, held_out)


def is_lora(run: PilotRun) -> bool:
    """Whether a run trains an adapter, as its settings have it."""
    return run.hyperparameters.adapter == "lora"


def bounds_of(runs: Sequence[PilotRun]) -> tuple[float, float]:
    """Floor and ceiling of the reward, over whole runs."""
    floors = [0.0 if run.reward_floor is None else run.reward_floor for run in runs]
    ceilings = [1.0 if run.reward_ceiling is None else run.reward_ceiling for run in runs]
    logged = np.concatenate([run.reward for run in runs])
    low, high = float(np.nanmin(logged)), float(np.nanmax(logged))
    stated = any(run.reward_ceiling is not None for run in runs)
    return min(*floors, low), max(ceilings) if stated else max(1.0, high)


def same_scale(runs: Sequence[PilotRun]) -> list[list[PilotRun]]:
    """Runs whose rewards are on one scale, together; in the order given."""
    span = np.array([np.diff(bounds_of([run]))[0] for run in runs])
    parts: list[list[int]] = []
    for index in np.argsort(span, kind="stable").tolist():
        # Up to three times as wide: a run that never learned shows only part of its scale.
        if not parts or span[index] > 3.0 * span[parts[-1][0]]:
            parts.append([])
        parts[-1].append(index)
    return [[runs[index] for index in sorted(part)] for part in parts]


def _unusable(run: PilotRun, least_steps: float) -> str:
    if run.is_eval_only:
        return "only evaluations, no train reward"
    if run.copy_of is not None:
        return f"a copy of {run.copy_of}"
    own = run.hyperparameters
    # Samples of the policy itself need no correction.
    if own.importance_ratio is False and not (own.refresh_interval == 1 and not own.lag):
        return "stale samples are not corrected by an importance ratio"
    if run.needs:
        return f"needs {', '.join(run.needs)}"
    if run.step[-1] < least_steps:
        return f"only {run.step[-1]:g} optimizer steps"
    known = np.isfinite(run.reward)
    if int(known.sum()) < LEAST_ROWS:
        return f"only {int(known.sum())} rows"
    if not known[final_rows(run)].any():
        return "no reward in its last tenth"
    return ""


def _groups(runs: Sequence[PilotRun]) -> list[tuple[str, list[PilotRun]]]:
    """Runs that belong together, by the name of their cohorts."""
    groups, rest = [], list(runs)
    for key in (_file_and_model, _model, _folder_and_task):
        parts: dict[Hashable, list[PilotRun]] = {}
        for run in rest:
            parts.setdefault(key(run), []).append(run)
        least = 1 if key is _folder_and_task else FEWEST
        groups += [part for part in parts.values() if len(part) >= least]
        rest = [run for part in parts.values() if len(part) < least for run in part]
    return [(_name(part), part) for group in groups for part in same_scale(group)]


def _file_and_model(run: PilotRun) -> Hashable:
    return run.path, _model(run)


def _model(run: PilotRun) -> Hashable:
    return run.task, run.model, is_lora(run)


def _folder_and_task(run: PilotRun) -> Hashable:
    if run.task is None:  # nothing says that two models were trained on the same
        return _model(run)
    return Path(run.path).parent, run.task, is_lora(run)


def _name(runs: Sequence[PilotRun]) -> str:
    models = {run.model for run in runs}
    task, model = runs[0].task or PilotRun.UNNAMED_TASK, runs[0].model or PilotRun.UNNAMED_MODEL
    return f"{task} / {model if len(models) == 1 else f'{len(models)} models'}"


def _shuffled(runs: Sequence[PilotRun]) -> list[PilotRun]:
    shuffled = list(runs)
    random.Random(0).shuffle(shuffled)
    return shuffled
