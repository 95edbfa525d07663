"""Which of the posterior's models a run is, and in what it differs from its pilots."""

from __future__ import annotations

import numpy as np

from advisor.errors import InputError
from advisor.forecast import ObservedRun, peak_rate
from advisor.model import Meta
from advisor.runs import PilotRun

CHANGED_RATE = 1.01
"""Logged over given learning rate from which the difference is said."""


def named(run: PilotRun, meta: Meta) -> tuple[PilotRun, list[str]]:
    """Name task, model and size of a run where the posterior leaves no choice, with notes."""
    groups = meta.groups
    held = ", ".join(f"{model} on {task}" for task, model in groups)
    left = [
        (task, model)
        for task, model in groups
        if run.task in (None, task) and run.model in (None, model)
    ]
    known = _task(run, meta)
    if not left and run.model is not None and known is not None:
        return _new_model(run, known)
    if not left:
        raise InputError(
            f"no pilot trained {run.model or 'a model without a name'} on "
            f"{run.task or 'a task without a name'}; the posterior holds {held}",
            path=run.path,
            argument="task, model",
            advice="Name them as the pilots do, or pilot this one",
        )
    if len(left) > 1:
        raise InputError(
            f"the log does not name its task and model; the posterior holds {held}",
            path=run.path,
            argument="task, model",
            advice="Give `task` and `model`",
        )
    task, model = left[0]
    notes = []
    if run.task is None or run.model is None:
        notes.append(f"taken for {model} on {task}, the only one the posterior holds")
    size = meta.group_parameters[groups.index((task, model))]
    return run.with_updates(task=task, model=model, parameters=size), notes


def _task(run: PilotRun, meta: Meta) -> str | None:
    """Return the run's task where pilots trained it, or the only one that they trained."""
    if run.task is None:
        return meta.tasks[0] if len(meta.tasks) == 1 else None
    return run.task if run.task in meta.tasks else None


def _new_model(run: PilotRun, task: str) -> tuple[PilotRun, list[str]]:
    """Run of a model that no pilot trained: the size places it among those that were."""
    if run.parameters is None:
        raise InputError(
            f"no pilot trained {run.model} on {task}, and its size is not known",
            path=run.path,
            argument="parameters",
            advice="Give `parameters`, or another `model` if it has another name there",
        )
    note = f"no pilot trained {run.model}: its forecast rests on the other models and its own rows"
    return run.with_updates(task=task), [note]


def differences(run: PilotRun, observed: ObservedRun, meta: Meta, *, is_fitted: bool) -> list[str]:
    """What the reader of a forecast should know about this run."""
    notes = list(run.warnings)
    given = run.hyperparameters.learning_rate
    highest = peak_rate(run)
    if given is not None and highest is not None and highest > CHANGED_RATE * given:
        notes.append(f"the log shows a learning rate of {highest:g}, the settings {given:g}")
    if not is_fitted and run.id in {pilot.id for pilot in meta.runs}:
        notes.append("a pilot has the same name: if it is this run, its rows count twice")
    if observed.last >= observed.end:
        notes.append("the planned steps are done")
    lost = int(np.sum(~np.isfinite(run.reward)))
    if lost:
        notes.append(f"{lost} of {run.reward.size} rewards are not finite and were left out")
    return notes
