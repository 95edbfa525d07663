"""A raw run and its settings become a PilotRun; contradictions stop here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from advisor.errors import InputError
from advisor.runs.pilot_run import (
    LEAST_REWARDS,
    Hyperparameters,
    Missing,
    PilotRun,
    parameters_from_name,
)
from advisor.runs.raw_run import RawRun
from advisor.runs.settings import Setting, check_settings

RATE_TOLERANCE = 0.05
"""Share by which a given peak learning rate may differ from the logged one (a log that starts or
stops beside the peak)."""

INEXACT = ("learning_rate", "warmup_steps")
"""Facts that a log with rows far apart gives only roughly: a small difference is no warning."""


def merge_run(raw: RawRun, run_id: str, settings: Mapping[str, Setting]) -> PilotRun:
    """Join what the log tells with what sidecar and flags tell.

    Parameters
    ----------
    raw : RawRun
        From a reader.
    run_id : str
        Unique id.
    settings : mapping of str to Setting
        Flags over sidecar; they come before what the log states.

    Returns
    -------
    run : PilotRun

    Raises
    ------
    InputError
        The run has too few rewards, the settings contradict each other or a hard fact of the log, a
        fact of the log is out of bounds, or the size of a named model is not known.
    """
    _refuse_short(raw, run_id)
    stated = check_settings(raw.facts, path=raw.path, row=_row(raw))
    facts = {key: setting.value for key, setting in stated.items()}
    _refuse_other_rate(raw, facts.get("learning_rate"), settings.get("learning_rate"))
    _refuse_other_window(raw, settings.get("logging_steps"))
    warnings = list(raw.warnings)
    for key, setting in settings.items():
        if key in facts and key not in INEXACT and facts[key] != setting.value:
            warnings.append(
                f"{key} = {setting.value} from {setting.where} is used; the log says {facts[key]}"
            )
    values = facts | {key: setting.value for key, setting in settings.items()}
    hyperparameters = Hyperparameters(
        **{name: values[name] for name in Hyperparameters.model_fields if name in values}
    )
    _refuse_other_interval(raw, hyperparameters, settings.get("refresh_interval"))
    _refuse_other_placing(raw, run_id, hyperparameters)
    _refuse_bounds(raw, settings)
    assumptions = list(raw.assumptions)
    parameters = values.get("parameters")
    if parameters is None and "model" in values:
        parameters = parameters_from_name(values["model"])
        if parameters is not None:
            assumptions.append(
                f"parameters = {parameters:g} assumed (read off the name '{values['model']}')"
            )
        elif "model" in settings:
            raise InputError(
                f"the size of model '{values['model']}' is not known",
                path=settings["model"].path or raw.path,
                row=settings["model"].row,
                key="model",
                advice="Add 'parameters = 7e9' (all parameters of the base model) beside it",
            )
    missing = dict(raw.missing)
    if "kl" not in raw.series and hyperparameters.kl_coefficient == 0:
        missing["kl"] = "not applicable"
    return _build(
        raw,
        id=run_id,
        model=values.get("model"),
        task=values.get("task"),
        parameters=parameters,
        hyperparameters=hyperparameters,
        missing=missing,
        logging_steps=values.get("logging_steps", raw.logging_steps or raw.window),
        reward_floor=values.get("reward_floor"),
        reward_ceiling=values.get("reward_ceiling"),
        assumptions=tuple(assumptions),
        warnings=tuple(warnings),
    )


def _build(raw: RawRun, *, missing: dict[str, Missing], **values: Any) -> PilotRun:
    try:
        return PilotRun(
            path=str(raw.path),
            step=raw.step,
            series=raw.series,
            missing=missing,
            eval_step=raw.eval_step,
            eval_reward=raw.eval_reward,
            keys_read=raw.keys_read,
            keys_ignored=raw.keys_ignored,
            **values,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"the run does not hold together: {first['msg']}",
            path=raw.path,
            row=_row(raw),
            key=".".join(str(part) for part in first["loc"]) or None,
            advice="Correct the log, or report this with the file",
        ) from None


def _row(raw: RawRun) -> int | None:
    return int(raw.label) if raw.label and not raw.has_own_id and raw.label.isdigit() else None


def _refuse_short(raw: RawRun, run_id: str) -> None:
    rewards = int(np.isfinite(raw.series["reward"]).sum())
    if rewards >= LEAST_REWARDS:
        return
    rows = "1 row" if rewards == 1 else f"{rewards} rows"
    finite = "reward" if rewards == raw.step.size else f"finite reward (of {raw.step.size})"
    raise InputError(
        f"run '{run_id}' has only {rows} with a {finite}",
        path=raw.path,
        row=_row(raw),
        key=raw.keys_read.get("reward", "reward"),
        advice=f"Log at least {LEAST_REWARDS} rows (run longer, or lower logging_steps), "
        "or leave the run out",
    )


def _refuse_other_rate(raw: RawRun, logged: float | None, given: Setting | None) -> None:
    if given is None or logged is None:
        return
    if raw.rate_is_rising and given.value > logged:
        return  # the log stops within the warm-up: the peak lies ahead of it
    if not np.isclose(given.value, logged, rtol=RATE_TOLERANCE, atol=0.0):
        raise InputError(
            f"{given.where} says {given.value:g}, but the learning rate in the log peaks at "
            f"{logged:.3g}",
            path=raw.path,
            row=_row(raw),
            key="learning_rate",
            advice="Correct the entry, or remove it: the log tells the rate",
        )


def _refuse_other_window(raw: RawRun, given: Setting | None) -> None:
    if given is None or raw.logging_steps in (None, given.value):
        return
    raise InputError(
        f"{given.where} says {given.value}, but the log says {raw.logging_steps}",
        path=raw.path,
        row=_row(raw),
        key="logging_steps",
        advice="Correct the entry, or remove it: the log tells it",
    )


def _refuse_other_interval(raw: RawRun, settings: Hyperparameters, given: Setting | None) -> None:
    if given is None:
        return
    minibatches, epochs = settings.minibatches_per_refresh, settings.epochs_per_refresh
    if minibatches is None and epochs is None:
        problem = f"{given.value} is given without its two factors"
    elif (minibatches or 1) * (epochs or 1) != given.value:
        problem = (
            f"{given.value} is not minibatches_per_refresh x epochs_per_refresh = "
            f"{minibatches or 1} x {epochs or 1}"
        )
    else:
        return
    raise InputError(
        problem,
        path=given.path or raw.path,
        row=given.row,
        key="refresh_interval",
        advice="Give minibatches_per_refresh and epochs_per_refresh; their product is the interval",
    )


def _refuse_other_placing(raw: RawRun, run_id: str, settings: Hyperparameters) -> None:
    if raw.interval in (None, settings.refresh_interval):
        return
    raise InputError(
        f"run '{run_id}' is given {settings.refresh_interval} optimizer steps per batch of "
        f"rollouts, but its log was read with {raw.interval}",
        path=raw.path,
        row=_row(raw),
        key="minibatches_per_refresh, epochs_per_refresh",
        advice="Give both in the entry with the log's path, not by id",
    )


def _refuse_bounds(raw: RawRun, settings: Mapping[str, Setting]) -> None:
    floor, ceiling = settings.get("reward_floor"), settings.get("reward_ceiling")
    if floor is not None and ceiling is not None and floor.value >= ceiling.value:
        raise InputError(
            f"reward_floor {floor.value:g} is not below reward_ceiling {ceiling.value:g}",
            path=ceiling.path or raw.path,
            row=ceiling.row,
            key="reward_ceiling",
            advice="Give the lowest and the highest reward that a completion can get",
        )
