"""Registered trainers, and what they know together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

from advisor.errors import InputError
from advisor.runs.logfiles.logged import Reader
from advisor.runs.pilot_run import PilotRun
from advisor.runs.settings import Settings
from advisor.runs.trainers.common_keys import COMMON_KEYS
from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.trainer import Export, Trainer

P = ParamSpec("P")
T = TypeVar("T", bound=Hashable)

PASTED = (
    "learning_rate",
    "group_size",
    "prompts_per_step",
    "minibatches_per_refresh",
    "epochs_per_refresh",
)
"""Settings that are advised, as the package and pilots.toml call them."""

_TRAINERS: list[Trainer] = []
_CACHES: list[Any] = []


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """Cache a function of the registered trainers until they change."""
    kept = lru_cache(maxsize=65536)(function)
    _CACHES.append(kept)
    return kept  # type: ignore[return-value]


def register(trainer: Trainer) -> None:
    """Add a trainer, whose logs can then be read and whose configuration can be written.

    Parameters
    ----------
    trainer : Trainer

    Raises
    ------
    InputError
        A trainer of this name is registered already.
    """
    if trainer.name in (other.name for other in _TRAINERS):
        raise InputError(
            f"a trainer named '{trainer.name}' is registered already",
            key="name",
            advice="Choose another name, or unregister that trainer first",
        )
    _TRAINERS.append(trainer)
    _forget()


def unregister(trainer: Trainer) -> None:
    """Remove a registered trainer.

    Parameters
    ----------
    trainer : Trainer

    Raises
    ------
    InputError
        It is not registered.
    """
    if trainer not in _TRAINERS:
        raise InputError(
            f"the trainer '{trainer.name}' is not registered",
            key="name",
            advice=f"Registered are {', '.join(other.name for other in _TRAINERS)}",
        )
    _TRAINERS.remove(trainer)
    _forget()


def trainers() -> tuple[Trainer, ...]:
    """Registered trainers, in the order of registration; the first wins ties."""
    return tuple(_TRAINERS)


def find_trainer(name: str) -> Trainer | None:
    """Registered trainer of a name."""
    return next((trainer for trainer in _TRAINERS if trainer.name == name), None)


@cached
def key_tables() -> tuple[KeyTable, ...]:
    """Key tables of all trainers."""
    return tuple(table for trainer in _TRAINERS for table in trainer.keys)


@cached
def all_key_tables() -> tuple[KeyTable, ...]:
    """Key tables of all trainers, and the names that many trainers share."""
    return (*key_tables(), COMMON_KEYS)


def trainer_readers() -> tuple[Reader, ...]:
    """Readers of the log formats of all trainers."""
    return tuple(reader for trainer in _TRAINERS for reader in trainer.readers)


def exports() -> dict[str, Export]:
    """Configurations that can be written, by name."""
    found = (trainer.export for trainer in _TRAINERS)
    return {export.name: export for export in found if export is not None}


def recipes() -> dict[str, Mapping[str, float | int]]:
    """Settings of trainers' defaults and example scripts, by name."""
    return {name: values for trainer in _TRAINERS for name, values in trainer.recipes.items()}


def setting_name(run: PilotRun, setting: str) -> str:
    """Name of a setting in the run's trainer; in plain words where the trainer has none."""
    trainer = find_trainer(run.framework)
    names = {} if trainer is None else trainer.setting_names
    return names.get(setting, setting.replace("_", " "))


def paste_line(settings: Settings, framework: str) -> str:
    """Settings as one line to paste, in a trainer's names where it defines a line, else in ours."""
    trainer = find_trainer(framework)
    if trainer is None or trainer.paste is None:
        return ", ".join(f"{name}={getattr(settings, name):.12g}" for name in PASTED)
    return trainer.paste(settings)


def _forget() -> None:
    for kept in _CACHES:
        kept.cache_clear()
