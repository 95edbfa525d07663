"""Meaning of the keys that one trainer logs, and of those that many share."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

from advisor.runs.logfiles.logged import Table
from advisor.runs.trainers.derived import (
    Derived,
    SettingsExtractor,
    TrainerSetting,
    read_data,
    spelled_out,
)

PREFIXES = ("train/", "train.", "metrics/", "metrics.", "data/", "logs/")
"""What W&B, TensorBoard and nested JSON put before the keys of a train row."""


def _derive_nothing(source: Mapping[str, Any] | Table) -> Derived:
    return Derived()


@dataclass(frozen=True, eq=False)
class KeyTable:
    """Meaning of a trainer's keys and settings, as `data` says it; ``derive`` gets flat settings.

    Keys are compared in lower case, without blanks round slashes, and also without the prefixes
    in ``PREFIXES``.
    """

    name: str
    marks: tuple[str, ...] = ()  # Patterns of keys that only this trainer writes
    # Names of the train reward, best first; those of one inner tuple are equally good. None
    # contains a KL penalty, is a spread or a part of the reward.
    reward: tuple[tuple[str, ...], ...] = ()
    # Keys that look like the reward and are not, and why.
    never_reward: Mapping[str, str] = field(default_factory=dict)
    # Counters of optimizer steps, and of batches of rollouts, best first.
    optimizer_steps: tuple[str, ...] = ()
    refreshes: tuple[str, ...] = ()
    # Patterns of held-out rewards, best first; several keys under one pattern are averaged.
    evaluations: tuple[str, ...] = ()
    # Series of ``PilotRun.SERIES`` -> names, best first.
    series: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Pattern of the mean of one reward function; its group ``name`` is the function.
    parts: str = r"(?!)"
    # Patterns of keys whose meaning is known and which the package does not use.
    understood: tuple[str, ...] = ()
    # Key that tells kinds of rows apart, and its values for train rows and for evaluations.
    kind_key: str = ""
    train_kinds: tuple[str, ...] = ()
    eval_kinds: tuple[str, ...] = ()
    # Settings that only this trainer has; one that ends with a dot stands for all below.
    setting_marks: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()  # Further keys whose cells ``observe`` looks at
    derive: Callable[[Mapping[str, Any]], Derived] = _derive_nothing
    observe: Callable[[Table], Derived] = _derive_nothing

    def score(self, keys: Iterable[str]) -> int:
        """How many keys only this trainer writes."""
        return sum(self._mark.fullmatch(key) is not None for key in keys)

    def reads(self, key: str) -> bool:
        """Whether the cells of a key are used."""
        return self._used.fullmatch(key) is not None

    def understands(self, key: str) -> bool:
        """Whether the meaning of a key is known, used or not."""
        return _understands(self, key)

    def restored(self, keys: Iterable[str]) -> dict[str, str]:
        """Keys whose slashes an export wrote as "_" or "." (``critic_score_mean``), restored."""
        names = {}
        for key in keys:
            name = plain(key)
            if self.understands(name):
                continue
            candidates = _with_slashes(name)
            used = next((found for found in candidates if self.reads(found)), None)
            known = used or next((found for found in candidates if self.understands(found)), None)
            if known is not None:
                names[key] = known
        return names

    @cached_property
    def _mark(self) -> re.Pattern[str]:
        return _union(self.marks)

    @cached_property
    def known(self) -> re.Pattern[str]:
        """Keys whose meaning is known and that are not used."""
        return _union((*self.understood, *map(re.escape, self.never_reward)))

    @cached_property
    def _used(self) -> re.Pattern[str]:
        names = [
            *(name for level in self.reward for name in level),
            *self.optimizer_steps,
            *self.refreshes,
            *self.observed,
            *(name for names in self.series.values() for name in names),
            *((self.kind_key,) if self.kind_key else ()),
        ]
        return _union((*map(re.escape, names), *self.evaluations, self.parts))


@lru_cache(maxsize=65536)
def _understands(table: KeyTable, key: str) -> bool:
    return table.reads(key) or table.known.fullmatch(key) is not None


def read_key_table(name: str, **functions: Any) -> KeyTable:
    """Key table of a file of `data`, with its ``derive`` and ``observe``."""
    data = read_data(name)
    fields: dict[str, Any] = {
        key: tuple(cell) if isinstance(cell, list) else cell for key, cell in data["keys"].items()
    }
    levels: list[tuple[str, ...]] = []
    for level in fields["reward"]:
        # A list holds names that are equally good.
        names = tuple(level) if isinstance(level, list) else spelled_out([level])
        levels += [names] if isinstance(level, list) else [(name,) for name in names]
    fields["reward"] = tuple(levels)
    fields["never_reward"] = {
        name: why
        for names, why in fields.get("never_reward", {}).items()
        for name in spelled_out([names])
    }
    fields["series"] = {key: spelled_out(names) for key, names in fields["series"].items()}
    return KeyTable(data["name"], **fields, **functions)


@lru_cache(maxsize=65536)
def plain(key: str) -> str:
    """Lower case and without the blanks that notebook tables put round slashes."""
    return key.strip().lower().replace(" / ", "/")


@lru_cache(maxsize=65536)
def spellings(key: str) -> tuple[str, ...]:
    """A plain key, and what it is without the prefixes that it has."""
    found = [key]
    while prefix := next((p for p in PREFIXES if found[-1].startswith(p)), None):
        found.append(found[-1].removeprefix(prefix))
    return tuple(found)


@lru_cache(maxsize=65536)
def _with_slashes(key: str) -> tuple[str, ...]:
    """What a plain key may have been before slashes became "." or "_", fewest slashes first."""
    # Of a longer one, a text and no metric, a hundred copies would be made.
    if "/" in key or len(key) > 300:
        return ()
    found = [key.replace(".", "/")] if "." in key else []
    places = [at for at, letter in enumerate(key) if letter == "_"][:7]
    for count in range(1, len(places) + 1):
        for chosen in combinations(places, count):
            found.append("".join("/" if at in chosen else c for at, c in enumerate(key)))
    return tuple(found)


def _union(patterns: Iterable[str]) -> re.Pattern[str]:
    # Named groups may stand in several patterns, but only once in their union.
    bare = [re.sub(r"\(\?P<\w+>", "(?:", pattern) for pattern in patterns]
    return re.compile("|".join(f"(?:{pattern})" for pattern in bare) or r"(?!)")


DATA = read_data("common")
RUN_KEYS: tuple[str, ...] = tuple(DATA["run_keys"])
KIND_KEYS: tuple[str, ...] = tuple(DATA["kind_keys"])
UNSURE_STEPS: tuple[str, ...] = tuple(DATA["unsure_steps"])
PARTS_OF_A_STEP: tuple[tuple[str, str], ...] = tuple(map(tuple, DATA["parts_of_a_step"]))

COMPONENT_STD = re.compile(r"rewards/[^/]+/std")
"""Spread of one reward function over the batch, as TRL logs it."""

NAME_OF_MODEL = re.compile(r"(?:.*\.)?model\.(?:name|path|id|name_or_path|model_path)")
"""A model's name in a section of its own."""


