"""Which log belongs to which planned pilot, and what the plan tells that a log does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from advisor.advice.cost import fresh_completions
from advisor.advice.pilot_plan import PilotPlan, PlannedPilot
from advisor.runs import LEAST_REWARDS, WHY, PartialSettings, PilotRun, Settings, needs

SAME_RATE = 0.01
"""Share by which the learning rate of a log may differ from that of its planned pilot."""


@dataclass(frozen=True)
class PlannedLogs:
    """The logs of a plan."""

    planned: dict[str, PilotRun]
    others: tuple[PilotRun, ...]
    said: tuple[str, ...]

    @property
    def runs(self) -> list[PilotRun]:
        """All of them."""
        return [*self.planned.values(), *self.others]

    @property
    def fitted(self) -> list[PilotRun]:
        """Those that hold what a fit needs."""
        return [run for run in self.runs if not why_not(run)]


def why_not(run: PilotRun) -> str:
    """Why a run cannot be fitted; empty where it can."""
    if run.is_eval_only:
        return "it holds evaluations and no train reward"
    if int(np.isfinite(run.reward).sum()) < LEAST_REWARDS:
        return f"it has fewer than {LEAST_REWARDS} rewards"
    return WHY[needs(run)[0]] if needs(run) else ""


def match_logs(plan: PilotPlan, runs: Sequence[PilotRun]) -> PlannedLogs:
    """Match logs to planned pilots: by their folder or their name, else by their settings."""
    said: list[str] = []
    planned: dict[str, PilotRun] = {}
    left = []
    longest_first = sorted(runs, key=lambda run: -_last(run))
    for run in longest_first:
        if run.copy_of is not None:
            said.append(f"run '{run.id}' repeats '{run.copy_of}' and does not count")
            continue
        pilot = next((one for one in plan.pilots if one.name in _names(run)), None)
        if pilot is None or pilot.name in planned:
            left.append(run)
            continue
        planned[pilot.name] = run
        said += _differences(run, pilot)
    others = []
    for run in left:
        pilot = next(
            (p for p in plan.pilots if p.name not in planned and _has_settings_of(run, p)), None
        )
        if pilot is None:
            others.append(run)
            said.append(f"run '{run.id}' was not planned; it counts as a pilot all the same")
        else:
            planned[pilot.name] = run
            said.append(f"run '{run.id}' is taken for {pilot.name}, by its settings")
    by_name = {pilot.name: pilot for pilot in plan.pilots}
    tasks = {run.task for run in planned.values()} - {None}
    task = str(tasks.pop()) if len(tasks) == 1 else plan.task
    found = PlannedLogs(
        {
            pilot.name: _completed(planned[pilot.name], by_name[pilot.name], task, said)
            for pilot in plan.pilots
            if pilot.name in planned
        },
        tuple(_pooled(run, plan, task) for run in sorted(others, key=lambda run: run.id)),
        (),
    )
    said += [f"run '{r.id}' is left out of the fit: {why_not(r)}" for r in found.runs if why_not(r)]
    return PlannedLogs(found.planned, found.others, tuple(said))


def _names(run: PilotRun) -> set[str]:
    """Folders that a log lies in, and the name that a tracker has for the run."""
    return {*Path(run.path).parts, run.id.rpartition(":")[2]}


def price_of(plan: PilotPlan, settings: Settings, parameters: float, steps: float) -> float:
    """Price of some steps as a share of the full run's: by completions and by model size."""
    batch = fresh_completions(settings) / fresh_completions(plan.settings)
    return steps / plan.steps * parameters / plan.parameters * batch


def _last(run: PilotRun) -> float:
    return float(run.step[-1]) if run.step.size else 0.0


def _same_model(logged: str | None, planned: str) -> bool:
    """Whether a log may be of a model; hubs and folders stand before its name."""
    return logged is None or _short(logged) == _short(planned)


def _short(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2].casefold()


def _has_settings_of(run: PilotRun, pilot: PlannedPilot) -> bool:
    own, planned = run.hyperparameters, pilot.settings
    if own.learning_rate is None:
        return False
    return (
        abs(own.learning_rate / planned.learning_rate - 1) <= SAME_RATE
        and own.group_size in (None, planned.group_size)
        and own.refresh_interval in (None, planned.refresh_interval)
        and _same_model(run.model, pilot.model)
    )


def _differences(run: PilotRun, pilot: PlannedPilot) -> list[str]:
    """What the log in a pilot's folder says against the plan; the log counts."""
    own, planned = run.hyperparameters, pilot.settings
    told = []
    if own.learning_rate is not None and not _has_settings_of(
        run.with_updates(
            hyperparameters=PartialSettings(learning_rate=own.learning_rate), model=None
        ),
        pilot,
    ):
        told.append(f"learning rate {own.learning_rate:.3g}, not {planned.learning_rate:.3g}")
    for name, what in (("group_size", "group size"), ("refresh_interval", "refresh interval")):
        value = getattr(own, name)
        if value not in (None, getattr(planned, name)):
            told.append(f"{what} {value}, not {getattr(planned, name)}")
    if not _same_model(run.model, pilot.model):
        told.append(f"model {run.model}, not {pilot.model}")
    if not told:
        return []
    return [f"the log of {pilot.name} says {'; '.join(told)}: it counts as what its log says"]


def _completed(run: PilotRun, pilot: PlannedPilot, task: str, said: list[str]) -> PilotRun:
    """Run with what its plan tells and its log does not."""
    own = run.hyperparameters
    lacking = {
        name: value
        for name, value in pilot.settings.model_dump(exclude_none=True).items()
        if getattr(own, name) is None
    }
    asked = [name for name in needs(run) if name in lacking or name == "parameters"]
    is_planned = _same_model(run.model, pilot.model)
    if asked and (is_planned or "parameters" not in asked):
        said.append(f"the log of {pilot.name} does not tell {', '.join(asked)}: taken as planned")
    completed = own.model_copy(update=lacking)
    changes: dict[str, object] = {"hyperparameters": completed, "task": task}
    if is_planned:
        changes |= {"model": pilot.model, "parameters": pilot.parameters}
    interval = completed.refresh_interval
    if run.step_unit == "refresh" and interval is not None:
        changes |= {
            "step": run.step * interval,
            "eval_step": run.eval_step * interval,
            "logging_steps": run.logging_steps * interval,
            "step_unit": "optimizer",
        }
    return run.with_updates(**changes)


def _pooled(run: PilotRun, plan: PilotPlan, task: str) -> PilotRun:
    """Run that no plan knows, under the names that the planned ones have."""
    sizes = {pilot.model: pilot.parameters for pilot in plan.pilots} | {plan.model: plan.parameters}
    same = next((m for m in sizes if run.model is not None and _same_model(run.model, m)), None)
    changes: dict[str, object] = {"task": run.task or task}
    if same is not None:
        changes |= {"model": same, "parameters": sizes[same]}
    return run.with_updates(**changes)
