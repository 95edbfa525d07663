"""A raw run and its settings become a PilotRun; contradictions stop here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from advisor.errors import InputError, NoRewardError, RateContradictionError
from advisor.runs.logs.located_run import LocatedRun, RawRun
from advisor.runs.logs.recovered import Rates, guess, read_rates
from advisor.runs.logs.stated_settings import RunKeys, Setting, check_settings, place_row
from advisor.runs.pilot_run import IN_WARMUP, NO_GROUP, PilotRun, model_name
from advisor.runs.settings import TABLES, PartialSettings
from advisor.runs.trainers import Derived
from advisor.runs.trainers.derived import COUNTED, PPO
from advisor.text import compiled, counted

RATE_TOLERANCE = 0.05
"""Share by which a given peak learning rate may differ from the logged one (a log that starts or
stops beside the peak)."""

MODEL = compiled(TABLES["patterns"])["model"]


def merge_run(located: LocatedRun, run_id: str, settings: Mapping[str, Setting]) -> PilotRun:
    """Join what the log tells with what config files, sidecar and flags tell."""
    raw = located.raw
    _refuse_short(raw, run_id)
    stated = located.stated
    known = {**raw.observed.facts, **stated.facts, **{k: s.value for k, s in settings.items()}}
    factors: list[Any] = [known.get(f"{name}_per_refresh") for name in ("minibatches", "epochs")]
    if raw.step_unit == "refresh" and None not in factors:
        raw = raw.on_optimizer_steps(math.prod(map(int, factors)))
    rates = read_rates(raw.rate_step, raw.rate, raw.planned_steps)
    if raw.step_unit != "optimizer":  # how many optimizer steps a count stands for is not known
        lengths = ("warmup_steps", "planned_steps")
        rates = rates._replace(facts={k: v for k, v in rates.facts.items() if k not in lengths})
    checked = check_settings(
        {**raw.observed.facts, **rates.facts}, path=Path(raw.path), row=place_row(raw)
    )
    _refuse_contradictions(raw, rates, settings)
    found = Derived(
        assumptions=(*raw.assumptions, *stated.assumptions),
        warnings=(*raw.warnings, *rates.warnings, *stated.warnings),
        marks=raw.observed.marks | stated.marks,
    )
    for key, (value, *_) in checked.items():
        from_rows = f"{key} {value} [the log's rows]"
        found.put(key, value, raw.observed.arithmetic.get(key, from_rows))
    _weigh(found, rates, stated, settings)
    _check_planned(raw, found)
    for key, setting in settings.items():
        shown, line = found.facts.get(key), f"{key} = {setting.value} from {setting.where} is used"
        # A log with rows far apart gives these only roughly: a small difference is no warning.
        is_exact = key not in ("learning_rate", "warmup_steps")
        if key in found.facts and is_exact and shown != setting.value:
            found.warn(f"{line}; the log says {shown}")
        found.put(key, setting.value, f"{key} {setting.value} [{setting.where}]")
    _within_warmup(raw, rates, found)
    guess(raw, found)
    values = found.facts
    if values.get("group_size") == 1 and PPO not in found.marks:
        _refuse_no_group(raw, found, settings.get("group_size"))
    names = PartialSettings.model_fields
    hyperparameters = PartialSettings(**{name: values[name] for name in names if name in values})
    parameters = _parameters(raw, run_id, found, settings)
    series, missing = dict(raw.series), dict(raw.missing)
    if hyperparameters.kl_coefficient == 0 and not np.any(np.nan_to_num(series.get("kl", 0.0))):
        # Some trainers write zeros for a penalty that they do not have.
        series.pop("kl", None)
        missing["kl"] = "not applicable"
    own = {
        "id": run_id,
        "format": located.reader.name,
        "parameters": parameters,
        "hyperparameters": hyperparameters,
        "series": series,
        "missing": missing,
        "logging_steps": values.get("logging_steps", raw.stated_spacing or raw.logging_steps),
        "derivations": found.arithmetic,
        "assumptions": tuple(dict.fromkeys(found.assumptions)),
        "warnings": tuple(dict.fromkeys(found.warnings)),
    }
    # What a run holds as it was stated, or not at all.
    stated_as = RunKeys.model_fields.keys() - {"parameters", "seed", "logging_steps"}
    return _built(raw, own | {name: values.get(name) for name in stated_as})


def _parameters(
    raw: RawRun, run_id: str, found: Derived, settings: Mapping[str, Setting]
) -> float | None:
    """Size of the model, stated or read off its name or that of the run."""
    values = found.facts
    if "model" in values:
        values["model"] = model_name(values["model"])
    # The name of the run, then folders from the innermost outwards.
    for place in (run_id, *Path(raw.path).parts[::-1]):
        if names := {name.group() for name in MODEL.finditer(place)}:
            break
    named = names.pop() if len(names) == 1 else None
    if "model" not in values and named:
        values["model"] = named
        found.assume(f"model = '{named}' assumed (read off the name '{place}')")
    elif "model" not in values and raw.has_own_id and PilotRun.parameters_in(raw.label or ""):
        values["model"] = raw.label
        found.assume(f"model = '{raw.label}' assumed (the run's name tells a size)")
    is_named = bool(named or PilotRun.parameters_in(values.get("model", "")))
    if is_named and COUNTED in found.marks and "parameters" not in settings:
        found.drop("parameters")  # as logs of the same model have it that print no count
    if "parameters" in values or "model" not in values:
        parameters: float | None = values.get("parameters")
        return parameters
    model, given = values["model"], settings.get("model")
    size = PilotRun.parameters_in(model)
    if size is None and named:
        model, size = place, PilotRun.parameters_in(re.sub(r"((?<![01]_)[\d.]+\w)$", r" \1", named))
    if size is not None:
        found.assume(f"parameters = {size:g} assumed (read off the name '{model}')")
    elif given:
        problem = f"the size of model '{model}' is not known"
        advice = "Add 'parameters = 7e9' (all parameters of the base model) beside it"
        raise InputError(
            problem, path=given.path or raw.path, row=given.row, key="model", advice=advice
        )
    return size


def _weigh(found: Derived, rates: Rates, stated: Derived, settings: Mapping[str, Setting]) -> None:
    """Add the settings next to the log that are used, and what the log says against others."""
    for key, value in stated.facts.items():
        if key == "logging_steps":
            continue  # the rows themselves stand where they stand
        shown: Any = found.facts.get(key)
        if key == "learning_rate" and shown is None:
            shown = rates.largest
        is_used, against = True, ""
        if shown is None or shown == value:
            pass
        elif key == "learning_rate":
            is_close = bool(np.isclose(value, shown, rtol=RATE_TOLERANCE, atol=0.0))
            is_used = is_close or (rates.is_partial and value > shown)
            against = f"learning_rate peaks at {shown:.3g} in the log, which is used"
        elif key not in ("schedule", "warmup_steps", "planned_steps"):
            is_used, against = False, f"{key} = {shown} by the log's rows is used"
        elif key == "schedule" and shown != "constant" and key not in settings:
            found.warn(f"schedule looks {shown} in the log; the settings beside it say {value}")
        if is_used:
            found.put(key, value, stated.arithmetic.get(key, f"{key} {value}"))
        elif key not in settings:
            found.warn(f"{against}; the settings beside it say {value}")


def _check_planned(raw: RawRun, found: Derived) -> None:
    """Leave out planned steps that are fewer than the log's: they are of another run."""
    planned, last = found.facts.get("planned_steps"), raw.step.max(initial=0)
    if planned is not None and raw.step_unit == "optimizer" and last >= 1.5 * planned:
        found.warn(f"planned_steps {planned} was left out: the log goes to step {last:g}")
        found.drop("planned_steps")


