"""What the pilots of a plan are judged by: their logs, a posterior, and the decision to make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from advisor.advice.candidates import Lattice, default_lattice, within_reach
from advisor.advice.cost import fresh_completions
from advisor.advice.pilot_choice import FEW_PROJECTS, Action, Worth
from advisor.advice.pilot_plan import DRAWS, PilotPlan, PlannedPilot, believed, ladder
from advisor.advice.promotion import goes_on
from advisor.diagnosis import Collapse
from advisor.errors import InputError
from advisor.forecast import Forecaster, RunEffect, Target
from advisor.model import Posterior, Priors, outside_evidence, preset_names
from advisor.runs import PilotRun, Settings

SAME_RATE = 0.01
"""Share by which the learning rate of a log may differ from that of its planned pilot."""


@dataclass(frozen=True)
class PlannedLogs:
    """The logs of a plan: by pilot, those of no pilot, and what is to be said of them."""

    planned: dict[str, PilotRun]
    others: tuple[PilotRun, ...]
    said: tuple[str, ...]

    @property
    def runs(self) -> list[PilotRun]:
        """All of them."""
        return [*self.planned.values(), *self.others]


def why_not(run: PilotRun) -> str:
    """Why a run cannot be fitted; empty where it can."""
    if run.is_eval_only:
        return "it holds evaluations and no train reward"
    if int(np.isfinite(run.reward).sum()) < PilotRun.LEAST_REWARDS:
        return f"it has fewer than {PilotRun.LEAST_REWARDS} rewards"
    return next(iter(run.needs.values()), "")


def match_logs(plan: PilotPlan, runs: Sequence[PilotRun]) -> PlannedLogs:
    """Match logs to planned pilots: by their folder or their name, else by their settings."""
    notes: list[str] = []
    matched: dict[str, PilotRun] = {}
    left, others = [], []
    for run in sorted(runs, key=last_step, reverse=True):
        if run.copy_of is not None:
            notes.append(f"run '{run.id}' repeats '{run.copy_of}' and does not count")
            continue
        # Folders that a log lies in, and the name that a tracker has for the run.
        names = {*Path(run.path).parts, run.id.rpartition(":")[2]}
        pilot = next((one for one in plan.pilots if one.name in names), None)
        if pilot is None or pilot.name in matched:
            left.append(run)
            continue
        matched[pilot.name] = run
        notes += _differences(run, pilot)
    for run in left:
        free = (one for one in plan.pilots if one.name not in matched)
        is_known = run.hyperparameters.learning_rate is not None
        pilot = next((one for one in free if is_known and not _differences(run, one)), None)
        if pilot is None:
            others.append(run)
            notes.append(f"run '{run.id}' was not planned; it counts as a pilot all the same")
        else:
            matched[pilot.name] = run
            notes.append(f"run '{run.id}' is taken for {pilot.name}, by its settings")
    tasks = {run.task for run in matched.values()} - {None}
    task = str(tasks.pop()) if len(tasks) == 1 else plan.task
    planned = {
        pilot.name: _completed(matched[pilot.name], pilot, task, notes)
        for pilot in plan.pilots
        if pilot.name in matched
    }
    pooled = tuple(_pooled(run, plan, task) for run in sorted(others, key=lambda run: run.id))
    for run in (*planned.values(), *pooled):
        if why := why_not(run):
            notes.append(f"run '{run.id}' is left out of the fit: {why}")
    return PlannedLogs(planned, pooled, tuple(notes))


def last_step(run: PilotRun) -> int:
    """Optimizer steps that a log shows."""
    return int(run.step[-1]) if run.step.size else 0


def is_finished(run: PilotRun, steps: int) -> bool:
    """Whether a log has reached its end, as near as its rows tell."""
    return last_step(run) + run.logging_steps > steps


def price_of(plan: PilotPlan, settings: Settings, parameters: float, steps: float) -> float:
    """Price of some steps as a share of the full run's: by completions and by model size."""
    batch = fresh_completions(settings) / fresh_completions(plan.settings)
    return steps / plan.steps * parameters / plan.parameters * batch