def passes(
    extractor: SettingsExtractor, name: str, names: Container[str]
) -> TrainerSetting[int] | None:
    """Passes over a batch of rollouts, unless, next to others, it is the length of the run."""
    found = extractor.count(name)
    if found is None or _are_passes(found.name, found.value, names):
        return found
    extractor.assume(f"{found} is taken for the length of the run, not for passes over rollouts")
    return None


def _are_passes(key: str, count: float, names: Container[str]) -> bool:
    """Whether a setting, next to others without sections, means passes over the rollouts."""
    # Loops call the length of a run so, too.
    is_bare = key.rpartition(".")[2] == "num_iterations"
    is_of_trl = sum(name in names for name in DATA["arguments_of_trl"]) >= 2
    return count <= (8 if is_bare and not is_of_trl else 64)


def derive_common(settings: Mapping[str, Any]) -> Derived:
    """Settings under their common names, taken over as they stand."""
    by_end = {key.rpartition(".")[2]: key for key in reversed(list(settings))}
    for name in filter(NAME_OF_MODEL.fullmatch, settings):
        by_end.setdefault("model", name)
    chosen: dict[str, str] = {}
    for ours, names in DATA["settings"].items():
        if found := [by_end[name] for name in names if name in by_end]:
            chosen[ours] = found[0]
    extractor = SettingsExtractor({ours: settings[key] for ours, key in chosen.items()})
    extractor.take_over(*chosen)
    passed = extractor.facts.get("epochs_per_refresh", 1)
    if passed > 1 and not _are_passes(chosen["epochs_per_refresh"], passed, by_end):
        extractor.drop("epochs_per_refresh")
    for ours in extractor.facts:
        extractor.arithmetic[ours] = f"{ours} {settings[chosen[ours]]} ({chosen[ours]})"
    if "adapter_rank" in extractor.facts:
        extractor.facts["adapter"] = "lora"
    if extractor.facts.get("adapter") != "lora":
        extractor.drop("adapter_alpha")
    return extractor.derived()


COMMON_KEYS = read_key_table("common", derive=derive_common)
