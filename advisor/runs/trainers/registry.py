"""What the package knows of one trainer, and of all that are registered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

from advisor.errors import InputError
from advisor.runs.logfiles.logged import Reader
from advisor.runs.pilot_run import PilotRun
from advisor.runs.settings import Settings
from advisor.runs.trainers.derived import read_data
from advisor.runs.trainers.export import Export, Launch, make_launch
from advisor.runs.trainers.key_table import COMMON_KEYS, DATA, KeyTable, read_key_table
from advisor.text import compiled

P = ParamSpec("P")
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Trainer:
    """One trainer: its log keys, log formats, configuration and names of settings."""

    name: str  # As runs carry it in ``framework``; unique among registered trainers
    # Meaning of its keys and settings, one table per variant; the first is the trainer's own.
    keys: tuple[KeyTable, ...]
    readers: tuple[Reader, ...] = ()  # Log formats that only this trainer writes
    export: Export | None = None
    # Setting of the package -> its name in the trainer's configuration.
    setting_names: Mapping[str, str] = field(default_factory=dict)
    # Setting -> words in which a user of the trainer is asked for it, where its name misleads.
    asked_as: Mapping[str, str] = field(default_factory=dict)
    configs: str = ""  # Files of its own that, put next to a log, state the settings
    console_sign: str = ""  # What a console of it holds, as a pattern, where that is not read
    # Whether advantages are divided by the deviation of ``torch.std``, with group size - 1.
    bessel: bool = False
    # Name -> settings that its defaults or example scripts use, as reference points.
    recipes: Mapping[str, Mapping[str, float | int]] = field(default_factory=dict)
    # Settings as one line to paste into the trainer's configuration.
    paste: Callable[[Settings], str] | None = None

    @staticmethod
    def named(name: str) -> Trainer:
        """Registered trainer of a name; of another name one of which nothing is known."""
        return _TRAINERS.get(name) or Trainer(name, ())

    def setting_name(self, setting: str) -> str:
        """Name of a setting in the trainer's configuration; in plain words where it has none."""
        return self.setting_names.get(setting, setting.replace("_", " "))

    def words_for(self, setting: str) -> str:
        """What a setting is in the trainer; empty where it has no words for it."""
        name = self.asked_as.get(setting) or self.setting_names.get(setting)
        return f"{self.name}: {name}" if name else ""

    def paste_line(self, settings: Settings) -> str:
        """Settings as one line to paste, in the trainer's names where it has a line, else ours."""
        if self.paste is not None:
            return self.paste(settings)
        # As the package and pilots.toml call them.
        per_refresh = (f"{name}_per_refresh" for name in ("minibatches", "epochs"))
        advised = ("learning_rate", "group_size", "prompts_per_step", *per_refresh)
        return ", ".join(f"{name}={getattr(settings, name):.12g}" for name in advised)

    @staticmethod
    def exports() -> dict[str, Export]:
        """Configurations that can be written, by name."""
        found = (trainer.export for trainer in trainers())
        return {export.name: export for export in found if export is not None}

    @staticmethod
    def export_config(
        settings: Settings,
        steps: int,
        to: str,
        *,
        devices: int = 1,
        model: str | None = None,
        note: str | None = None,
    ) -> str:
        """Settings as a trainer's configuration, exact; `note` goes to the top as a comment."""
        known = Trainer.exports()
        if to not in known:
            problem = f"'{to}' is none of the trainers that can be written for"
            raise InputError(
                problem, argument="trainer", advice=f"Choose one of {', '.join(known)}"
            )
        return known[to].text(make_launch(settings, steps, devices), model, note)

    @staticmethod
    def all_recipes() -> dict[str, Mapping[str, float | int]]:
        """Settings of trainers' defaults and example scripts, by name."""
        return {name: values for trainer in trainers() for name, values in trainer.recipes.items()}

    @staticmethod
    def asked_of(runs: Sequence[PilotRun], also: Sequence[str] = ()) -> Lacking | None:
        """All that runs are asked for, and more lines; None where they lack nothing."""
        lacking = Counter(name for run in runs for name in run.questions)
        if not lacking:
            return None
        first = next(run for run in runs if run.questions)
        sentences = []
        for name, count in lacking.most_common():
            concerned = next(run for run in runs if name in run.questions)
            own = Trainer.named(concerned.framework).words_for(name)
            who = "1 run" if count == 1 else "all" if count == len(runs) else f"{count} runs"
            sentences.append(f"{who}: {concerned.questions[name]}" + (f" ({own})" if own else ""))
        # Not to be given as a setting: it says how the log counts.
        given = [name for name in lacking if name != "step_unit"]
        named = [settings_in_name(run.id) for run in runs]
        shared = {
            name: next(iter(found))
            for name in given
            if lacking[name] == len(runs)
            and len(found := {stated.get(name) for stated in named}) == 1
        }
        lines = [*(_line(first, name, value) for name, value in shared.items()), *also]
        block = ["  [defaults]", *lines] if lines else []
        if "step_unit" in lacking:
            block += ["  [columns]", '  # step_unit = "optimizer"  # or "refresh"']
            sentences.append('Say in a column map: step_unit = "optimizer" or "refresh"')
        for run, stated in zip(runs, named, strict=True):
            # What a name states is no default, though a fit could go on with one.
            unread = [name for name in stated if getattr(run.hyperparameters, name) is None]
            wanted = dict.fromkeys([*run.questions, *unread])
            rest = [name for name in wanted if name not in ("step_unit", *shared)]
            # So many are asked one by one where their names say nothing.
            if rest and (block.count("  [[run]]") < 20 or stated.keys() & set(rest)):
                block += ["  [[run]]", f"  id = {json.dumps(run.id, ensure_ascii=False)}"]
                block += [_line(run, name, stated.get(name)) for name in rest]
        return Lacking(tuple(sentences), tuple(block), Trainer.named(first.framework).configs)


