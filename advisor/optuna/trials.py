"""Trials of an Optuna study as pilot runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from advisor.advice.candidates import AXES
from advisor.errors import InputError
from advisor.run.pilot_run import LEAST_REWARDS, PilotRun
from advisor.run.settings import PartialSettings, checked_settings
from advisor.theory.arrays import FloatArray

SETTING_OF = {
    **{name: name for name in PartialSettings.model_fields},
    "lr": "learning_rate",
    "num_generations": "group_size",
    "num_iterations": "epochs_per_refresh",
    "ppo_epochs": "epochs_per_refresh",
}
"""Setting that a parameter of a trial stands for: the package's own names, TRL's and verl's."""

OF_A_RUN = ("model", "task", "parameters", "reward_floor", "reward_ceiling")
"""What may be told of a run besides its settings."""

ENDED = (TrialState.COMPLETE, TrialState.PRUNED)


def pilots_of_study(study: Study, run: Mapping[str, Any]) -> list[PilotRun]:
    """Read the trials of a study as pilots.

    Parameters
    ----------
    study : optuna.Study
        Of any storage. Its trials reported the mean train reward by optimizer step, counted from 1.
    run : mapping
        What all trials share: settings by the names of :class:`advisor.Settings`, and
        ``parameters`` (of the model), ``model``, ``task``, ``reward_floor``, ``reward_ceiling``.

    Returns
    -------
    runs : list of PilotRun
        Of trials that ended, also by pruning, and reported three rewards or more.

    Raises
    ------
    InputError
        ``run`` names something that is no setting, or no trial has a parameter that is one.
    """
    check_run(run)
    trials = study.get_trials(deepcopy=False, states=ENDED)
    told = [trial for trial in trials if rewards_of(trial)[1].size >= LEAST_REWARDS]
    if told and not any(name in SETTING_OF for trial in told for name in trial.params):
        raise InputError(
            f"no parameter of study '{study.study_name}' is a setting of a run: "
            + ", ".join(sorted({name for trial in told for name in trial.params})),
            argument="study",
            advice=f"Call them {', '.join(AXES[:-1])} or {AXES[-1]}",
        )
    return [pilot_of_trial(trial, run) for trial in told]


def pilot_of_trial(trial: FrozenTrial, run: Mapping[str, Any]) -> PilotRun:
    """One trial as a pilot."""
    step, reward = rewards_of(trial)
    tuned = {SETTING_OF[k]: v for k, v in trial.params.items() if k in SETTING_OF}
    fixed = {name: value for name, value in run.items() if name not in OF_A_RUN}
    own = {name: run[name] for name in OF_A_RUN if name in run}
    return PilotRun(
        id=f"trial {trial.number}",
        path="optuna",
        **({"model": "model", "task": "task"} | own),
        hyperparameters=PartialSettings.model_validate(fixed | tuned),
        step=step,
        series={"reward": reward},
        logging_steps=max(1, int(np.median(np.diff(step)))) if step.size > 1 else 1,
    )


def rewards_of(trial: FrozenTrial) -> tuple[FloatArray, FloatArray]:
    """Optimizer steps from 1 on, and the finite rewards reported at them."""
    rows = sorted((s, v) for s, v in trial.intermediate_values.items() if s > 0 and np.isfinite(v))
    return np.array([s for s, _ in rows], dtype=float), np.array([v for _, v in rows], dtype=float)


def check_run(run: Mapping[str, Any]) -> None:
    """Refuse what is no setting of a run.

    Raises
    ------
    InputError
        A name or value is none that a run has.
    """
    checked_settings({k: v for k, v in run.items() if k not in OF_A_RUN}, argument="run")


def settings_in(names: Sequence[str]) -> list[str]:
    """Names of parameters that are settings which advice chooses."""
    return [name for name in names if SETTING_OF.get(name) in AXES]
