"""What one look at a growing log says about the rest of the run."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor.errors import InputError
from advisor.forecast import Band, Interval, ObservedRun, peak_rate
from advisor.model import Meta
from advisor.runs import PilotRun, Settings


class Update(BaseModel):
    """Forecast of a run from its log so far; rewards in reward units.

    Attributes
    ----------
    step, planned_steps : int
        Optimizer steps done and planned.
    reward : float
        Mean of the latest rows.
    start : float
        Expected reward before training.
    band : Band
        From now to the end.
    final : Interval
        Mean reward over the last tenth of the run, as a backtest judges it, given that it stays
        stable; of a language model pooled with what became of runs like it
        (`advisor.forecast.run_in_progress`), while the band is the curve's alone.
    final_eval : Interval or None
        Held-out reward at the end, where pilots of this model were evaluated.
    p_reach : float or None
        Probability of reaching the target by the end; None without a target.
    p_unstable : float
        Probability of being unstable at the end (`advice.stability`), given the run so far.
    p_little_left : float
        Probability that less than a hundredth of the reward range is still to be gained.
    share_made : float
        Share of the expected gain from start to end that is made, in [0, 1].
    surprise : float or None
        Probability, by what was logged before, of latest rows as low as they are; None as long as
        there are too few.
    lost_rows : int
        Latest rows in a row without a finite reward.
    fallen_since : float or None
        Optimizer step since which the reward lies a third below its best (`diagnosis.collapse`).
    gentler_rate : float or None
        Largest tried learning rate that keeps the rest of the run stable with the probability
        wanted, where the present one does not.
    pareto_k : float
        Of the importance weights.
    refit_due : bool
        Whether ``pareto_k`` says that only a new fit can tell.
    seconds : float
        Wall-clock time of this update.
    settings : Settings
        Of the run, completed.
    notes : tuple of str
        What was assumed, or differs from the pilots.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    task: str
    model: str
    step: int
    planned_steps: int
    reward: float
    start: float
    band: Band
    final: Interval
    final_eval: Interval | None
    p_reach: float | None
    p_unstable: float
    p_little_left: float
    share_made: float
    surprise: float | None
    lost_rows: int
    fallen_since: float | None
    gentler_rate: float | None
    pareto_k: float
    refit_due: bool
    seconds: float
    settings: Settings
    notes: tuple[str, ...] = ()


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
    if given is not None and highest is not None and highest > 1.01 * given:
        notes.append(f"the log shows a learning rate of {highest:g}, the settings {given:g}")
    if not is_fitted and run.id in {pilot.id for pilot in meta.runs}:
        notes.append("a pilot has the same name: if it is this run, its rows count twice")
    if observed.last >= observed.end:
        notes.append("the planned steps are done")
    lost = int(np.sum(~np.isfinite(run.reward)))
    if lost:
        notes.append(f"{lost} of {run.reward.size} rewards are not finite and were left out")
    return notes
