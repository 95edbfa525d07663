"""Values that sidecars and flags may set, each checked where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from advisor.errors import InputError
from advisor.logfiles.columns import nearest
from advisor.run.pilot_run import parameters_from_name
from advisor.run.settings import PartialSettings

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
    """Check names and values of settings.

    Parameters
    ----------
    given : mapping of str to object
        Numbers may stand as text (a CSV); ``None`` counts as not given.
    path, row : Path, int, optional
        Where they stand; none for flags.

    Returns
    -------
    settings : dict of str to Setting

    Raises
    ------
    InputError
        An unknown key, or a value of the wrong kind or out of bounds.
    """
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
