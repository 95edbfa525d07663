"""Which model and task the advice is for."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose

from advisor.errors import InputError
from advisor.model import Meta, Posterior, RunSummary
from advisor.runs import PilotRun

MOST_PARAMETERS = 1e14  # Parameters of a model beyond which a number is a mistake of units
ROUNDED = 0.1  # Share by which names round sizes: 1.54e9 parameters are "1.5B"


@dataclass(frozen=True)
class Target:
    """What the full run will train."""

    task: str  # With the model a pair that was piloted, or a piloted task with a new model
    model: str
    parameters: float  # N of the model
    # Mean reward before training, in reward units; needed least when the pair was piloted.
    start_reward: float | None = None

    @property
    def subject(self) -> str:
        """Model and task in words; what the logs do not name is not given a name."""
        model = "the piloted model" if self.model == PilotRun.UNNAMED_MODEL else self.model
        return model if self.task == PilotRun.UNNAMED_TASK else f"{model} on {self.task}"


def largest_target(posterior: Posterior) -> Target:
    """Return the largest piloted model, on its task."""
    sizes = posterior.meta.group_parameters
    index = max(range(len(sizes)), key=lambda i: sizes[i])
    task, model = posterior.meta.groups[index]
    return Target(task, model, sizes[index])


def pilots_of(posterior: Posterior, target: Target) -> list[RunSummary]:
    """Pilots of the target's model on its task; all where there are none."""
    runs = list(posterior.meta.runs)
    return [run for run in runs if (run.task, run.model) == (target.task, target.model)] or runs


def check_task(posterior: Posterior, task: str) -> None:
    """Refuse a task that no pilot trained."""
    tasks = posterior.meta.tasks
    if task not in tasks:
        raise InputError(
            f"no pilot trained task '{task}'",
            argument="task",
            advice=f"Choose one of {', '.join(tasks)}, or pilot the task",
        )


def named_target(
    posterior: Posterior,
    model: str | None = None,
    task: str | None = None,
    parameters: float | None = None,
    start_reward: float | None = None,
) -> Target:
    """Complete a partly named target from the pilots: the largest piloted model and its task."""
    if parameters is not None and not 0 < parameters <= MOST_PARAMETERS:
        raise InputError(
            f"{parameters:g} parameters cannot be",
            argument="parameters",
            advice="Give all parameters of the base model, for example 7e9",
        )
    meta, largest = posterior.meta, largest_target(posterior)
    task = largest.task if task is None else task
    check_task(posterior, task)
    piloted = dict(zip((name for _, name in meta.groups), meta.group_parameters, strict=True))
    if model is None and parameters is not None:
        sized = [n for n, size in piloted.items() if isclose(parameters, size, rel_tol=ROUNDED)]
        model = sized[0] if sized else f"model of {parameters:.3g} parameters"
    model = largest.model if model is None else model
    known = piloted.get(model)
    if known and parameters and not isclose(parameters, known, rel_tol=ROUNDED):
        raise InputError(
            f"the pilots say that '{model}' has {known:.3g} parameters, not {parameters:.3g}",
            argument="parameters",
            advice="Leave it out, or give the new model a name of its own",
        )
    size = known or parameters or PilotRun.parameters_in(model)
    if size is None:
        raise InputError(
            f"the size of model '{model}' is unknown",
            argument="parameters",
            advice="Give all parameters of the base model, for example 7e9",
        )
    return Target(task, model, size, start_reward)


def resolve_group(run: PilotRun, meta: Meta) -> tuple[PilotRun, list[str]]:
    """Name task, model and size of a run where the posterior leaves no choice, with notes."""
    groups = meta.groups
    fitting = [
        (task, model)
        for task, model in groups
        if run.task in (None, task) and run.model in (None, model)
    ]
    known = run.task if run.task in meta.tasks else None
    if run.task is None and len(meta.tasks) == 1:
        known = meta.tasks[0]
    if not fitting and run.model is not None and known is not None:
        if run.parameters is None:
            raise InputError(
                f"no pilot trained {run.model} on {known}, and its size is not known",
                path=run.path,
                argument="parameters",
                advice="Give `parameters`, or another `model` if it has another name there",
            )
        return run.with_updates(task=known), [
            f"no pilot trained {run.model}: its forecast rests on the other models and its own rows"
        ]
    if len(fitting) != 1:
        problem = "the log does not name its task and model"
        advice = "Give `task` and `model` (--set task=NAME --set model=NAME)"
        if not fitting:
            model = run.model or "a model without a name"
            problem = f"no pilot trained {model} on {run.task or 'a task without a name'}"
            advice = "Name them as the pilots do, or pilot this one"
        held = ", ".join(Target(task, model, 0.0).subject for task, model in groups)
        raise InputError(
            f"{problem}; the posterior holds {held}",
            path=run.path,
            argument="task, model",
            advice=advice,
        )
    task, model = fitting[0]
    size = meta.group_parameters[groups.index((task, model))]
    only = Target(task, model, size).subject
    is_named = run.task is not None and run.model is not None
    notes = [] if is_named else [f"taken for {only}, the only one the posterior holds"]
    return run.with_updates(task=task, model=model, parameters=size), notes