def read_trainer(
    name: str,
    *,
    readers: tuple[Reader, ...] = (),
    export: Callable[[Launch, str | None], str] | None = None,
    **functions: Any,
) -> Trainer:
    """Trainer of a file of `data`; functions are the ``derive`` and ``observe`` of its keys."""
    data = read_data(name)
    return Trainer(
        data["name"],
        (read_key_table(name, **functions),),
        readers,
        export and Export(**data["export"], render=export),
        paste=partial(_filled, data["paste"]) if "paste" in data else None,
        **{
            key: data[key]
            for key in ("setting_names", "asked_as", "configs", "console_sign", "bessel", "recipes")
            if key in data
        },
    )


def _filled(line: str, settings: Settings) -> str:
    """A line to paste, filled in; numbers as they are, not rounded."""
    prompts, minibatches = settings.prompts_per_step, settings.minibatches_per_refresh
    return line.format(
        **settings.model_dump(),
        trained=prompts * settings.group_size,
        fresh=prompts * settings.group_size * minibatches,
        rollout_prompts=prompts * minibatches,
    )


IN_NAMES = compiled(DATA["in_names"])  # Setting -> how names of runs state it
_TRAINERS: dict[str, Trainer] = {}
_CACHES: list[Any] = []


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """Cache a function of the registered trainers until they change."""
    kept = lru_cache(maxsize=65536)(function)
    _CACHES.append(kept)
    return kept  # type: ignore[return-value]


def register(trainer: Trainer) -> None:
    """Add a trainer, whose logs can then be read and whose configuration can be written."""
    if trainer.name in _TRAINERS:
        problem = f"a trainer named '{trainer.name}' is registered already"
        advice = "Choose another name, or unregister that trainer first"
        raise InputError(problem, key="name", advice=advice)
    _TRAINERS[trainer.name] = trainer
    _forget()


def add_export(name: str, export: Export) -> None:
    """Add a configuration to a trainer, registered or known by name alone."""
    _TRAINERS[name] = replace(Trainer.named(name), export=export)
    _forget()


def unregister(trainer: Trainer) -> None:
    """Remove a registered trainer."""
    if _TRAINERS.get(trainer.name) is not trainer:
        problem = f"the trainer '{trainer.name}' is not registered"
        raise InputError(problem, key="name", advice=f"Registered are {', '.join(_TRAINERS)}")
    del _TRAINERS[trainer.name]
    _forget()


def trainers() -> tuple[Trainer, ...]:
    """Registered trainers, in the order of registration; the first wins ties."""
    return tuple(_TRAINERS.values())


@cached
def key_tables() -> tuple[KeyTable, ...]:
    """Key tables of all trainers."""
    return tuple(table for trainer in trainers() for table in trainer.keys)


@cached
def all_key_tables() -> tuple[KeyTable, ...]:
    """Key tables of all trainers, and the names that many trainers share."""
    return (*key_tables(), COMMON_KEYS)


def trainer_readers() -> tuple[Reader, ...]:
    """Readers of the log formats of all trainers."""
    return tuple(reader for trainer in trainers() for reader in trainer.readers)


class Lacking(NamedTuple):
    """What runs lack: sentences, lines of a ``pilots.toml``, which configs would do instead."""

    sentences: tuple[str, ...]
    block: tuple[str, ...]
    configs: str

    @property
    def text(self) -> str:
        """All of it, as the end of an error."""
        lines = ["Paste into pilots.toml next to the logs:", *self.block]
        if self.configs:
            lines.append(f"Or put next to the log: {self.configs}")
        return "\n".join(lines)


def settings_in_name(name: str) -> dict[str, float | int]:
    """Settings that the name of a run states: ``lr1e-5_g8``; what it states twice is left out."""
    found: dict[str, float | int] = {}
    for setting, pattern in IN_NAMES.items():
        values = {float(value) for value in pattern.findall(name)}
        if len(values) == 1 and (value := values.pop()) > 0:
            found[setting] = value if setting == "learning_rate" else int(value)
    return found


def _line(run: PilotRun, name: str, value: float | None = None) -> str:
    same_everywhere = {
        "parameters": "all parameters of the base model, as 7e9",
        "adapter": '"lora" or "full"',
    }
    own = Trainer.named(run.framework).words_for(name)
    words = [part for part in (same_everywhere.get(name), own) if part]
    if value is not None:
        words = ["read off the name: check", *words]
    # Without a value it is no TOML.
    stated = f"# {name} = ..." if value is None else f"{name} = {value!r}"
    return f"  {stated}" + (f"  # {'; '.join(words)}" if words else "")


def _forget() -> None:
    for kept in _CACHES:
        kept.cache_clear()
