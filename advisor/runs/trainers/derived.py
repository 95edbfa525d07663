"""Settings in the package's names, derived from those that a trainer's configuration states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from advisor.runs.logfiles.config_files import UNKNOWN
from advisor.text import compiled, read_toml

FOLDER = Path(__file__).parent / "data"

V = TypeVar("V", bound=float | str)

TEXTS = frozenset({"model", "task", "optimizer", "schedule", "precision"})
LEAST = {
    **dict.fromkeys(("group_size", "minibatches_per_refresh", "epochs_per_refresh"), 1),
    **dict.fromkeys(("adapter_rank", "adapter_alpha", "planned_steps"), 1),
    **dict.fromkeys(("max_prompt_length", "max_completion_length"), 1),
    **dict.fromkeys(("seed", "warmup_steps"), 0),
}
"""Settings that are whole numbers, and the least of each."""


def read_data(name: str) -> Mapping[str, Any]:
    """Content of one file of `data`."""
    return read_toml(str(FOLDER / name), f"{name}.toml")


@cache
def setting_names(name: str) -> Mapping[str, tuple[str, ...]]:
    """Names of each setting in a trainer's configurations, best first."""
    return {ours: spelled_out(names) for ours, names in read_data(name)["settings"].items()}


@cache
def patterns(name: str) -> Mapping[str, re.Pattern[str]]:
    """What a trainer prints."""
    return compiled(read_data(name)["patterns"])


def spelled_out(names: Iterable[str]) -> tuple[str, ...]:
    """Names with braces written out: ``{a,b}/c`` is ``a/c`` and ``b/c``."""
    return tuple(spelling for name in names for spelling in _spellings(name))


def _spellings(name: str) -> Iterator[str]:
    head, brace, rest = name.partition("{")
    if not brace:
        yield name
        return
    inner, _, tail = rest.partition("}")
    for each in inner.split(","):
        for end in _spellings(tail):
            yield head + each + end


PPO, COUNTED = "ppo", "counted"
"""A run of the older method with a value model; a size that a framework counted as it loads."""


