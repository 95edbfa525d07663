"""Settings that a user, a log or a config file states, in the package's names, each checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from advisor.errors import InputError, brief
from advisor.runs.logfiles.columns import nearest
from advisor.runs.logfiles.configs import ConfigSource
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logfiles.table import Table
from advisor.runs.logs.rows.raw_run import RawRun
from advisor.runs.pilot_run import parameters_from_name
from advisor.runs.settings import PartialSettings
from advisor.runs.trainers import Derived, KeyTable, find_trainer, key_tables
from advisor.runs.trainers.derived import literal
from advisor.runs.trainers.generic import keys as own_loop
from advisor.runs.trainers.key_table import COMMON_KEYS
from advisor.runs.trainers.keys import COLUMN_SETTINGS

OF_ADAM = ("adam_beta1", "beta1")

OWN_SECTIONS = ("training", "grpo", "rl", "lora")
"""Sections of configs that people write themselves, in which common names mean what they mean."""

TEXTS = {
    "model": "Name of the base model; runs of one name pool.",
    "task": "Name of the task; runs of one name pool.",
}
WHOLE_FROM = {"seed": 0, "logging_steps": 1, "refresh_interval": 1}
"""Whole numbers, and the least that each may be."""

RUN_KEYS = {
    **TEXTS,
    "parameters": "All parameters of the base model: a number, or text such as '7B'.",
    "seed": "Seed of the run.",
    "reward_floor": "Lowest reward that a completion can have.",
    "reward_ceiling": "Highest reward that a completion can have.",
    "logging_steps": "Optimizer steps that one row of the log averages.",
    "refresh_interval": "Optimizer steps per batch of rollouts, K: mini-batches times epochs.",
}
"""Keys beside the settings -> what they mean."""

KEYS = (*PartialSettings.model_fields, *RUN_KEYS)
"""Every key that a sidecar entry or an override may set."""


class Setting(NamedTuple):
    """A value and where it was set; no path means a flag."""

    value: Any
    path: Path | None = None
    row: int | None = None

    @property
    def where(self) -> str:
        """For a message: the place that set it."""
        if self.path is None:
            return "the flag or override"
        return str(self.path) if self.row is None else f"{self.path} (row {self.row})"


def check_settings(
    given: Mapping[str, Any], *, path: Path | None = None, row: int | None = None
) -> dict[str, Setting]:
    """Settings whose names and values are allowed; anything else raises `InputError`."""
    settings = {}
    for key, value in given.items():
        if key not in KEYS:
            raise InputError(
                "this key is not one that the package reads",
                path=path,
                row=row,
                key=key,
                advice=nearest(key, KEYS),
            )
        if value is not None:
            settings[key] = Setting(_check(key, value, path, row), path, row)
    return settings


def _check(key: str, value: Any, path: Path | None, row: int | None) -> Any:
    try:
        if key in PartialSettings.model_fields:
            if isinstance(value, bool) and key != "importance_ratio":
                raise ValueError("a switch, where a value is needed")
            return getattr(PartialSettings.model_validate({key: value}), key)
        return _run_value(key, value)
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Input ")
    except (ValueError, OverflowError, TypeError) as error:
        why = str(error)
    raise InputError(
        f"{value!r} is not allowed: {why}",
        path=path,
        row=row,
        key=key,
        advice=f"Correct '{key}', or remove it where it is not known",
    ) from None


def _run_value(key: str, value: Any) -> Any:
    if key in TEXTS:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("should be text")
        return value.strip()
    if isinstance(value, bool):
        raise ValueError("should be a number")
    if key == "parameters" and isinstance(value, str):
        named = parameters_from_name(value.strip())
        value = named if named is not None else value
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("should be finite")
    if key in ("reward_floor", "reward_ceiling"):
        return number
    if key == "parameters":
        if number <= 0:
            raise ValueError("should be greater than 0")
        return number
    least = WHOLE_FROM[key]
    if number != int(number) or number < least:
        raise ValueError(f"should be a whole number of at least {least}")
    return int(number)


def stated_settings(
    logged: Logged,
    sources: Sequence[ConfigSource],
    trainer_keys: KeyTable,
    path: Path,
    group_size: int | None = None,
) -> Derived:
    """Settings of a run from its own log, and from the config files beside it, nearest first."""
    check_settings(logged.facts, path=path, row=place_row(logged))
    merged, warnings = _merged(logged, sources)
    derived = derive_settings(_with_group(merged, trainer_keys, group_size), trainer_keys)
    names = [source.path.name for source in sources if source.settings]
    where = f" [{', '.join(names)}]" if names else " [the log]"
    facts: dict[str, Any] = {}
    arithmetic: dict[str, str] = {}
    for key, value in derived.facts.items():
        try:
            check_settings({key: value}, path=path)
        except InputError as error:
            warnings.append(f"{key} = {brief(repr(value))} was left out: {error.problem}")
            continue
        facts[key] = value
        arithmetic[key] = derived.arithmetic.get(key, f"{key} {value}") + where
    facts |= logged.facts
    arithmetic |= {key: f"{key} {value} [the log]" for key, value in logged.facts.items()}
    return Derived(facts, arithmetic, derived.assumptions, (*warnings, *derived.warnings))


def _with_group(
    merged: dict[str, Any], trainer_keys: KeyTable, group_size: int | None
) -> dict[str, Any]:
    """Settings with the group size under the trainer's own name, where only the user told it."""
    if group_size is None or not merged:
        return merged
    trainer = find_trainer(trainer_keys.name)
    name = None if trainer is None else trainer.setting_names.get("group_size")
    if name is None or name in merged:
        return merged
    return {**merged, name: group_size}