def _is_same_model(logged: str | None, planned: str) -> bool:
    """Whether a log may be of a model; hubs and folders stand before its name."""

    def short(model: str) -> str:
        return model.rstrip("/").rpartition("/")[2].casefold()

    return logged is None or short(logged) == short(planned)


def _differences(run: PilotRun, pilot: PlannedPilot) -> list[str]:
    """What the log in a pilot's folder says against the plan; the log counts."""
    own, planned = run.hyperparameters, pilot.settings
    found = []
    rate = own.learning_rate
    if rate is not None and not abs(rate / planned.learning_rate - 1) <= SAME_RATE:
        found.append(f"learning rate {rate:.3g}, not {planned.learning_rate:.3g}")
    for name, what in (("group_size", "group size"), ("refresh_interval", "refresh interval")):
        if getattr(own, name) not in (None, getattr(planned, name)):
            found.append(f"{what} {getattr(own, name)}, not {getattr(planned, name)}")
    if not _is_same_model(run.model, pilot.model):
        found.append(f"model {run.model}, not {pilot.model}")
    what = "; ".join(found)
    line = f"the log of {pilot.name} says {what}: it counts as what its log says"
    return [line] if found else []


def _completed(run: PilotRun, pilot: PlannedPilot, task: str, notes: list[str]) -> PilotRun:
    """Run with what its plan tells and its log does not."""
    own = run.hyperparameters
    lacking = {
        name: value
        for name, value in pilot.settings.model_dump(exclude_none=True).items()
        if getattr(own, name) is None
    }
    asked = [name for name in run.needs if name in lacking or name == "parameters"]
    is_planned = _is_same_model(run.model, pilot.model)
    if asked and (is_planned or "parameters" not in asked):
        notes.append(f"the log of {pilot.name} does not tell {', '.join(asked)}: taken as planned")
    completed = own.model_copy(update=lacking)
    changes: dict[str, object] = {"hyperparameters": completed, "task": task}
    if is_planned:
        changes |= {"model": pilot.model, "parameters": pilot.parameters}
    interval = completed.refresh_interval
    if run.step_unit == "refresh" and interval is not None:
        run = run.on_optimizer_steps(interval)
    return run.with_updates(**changes)


def _pooled(run: PilotRun, plan: PilotPlan, task: str) -> PilotRun:
    """Run that no plan knows, under the names that the planned ones have."""
    sizes = {pilot.model: pilot.parameters for pilot in plan.pilots} | {plan.model: plan.parameters}
    same = next((m for m in sizes if run.model is not None and _is_same_model(run.model, m)), None)
    changes: dict[str, object] = {"task": run.task or task}
    if same is not None:
        changes |= {"model": same, "parameters": sizes[same]}
    return run.with_updates(**changes)