@dataclass
class Derived:
    """Settings in the package's names, and how each was derived."""

    # By ``advisor.runs.logs.stated_settings.KEYS``.
    facts: dict[str, Any] = field(default_factory=dict)
    # Of each fact: ``"train_batch_size 1024 / ppo_mini_batch_size 256 = 4"``.
    arithmetic: dict[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()  # What the source did not state and was assumed
    warnings: tuple[str, ...] = ()  # What the user should check
    marks: frozenset[str] = frozenset()  # Of ``PPO`` and ``COUNTED``

    def put(self, name: str, value: Any, arithmetic: str) -> None:
        """Set a fact and its arithmetic."""
        if UNKNOWN not in arithmetic:
            self.facts[name], self.arithmetic[name] = value, arithmetic

    def note(self, name: str, value: Any, source: str) -> None:
        """Set a fact that stands in its source."""
        shown = str(value).lower() if isinstance(value, bool) else _exact(value)
        self.put(name, value, f"{name} {shown} ({source})")

    def drop(self, name: str) -> None:
        """Remove a fact and its arithmetic."""
        self.facts.pop(name, None)
        self.arithmetic.pop(name, None)

    def assume(self, line: str) -> None:
        """Add an assumption once."""
        if line not in self.assumptions:
            self.assumptions = (*self.assumptions, line)

    def mark(self, mark: str) -> None:
        """Add a mark."""
        self.marks |= {mark}

    def warn(self, line: str) -> None:
        """Add a warning once."""
        if line not in self.warnings:
            self.warnings = (*self.warnings, line)


@dataclass(frozen=True)
class TrainerSetting(Generic[V]):
    """A setting under the trainer's own name; ``default`` says whose default it is."""

    name: str
    value: V
    default: str = ""

    @property
    def source(self) -> str:
        """Where the value is from."""
        return self.default or self.name

    def __str__(self) -> str:
        return f"{self.name} {_exact(self.value)}" + (f" ({self.default})" if self.default else "")


class SettingsExtractor(Derived):
    """A `Derived` that is being filled; settings are asked for by name or by one spelling."""

    def __init__(self, settings: Mapping[str, Any], table: str | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.names = {} if table is None else setting_names(table)
        self.data = {} if table is None else read_data(table)
        # What the trainer's table says of settings that need no arithmetic.
        self.take_over(*self.data.get("taken", ()))
        self.take_positive(*self.data.get("taken_above_zero", ()))
        for ours in self.data.get("chosen", ()):
            self.choose(ours)

    def text(self, *names: str) -> TrainerSetting[str] | None:
        """First of some settings that is text."""
        return self._first(str, names)

    def word(self, *names: str) -> str:
        """Text of a setting in lower case, behind its last dot; empty where it is none."""
        found = self.text(*names)
        return "" if found is None else found.value.rpartition(".")[2].lower()

    def switch(self, *names: str) -> TrainerSetting[bool] | None:
        """First of some settings that is a switch."""
        return self._first(bool, names)

    def is_on(self, *names: str) -> bool | None:
        """Whether the first of some settings that is a switch is on; None where none is."""
        switch = self.switch(*names)
        return None if switch is None else switch.value

    def amount(self, *names: str) -> TrainerSetting[float] | None:
        """First of some settings that is a finite number."""
        found = ((name, number(self.settings.get(name))) for name in self._spelled(names))
        return next(
            (TrainerSetting(self.shown(of), one) for of, one in found if one is not None), None
        )

    def take_trained(self) -> None:
        """Note an adapter where a banner says that the lesser part of the model is trained."""
        trained = self.amount("trained_percent")
        if trained is not None and trained.value < 50:
            self.note("adapter", "lora", f"{trained.value:g} % of the parameters are trained")

    def count(self, *names: str, least: int = 1) -> TrainerSetting[int] | None:
        """First of some settings that is a whole number of at least ``least``."""
        for name in self._spelled(names):
            value = number(self.settings.get(name))
            if value is not None and value == int(value) >= least:
                return TrainerSetting(self.shown(name), int(value))
        return None

    def defaulted(self, name: str, whose: str | None = None) -> TrainerSetting[Any]:
        """A number, or the trainer's documented default of it, which is noted."""
        default = self.data["defaults"][name]
        read: Any = self.count if isinstance(default, int) else self.amount
        found: TrainerSetting[Any] | None = read(name)
        if found is None:
            whose = whose or f"{self.data['name']}'s"
            names = self._spelled([name])
            if any(self.settings.get(each) == UNKNOWN for each in names):
                return TrainerSetting(self.shown(names[-1]), default, UNKNOWN)
            found = TrainerSetting(self.shown(names[-1]), default, f"{whose} default")
            self.assume(str(found))
        return found

    def take(self, ours: str, setting: TrainerSetting[V] | None) -> None:
        """Take over a setting that only changes its name."""
        if setting is not None:
            self.note(ours, setting.value, setting.source)

    def take_over(self, *names: str) -> None:
        """Take over settings, each under the name that the trainer's table gives it."""
        for ours in names:
            if ours in TEXTS:
                self.take(ours, self.text(ours))
            elif ours in LEAST:
                self.take(ours, self.count(ours, least=LEAST[ours]))
            else:
                self.take(ours, self.amount(ours))

    def take_positive(self, *names: str) -> None:
        """Take over amounts that are above 0."""
        for ours in names:
            found = self.amount(ours)
            if found is not None and found.value > 0:
                self.take(ours, found)

    def choose(self, ours: str) -> Any:
        """Take over the first known choice, in our word for the trainer's; what it is."""
        for name in self.names[ours]:
            kind = self.data["choices"][ours].get(self.word(name))
            if kind is not None:
                self.note(ours, kind, str(self.text(name)))
                return kind
        return None

    def take_ratio_bounds(
        self, low: TrainerSetting[float] | None, high: TrainerSetting[float] | None
    ) -> None:
        """Put a trust region that is stated by the least and the largest importance ratio."""
        if low is not None and 0 <= low.value < 1:
            value = round(1 - low.value, 12)
            self.put("clip_low", value, f"1 - {low} = {value:g}")
        if high is not None and high.value > 1:
            value = round(high.value - 1, 12)
            self.put("clip_high", value, f"{high} - 1 = {value:g}")

    def take_adapter(self) -> None:
        """Take over rank, alpha and modules of a LoRA adapter; a rank of 0 is full fine-tuning."""
        rank = self.count("adapter_rank", least=0)
        if rank is None:
            return
        self.note("adapter", "lora" if rank.value else "full", str(rank))
        if rank.value:
            self.take("adapter_rank", rank)
            self.take_over("adapter_alpha")
            self.take_targets()

    def listed(self, name: str) -> list[str]:
        """Entries of a list, one name each (``betas.0``) or as text: ``"['a', 'b']"``."""
        written = self.settings.get(name)
        if written in (None, UNKNOWN):
            entries = [self.settings.get(f"{name}.{place}") for place in range(64)]
        else:
            text = str(written).strip()
            bare = text.strip("[](){}")
            entries = [*(bare.split(",") if bare != text or "," in bare else bare.split())]
        found = [str(entry).strip().strip("'\"").strip() for entry in entries if entry is not None]
        return [entry for entry in found if entry]

    def take_targets(self) -> None:
        """Take over the modules of an adapter."""
        for name in self._spelled(["adapter_targets"]):
            listed = self.listed(name)
            # Libraries that patch models write expressions over names of modules instead.
            is_named = all(re.fullmatch(r"[\w.-]{1,200}", each) for each in listed)
            if listed and is_named and listed != ["None"]:
                self.note("adapter_targets", ",".join(listed), name)
                return

    def shown(self, name: str) -> str:
        """How the arithmetic calls a setting."""
        return name

    def assume_as(self, which: str, /, **facts: Any) -> None:
        """Add an assumption in the words of the trainer's table."""
        self.assume(self.data["assumptions"][which].format(**facts))

    @property
    def interval(self) -> int | None:
        """K, optimizer steps per batch of rollouts, where it was derived."""
        counts = [self.facts.get(f"{name}_per_refresh") for name in ("minibatches", "epochs")]
        return None if None in counts else int(counts[0]) * int(counts[1])  # type: ignore[arg-type]

    def derived(self) -> Derived:
        """What was derived so far, without the settings."""
        return Derived(self.facts, self.arithmetic, self.assumptions, self.warnings, self.marks)

    def _spelled(self, names: Iterable[str]) -> list[str]:
        return [spelling for name in names for spelling in self.names.get(name, (name,))]

    def _first(self, kind: type[V], names: tuple[str, ...]) -> TrainerSetting[V] | None:
        for name in self._spelled(names):
            value: Any = literal(self.settings.get(name))
            if isinstance(value, kind):
                return TrainerSetting(self.shown(name), value)
        return None


def _exact(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def share(value: float, parts: int) -> float | int:
    """A quotient, whole where it is."""
    quotient = value / parts
    return int(quotient) if quotient == int(quotient) else quotient


def literal(value: Any) -> float | str | bool | None:
    """Number, switch or text of a setting, also where it is quoted; None where it is none."""
    if not isinstance(value, str):
        return value if isinstance(value, bool | int | float) else None
    text = value.strip().strip("\"'").strip()
    if text in ("True", "true", "False", "false"):
        return text.lower() == "true"
    if text in ("", "None", "null", "none", UNKNOWN):
        return None
    try:
        return float(text)
    except ValueError:
        return text


def number(value: Any) -> float | None:
    """Value of a setting as a finite number, None where it is not one."""
    found = literal(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if abs(found) < 1e300 else None
