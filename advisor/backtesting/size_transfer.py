"""Leave one model out: forecast its runs from pilots of other models, by their settings alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from advisor.backtesting.backtests import (
    ADVISOR,
    CURVES,
    STAGE,
    check_shares,
    chosen_preset,
    collected,
    last_value,
)
from advisor.backtesting.cases import (
    FEWEST,
    Case,
    bounds_of,
    cut,
    finished_runs,
    is_lora,
    nothing_to_ask,
    same_scale,
)
from advisor.backtesting.scores import Backtest, Prediction, Question, predict
from advisor.common import EngineSettings, Item, Progress, digest_of, mapped, progress_of
from advisor.errors import InputError
from advisor.forecast import DRAWS, Target, curve_fit, fit, new_run_reward
from advisor.model import Posterior, Priors, Sampling
from advisor.runs import LEAST_REWARDS, UNNAMED_MODEL, UNNAMED_TASK, PilotRun, run_digest
from advisor.theory import FloatArray

ELSEWHERE = 8
"""Pilots of other models in one fit."""

AT_TARGET = (0, 2)
"""Pilots of the model that is forecast."""


class Transfer(NamedTuple):
    """One fit: pilots, and the runs of the left-out model that are forecast from it."""

    name: str
    elsewhere: tuple[PilotRun, ...]
    at_target: tuple[PilotRun, ...]
    held_out: tuple[PilotRun, ...]
    bounds: tuple[float, float]


def transfer(
    runs: Sequence[PilotRun],
    *,
    seen: float = 0.25,
    priors: Priors | str | None = None,
    least_steps: float = 0,
    sampling: Sampling | None = None,
    progress: bool | Progress | None = None,
    on: EngineSettings | None = None,
) -> Backtest:
    """Ask how well runs of a model would have been forecast from pilots of other models."""
    (share,) = check_shares(seen)
    preset = chosen_preset(runs, priors)
    fits, left_out = _plans(runs, share, least_steps)
    items = []
    for plan in fits:
        for count in AT_TARGET[: 2 if plan.at_target else 1]:
            task = TransferTask(plan, share, count, preset, sampling or Sampling())
            items.append(Item(task.name, task, task.marks))
    found = mapped(transferred, items, task=STAGE, progress=progress_of(progress), **(on or {}))
    whole = collected(found, left_out)
    by_pilots = sorted(whole.predictions, key=lambda p: p.pilots or 0)
    return replace(whole, predictions=tuple(by_pilots))


class TransferTask(NamedTuple):
    """One fit of a plan, with so many pilots of the model itself: all that it turns on."""

    plan: Transfer
    share: float
    own_pilots: int
    preset: Priors
    sampling: Sampling

    @property
    def name(self) -> str:
        """Plan and number of pilots."""
        return f"{self.plan.name}, {self.own_pilots} pilots of its own"

    @property
    def marks(self) -> tuple[str, ...]:
        """Digests of data, priors and seed."""
        plan = self.plan
        parts = (plan.elsewhere, plan.at_target, plan.held_out)
        return (
            digest_of([[run_digest(run) for run in part] for part in parts], plan.bounds),
            digest_of(self.share, self.own_pilots),
            digest_of(self.preset.model_dump(mode="json")),
            digest_of(self.sampling.model_dump(mode="json")),
        )


def transferred(task: TransferTask) -> dict[str, Any]:
    """Predictions of all methods from one fit, as JSON holds them."""
    plan, share, count, preset, sampling = task
    pilots = [cut(run, share) for run in (*plan.elsewhere, *plan.at_target[:count])]
    try:
        posterior = fit([pilot.seen for pilot in pilots], priors=preset, sampling=sampling)
    except InputError as error:  # what is seen of them teaches nothing
        left_out = [f"{task.name}: {error.problem}"]
        return {"predictions": [], "left_out": left_out, "uncurved": []}
    own = _forecasts(plan, share, count, pilots, posterior)
    return {"predictions": own, "left_out": [], "uncurved": []}


def _plans(
    runs: Sequence[PilotRun], share: float, least_steps: float
) -> tuple[list[Transfer], list[str]]:
    finished, left_out = finished_runs(runs, least_steps)
    tasks: dict[tuple[str | None, bool], list[PilotRun]] = {}
    for run in finished:
        tasks.setdefault((run.task, is_lora(run)), []).append(run)
    plans: list[Transfer] = []
    for members in (part for task in tasks.values() for part in same_scale(task)):
        models = list(dict.fromkeys(run.model for run in members))
        if len(models) == 1:
            left_out += [f"{run.id}: no other model was trained on its task" for run in members]
            continue
        for model in models:
            own = [run for run in members if run.model == model]
            plans += _plans_of(own, [run for run in members if run.model != model], share)
    if plans:
        return plans, left_out
    if finished:
        raise InputError(
            f"no task has runs of two models ({len(finished)} finished runs, "
            f"{len(tasks)} task{'s' if len(tasks) > 1 else ''})",
            advice="Give runs of one task on two or more models, or name their tasks and models "
            "in pilots.toml",
        )
    raise nothing_to_ask(left_out)


def _plans_of(own: Sequence[PilotRun], others: Sequence[PilotRun], share: float) -> list[Transfer]:
    """Sets of pilots elsewhere, each with two of the left-out model and the runs it forecasts."""
    own, others = ([run for run in _shuffled(part) if _shows(run, share)] for part in (own, others))
    count = max(AT_TARGET)
    plans = []
    for number, at in enumerate(range(0, len(others), ELSEWHERE)):
        elsewhere = others[at : at + ELSEWHERE]
        if number and len(elsewhere) < FEWEST:
            break
        first = count * number % max(len(own) - count + 1, 1)
        at_target = own[first : first + count] if len(own) > count else []
        plans.append(
            Transfer(
                f"{own[0].task or 'task'} / {own[0].model or 'model'} from others {number + 1}",
                tuple(elsewhere),
                tuple(at_target),
                tuple(run for run in own if not any(run is pilot for pilot in at_target)),
                bounds_of([*own, *others]),
            )
        )
    return plans


def _shuffled(runs: Sequence[PilotRun]) -> list[PilotRun]:
    shuffled = list(runs)
    random.Random(0).shuffle(shuffled)
    return shuffled


def _shows(run: PilotRun, share: float) -> bool:
    return int(np.isfinite(run.reward[run.step <= share * run.step[-1]]).sum()) >= LEAST_REWARDS


def _forecasts(
    plan: Transfer, share: float, count: int, pilots: Sequence[Case], posterior: Posterior
) -> list[Prediction]:
    floor, ceiling = posterior.meta.floor, posterior.meta.ceiling
    rng = np.random.default_rng(0)
    anywhere = rng.choice(np.concatenate([last_value(pilot, rng) for pilot in pilots]), DRAWS)
    predictions = []
    for number, run in enumerate(plan.held_out):
        case = cut(run, share)
        question = Question(plan.name, run.id, share, count, plan.bounds, case.target)
        target = Target(
            run.task or UNNAMED_TASK, run.model or UNNAMED_MODEL, float(run.parameters or 0)
        )
        settings = run.hyperparameters.completed()
        draws = {
            ADVISOR: new_run_reward(posterior, target, settings, case.steps, seed=number),
            "mean of the pilots": anywhere,
        }
        nearest = min(pilots, key=lambda pilot: _distance(pilot.seen, run))._replace(
            steps=case.steps
        )
        draws["nearest, last value"] = last_value(nearest, rng)
        for name, curve in CURVES.items():
            fitted = curve_fit(nearest.seen, nearest.steps, curve, (floor, ceiling), rng)
            draws[f"nearest, {name}"] = fitted[0]
        predictions += [predict(name, question, values) for name, values in draws.items()]
    return predictions


def _distance(one: PilotRun, other: PilotRun) -> float:
    """Distance of two runs' settings: in logs of learning rate, batch and refresh interval."""
    return float(np.linalg.norm(_place(one) - _place(other)))


def _place(run: PilotRun) -> FloatArray:
    settings = run.hyperparameters.completed()
    values = (
        settings.learning_rate,
        settings.group_size,
        settings.prompts_per_step,
        settings.refresh_interval,
    )
    return np.asarray(np.log(values))