def _within_warmup(raw: RawRun, rates: Rates, found: Derived) -> None:
    """Say of a run that it never reached its peak, and how long its warm-up is where that shows."""
    own, peak = found.facts, found.facts.get("learning_rate")
    if rates.rise and peak and raw.step_unit == "optimizer" and "warmup_steps" not in own:
        steps = round(peak / rates.rise)
        why = f"learning_rate {peak:g} / {rates.rise:.3g} that each step of the log adds"
        found.put("warmup_steps", steps, f"warmup_steps {steps} = {why}")
    reached = rates.largest if rates.rise else None
    if peak and rates.largest is None and raw.step_unit == "optimizer" and raw.step.size:
        known = PartialSettings(warmup_steps=own.get("warmup_steps"))
        reached = peak * known.share_of_peak(float(raw.step[-1]))
    if reached is not None and not (peak and reached >= (1 - RATE_TOLERANCE) * peak):
        end = f"of {peak:.3g} was never reached" if peak else "is not known from it"
        found.warn(f"{IN_WARMUP} {reached:.3g}: the peak {end}")


def _refuse_no_group(raw: RawRun, found: Derived, given: Setting | None) -> None:
    """Leave out a group size of 1, whose advantages are all 0; a user's own entry is an error."""
    if given is not None and given.value == 1:
        where: dict[str, Any] = {"path": given.path or raw.path, "row": given.row}
        advice = "Correct 'group_size', and 'prompts_per_step' with it, or leave the run out"
        raise InputError(NO_GROUP, **where, key="group_size", advice=advice)
    found.warn(f"{found.arithmetic['group_size']} was left out: {NO_GROUP}")
    found.drop("group_size")


