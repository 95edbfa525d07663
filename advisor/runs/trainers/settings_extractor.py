"""Settings under a trainer's own names, read by kind and collected as a `Derived`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.values import entries, literal, module_names, number

V = TypeVar("V", bound=float | str)

MOST_TARGETS = 64
"""Kinds of modules that a model gives adapters to, generously."""


@dataclass(frozen=True)
class Setting(Generic[V]):
    """A setting under the trainer's own name."""

    name: str
    value: V

    def __str__(self) -> str:
        shown = f"{self.value:.12g}" if isinstance(self.value, float) else self.value
        return f"{self.name} {shown}"


class SettingsExtractor(Derived):
    """A `Derived` that is being filled, and the settings from which it is derived.

    Parameters
    ----------
    settings : mapping of str to object
        Flattened with dots, under the trainer's own names.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.settings = settings

    def text(self, *names: str) -> Setting[str] | None:
        """First of some settings that is text."""
        return self._first(str, names)

    def switch(self, *names: str) -> Setting[bool] | None:
        """First of some settings that is a switch."""
        return self._first(bool, names)

    def is_on(self, *names: str) -> bool | None:
        """Whether the first of some settings that is a switch is on; None where none is."""
        switch = self.switch(*names)
        return None if switch is None else switch.value

    def amount(self, *names: str) -> Setting[float] | None:
        """First of some settings that is a finite number."""
        found = ((name, number(self.settings.get(name))) for name in names)
        return next((Setting(name, value) for name, value in found if value is not None), None)

    def count(self, *names: str, least: int = 1) -> Setting[int] | None:
        """First of some settings that is a whole number of at least ``least``."""
        amounts = (self.amount(name) for name in names)
        return next(
            (
                Setting(amount.name, int(amount.value))
                for amount in amounts
                if amount is not None and amount.value == int(amount.value) >= least
            ),
            None,
        )

    def take(self, ours: str, setting: Setting[V] | None) -> None:
        """Take over a setting that only changes its name."""
        if setting is None:
            return
        shown = f"{setting.value:g}" if isinstance(setting.value, float) else setting.value
        self.put(ours, setting.value, f"{ours} {shown} ({setting.name})")

    def take_targets(self, *names: str) -> None:
        """Take over the modules of an adapter, a list one name each (``name.0``) or as text."""
        for name in names:
            placed = [self.settings.get(f"{name}.{place}") for place in range(MOST_TARGETS)]
            listed = [str(each) for each in placed if each is not None]
            if self.settings.get(name) is not None:
                listed = entries(self.settings[name])
            found = module_names(listed)
            if found is not None:
                self.put("adapter_targets", found, f"adapter_targets {found} ({name})")
                return

    def derived(self) -> Derived:
        """What was derived so far, without the settings."""
        return Derived(self.facts, self.arithmetic, self.assumptions, self.warnings)

    def _first(self, kind: type[V], names: tuple[str, ...]) -> Setting[V] | None:
        for name in names:
            value: Any = literal(self.settings.get(name))
            if isinstance(value, kind):
                return Setting(name, value)
        return None


def share(value: float, parts: int) -> float | int:
    """A quotient, whole where it is."""
    quotient = value / parts
    return int(quotient) if quotient == int(quotient) else quotient