def _merged(logged: Logged, sources: Sequence[ConfigSource]) -> tuple[dict[str, Any], list[str]]:
    """Settings under the trainer's own names, and what contradicts them."""
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    warnings = [source.note for source in sources if source.note]
    for name, settings in (
        ("the log", logged.settings),
        *((source.path.name, source.settings) for source in sources),
    ):
        for key, value in settings.items():
            if key not in merged:
                merged[key], origin[key] = value, name
            elif literal(merged[key]) != literal(value):
                warnings.append(
                    f"{key} = {merged[key]} in {origin[key]} is used; {name} says {value}"
                )
    return merged, warnings


def derive_settings(merged: Mapping[str, Any], trainer_keys: KeyTable) -> Derived:
    """Settings in the package's names, from those under the names of a trainer."""
    if not merged:
        return trainer_keys.derive({})  # what a trainer does whatever is set
    trainer_keys, is_known = _trainer_of(merged, trainer_keys)
    derived = trainer_keys.derive(merged)
    # Deep in a known trainer's settings a common name may mean another thing.
    shallow = {
        key: value
        for key, value in merged.items()
        if not is_known or "." not in key or key.rpartition(".")[0] in OWN_SECTIONS
    }
    if derived.facts.get("optimizer") == "sgd":
        # Trainers list Adam's decay whatever the optimizer is.
        shallow = {k: shallow[k] for k in shallow if k.rpartition(".")[2] not in OF_ADAM}
    common = COMMON_KEYS.derive(shallow)
    return Derived(
        common.facts | derived.facts,
        common.arithmetic | derived.arithmetic,
        derived.assumptions,
        derived.warnings,
    )


def column_settings(table: Table, framework: KeyTable) -> Derived:
    """Settings from columns of one run that hold one value in all rows that have any."""
    settings: dict[str, Any] = {}
    for key in table.keys:
        name = key.strip().lower().replace(".", "/").rpartition("/")[2]
        if name not in COLUMN_SETTINGS:
            continue
        numbers = table.column(key)
        values = {*numbers[np.isfinite(numbers)].tolist(), *table.text(key).values()}
        if len(values) == 1:
            settings.setdefault(COLUMN_SETTINGS[name], values.pop())
    if not settings:
        return Derived()
    derived = derive_settings(settings, framework)
    facts, arithmetic = {}, {}
    for key, value in derived.facts.items():
        try:
            check_settings({key: value})
        except InputError:
            continue
        facts[key] = value
        arithmetic[key] = derived.arithmetic.get(key, f"{key} {value}") + " [a column of the log]"
    return Derived(facts, arithmetic, derived.assumptions)


def place_row(run: Logged | RawRun) -> int | None:
    """Row of the file in which a run stands, where each has its own."""
    label = run.label or ""
    is_place = not run.has_own_id and label.isascii() and label.isdigit() and len(label) < 10
    return int(label) if is_place else None


def _trainer_of(settings: Mapping[str, Any], keys: KeyTable) -> tuple[KeyTable, bool]:
    """Keys of the trainer whose settings these are, and whether they bear its marks."""
    ends = {key.rpartition(".")[2] for key in settings} | set(settings)

    def marks(candidate: KeyTable) -> int:
        return sum(
            any(key.startswith(mark) for key in settings) if mark.endswith(".") else mark in ends
            for mark in candidate.setting_marks
        )

    best = max((keys, *key_tables()), key=marks)
    if marks(best):
        return best, True
    return (own_loop.KEY_TABLE if keys is COMMON_KEYS else keys), False