def _built(raw: RawRun, values: dict[str, Any]) -> PilotRun:
    try:
        return raw.with_updates(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"the run does not hold together: {first['msg'].removeprefix('Value error, ')}",
            path=raw.path,
            row=place_row(raw),
            key=".".join(str(part) for part in first["loc"]) or None,
            advice="Correct the log, or report this with the file",
        ) from None


def _refuse_short(raw: RawRun, run_id: str) -> None:
    least = PilotRun.LEAST_REWARDS
    rewards = least if raw.is_eval_only else int(np.isfinite(raw.series["reward"]).sum())
    if rewards < least:
        finite = "reward" if rewards == raw.step.size else f"finite reward (of {raw.step.size})"
        raise NoRewardError(
            f"run '{run_id}' has only {counted(rewards, 'row')} with a {finite}",
            path=raw.path,
            row=place_row(raw),
            key=raw.keys_read.get("reward", "reward"),
            advice=f"Log at least {least} rows (run longer, or lower logging_steps), "
            "or leave the run out",
        )


def _refuse_contradictions(raw: RawRun, rates: Rates, settings: Mapping[str, Setting]) -> None:
    """Raise where the user's settings say other things than the log, or than themselves."""
    row, advice = place_row(raw), "Correct the entry, or remove it: the log tells it"
    given = settings.get("learning_rate")
    logged = rates.facts.get("learning_rate", rates.largest)
    # The peak is not in a log that stops within the warm-up or begins behind it.
    if given and logged is not None and not (rates.is_partial and given.value > logged):
        where = f"{given.where} says {given.value:g}"
        if not np.isclose(given.value, logged, rtol=RATE_TOLERANCE, atol=0.0):
            raise RateContradictionError(
                f"{where}, but the learning rate in the log peaks at {logged:.3g}",
                logged=float(logged),
                path=raw.path,
                row=row,
                key="learning_rate",
                advice=advice,
            )
    given = settings.get("logging_steps")
    if given and raw.stated_spacing not in (None, given.value):
        problem = f"{given.where} says {given.value}, but the log says {raw.stated_spacing}"
        raise InputError(problem, path=raw.path, row=row, key="logging_steps", advice=advice)
    at, lived = settings.get("collapsed_at"), settings.get("collapsed")
    key, problem = "collapsed_at", ""
    if at and lived and not lived.value:
        problem, advice = f"{key} {at.value:g} contradicts collapsed = false", "Keep one of them"
    floor, ceiling = settings.get("reward_floor"), settings.get("reward_ceiling")
    if floor and ceiling and floor.value >= ceiling.value:
        at, key = ceiling, "reward_ceiling"
        problem = f"reward_floor {floor.value:g} is not below reward_ceiling {at.value:g}"
        advice = "Give the lowest and the highest reward that a completion can get"
    if at and problem:
        raise InputError(problem, path=at.path or raw.path, row=at.row, key=key, advice=advice)