@dataclass(frozen=True)
class Bench:
    """What a plan's pilots are judged by."""

    plan: PilotPlan
    logs: PlannedLogs
    posterior: Posterior
    target: Target
    lattice: Lattice
    worth: Worth
    index: dict[str, int]  # of the runs that were fitted; without any the preset stands alone
    deaths: tuple[tuple[str, Settings], ...]
    seed: int

    def fatal(self, settings: Settings) -> str | None:
        """Name of a pilot that died at no higher rate than this, all else equal."""
        return next((name for name, died in self.deaths if _is_fatal(settings, died)), None)

    def died_at(self, run: PilotRun) -> float | None:
        """Step at which a run died, or None."""
        fitted = self.index.get(run.id)
        if fitted is not None:
            return self.posterior.meta.runs[fitted].collapse_onset
        verdict = Collapse.of_cohort([run]).get(run.id)
        return None if verdict is None else verdict.fell_from

    def action(self, number: int, pilot: PlannedPilot) -> Action | None:
        """What can be done next with a planned pilot, what it would show, and its price."""
        run = self.logs.planned.get(pilot.name)
        kind: Literal["start", "continue", "extend"] = "start"
        settings, begun, last = pilot.settings, 0, pilot.steps
        if self.died_at(run) is not None if run else self.fatal(settings):
            return None
        fitted = None if run is None else self.index.get(run.id)
        if run is not None:
            kind, settings, begun = "continue", run.hyperparameters.completed(), last_step(run)
            if is_finished(run, pilot.steps):
                if not goes_on(settings) or fitted is None:
                    return None
                # It is as long as the pilot; one that has begun goes on to its end.
                kind, last = "extend", (max(begun, pilot.steps) // pilot.steps + 1) * pilot.steps
        of: Any = pilot if fitted is None else self.posterior.meta.runs[fitted]
        forecaster = Forecaster(
            self.posterior,
            Target(self.target.task, of.model, of.parameters),
            draws=DRAWS,
            seed=self.seed,
            # The effects that were fitted to it, else a seed of its own.
            run_effect=RunEffect.fresh((self.seed, 1 + number))
            if fitted is None
            else RunEffect.of_pilot(fitted),
        )
        price = price_of(self.plan, settings, pilot.parameters, last - begun)
        return Action.of(forecaster, pilot.name, kind, settings, (begun, last), price)


def bench_of(
    plan: PilotPlan,
    logs: PlannedLogs,
    posterior: Posterior | None,
    priors: Priors | str | None,
    seed: int,
    spent: float,
) -> Bench:
    """Put together what the pilots are judged by."""
    is_fitted = posterior is not None
    if posterior is None:
        models = [(plan.model, plan.parameters)]
        models += sorted({(p.model, p.parameters) for p in plan.pilots} - set(models))
        posterior = believed(plan.settings, plan.task, models, preset_of(plan, priors), seed)
    meta = posterior.meta
    runs = meta.runs if is_fitted else ()
    index = {run.id: at for at, run in enumerate(runs)}
    known = [meta.runs[index[run.id]] for run in logs.planned.values() if run.id in index]
    task = known[0].task if known else meta.tasks[0]
    deaths = tuple((run.id, run.settings) for run in runs if run.collapse_step is not None)
    died = {name for name, _ in deaths}
    found = [(pilot, logs.planned.get(pilot.name)) for pilot in plan.pilots]
    ended = [run for one, run in found if run and (run.id in died or is_finished(run, one.steps))]
    start = None if (task, plan.model) in meta.groups and is_fitted else plan.start_reward
    target = Target(task, plan.model, plan.parameters, start)
    lattice = Lattice(ladder(plan.settings))
    if is_fitted:
        lattice = default_lattice(posterior, plan.settings, target=target, devices=plan.devices)
        sizes = [run.parameters for run in runs]
        if outside_evidence(meta.priors, plan.settings, plan.parameters, sizes) is not None:
            lattice = within_reach(lattice, meta)
    lattice = Lattice(one for one in lattice if not any(_is_fatal(one, died) for _, died in deaths))
    worth = Worth(
        Forecaster(posterior, target, draws=DRAWS, seed=seed),
        tuple(lattice),
        plan.settings,
        plan.steps,
        spent,
        plan.share - spent,
        tuple(
            (run.settings, int(run.steps))
            for run in runs
            if run.collapse_step is None and run.model == plan.model and goes_on(run.settings)
        ),
        few=FEW_PROJECTS / plan.projects,
        done=len(logs.others) + len(ended),
    )
    return Bench(plan, logs, posterior, target, lattice, worth, index, deaths, seed)


def _is_fatal(settings: Settings, died: Settings) -> bool:
    """Whether a run died at no higher learning rate, with the same group and refresh interval."""
    same = ("group_size", "minibatches_per_refresh", "epochs_per_refresh")
    return (
        all(getattr(settings, name) == getattr(died, name) for name in same)
        and settings.learning_rate >= (1 - SAME_RATE) * died.learning_rate
    )


def preset_of(plan: PilotPlan, priors: Priors | str | None) -> Priors | str:
    """Preset that was given, or that of the plan where its name tells it."""
    if priors is None and plan.priors not in preset_names():
        raise InputError(
            f"the plan was made under preset '{plan.priors}', which is not one that comes with the "
            "package",
            argument="priors",
            advice="Give its file again",
        )
    return plan.priors if priors is None else priors
