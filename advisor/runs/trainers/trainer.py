"""What the package knows of one trainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from advisor.runs.logfiles.logged import Reader
from advisor.runs.settings import Settings
from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.launch import Launch


@dataclass(frozen=True)
class Export:
    """How to write a configuration from which a trainer starts.

    Attributes
    ----------
    name : str
        As in ``advisor export --to``.
    label : str
        Trainer and kind of file, as a report calls them.
    file_name : str
        Name of the file by default.
    render : callable (Launch, model) -> str
        Text of the file; raises `InputError` where the trainer has no such setting.
    checked : str
        Version of the trainer against whose source the keys were checked.
    """

    name: str
    label: str
    file_name: str
    render: Callable[[Launch, str | None], str]
    checked: str = ""


@dataclass(frozen=True, eq=False)
class Trainer:
    """One trainer: its log keys, log formats, configuration and names of settings.

    Attributes
    ----------
    name : str
        As runs carry it in ``framework``; unique among registered trainers.
    keys : tuple of KeyTable
        Meaning of its keys and settings, one table per variant; the first is the trainer's own.
    readers : tuple of Reader
        Log formats that only this trainer writes.
    export : Export or None
    setting_names : mapping of str to str
        Setting of the package -> its name in the trainer's configuration.
    asked_as : mapping of str to str
        Setting -> words in which a user of the trainer is asked for it, where its name misleads.
    configs : str
        Files of its own that, put beside a log, tell the settings.
    bessel : bool
        Whether advantages are divided by the deviation of ``torch.std``, with group size - 1.
    recipes : mapping of str to mapping
        Name -> settings that its defaults or example scripts use, as reference points.
    paste : callable (Settings) -> str, or None
        Settings as one line to paste into the trainer's configuration.
    """

    name: str
    keys: tuple[KeyTable, ...]
    readers: tuple[Reader, ...] = ()
    export: Export | None = None
    setting_names: Mapping[str, str] = field(default_factory=dict)
    asked_as: Mapping[str, str] = field(default_factory=dict)
    configs: str = ""
    bessel: bool = False
    recipes: Mapping[str, Mapping[str, float | int]] = field(default_factory=dict)
    paste: Callable[[Settings], str] | None = None
