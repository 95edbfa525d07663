"""Settings of a trainer taken over one by one, each with the line that says where it is from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from advisor.trainers.derived import Derived
from advisor.trainers.values import literal, number


class Found(NamedTuple):
    """A setting under the trainer's own name."""

    key: str
    value: float | str | bool


class Taking:
    """Collects what a `Derived` holds.

    Parameters
    ----------
    settings : mapping of str to object
        Flattened with dots, under the trainer's own names.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.facts: dict[str, Any] = {}
        self.arithmetic: dict[str, str] = {}
        self.assumptions: list[str] = []

    def text(self, names: Iterable[str]) -> Found | None:
        """First of some names that holds text."""
        return next((f for f in self._all(names) if isinstance(f.value, str)), None)

    def switch(self, names: Iterable[str]) -> Found | None:
        """First of some names that holds a switch."""
        return next((f for f in self._all(names) if isinstance(f.value, bool)), None)

    def count(self, names: Iterable[str], least: int = 1) -> tuple[str, int] | None:
        """First of some names that holds a whole number of at least ``least``."""
        for key, value in self._numbers(names):
            if value >= least and value == int(value):
                return key, int(value)
        return None

    def amount(self, names: Iterable[str]) -> tuple[str, float] | None:
        """First of some names that holds a number."""
        return next(iter(self._numbers(names)), None)

    def keep(self, ours: str, value: Any, how: str) -> None:
        """Take a value, with its arithmetic."""
        self.facts[ours], self.arithmetic[ours] = value, how

    def keep_count(self, ours: str, names: Iterable[str], least: int = 1) -> None:
        """Take over a whole number as it stands."""
        found = self.count(names, least)
        if found is not None:
            self.keep(ours, found[1], f"{ours} {found[1]} ({found[0]})")

    def keep_amount(self, ours: str, names: Iterable[str]) -> None:
        """Take over a number as it stands."""
        found = self.amount(names)
        if found is not None:
            self.keep(ours, found[1], f"{ours} {found[1]:g} ({found[0]})")

    def keep_text(self, ours: str, names: Iterable[str]) -> None:
        """Take over a name as it stands."""
        found = self.text(names)
        if found is not None:
            self.keep(ours, found.value, f"{ours} {found.value} ({found.key})")

    def derived(self) -> Derived:
        """All that was taken."""
        return Derived(self.facts, self.arithmetic, tuple(self.assumptions))

    def _all(self, names: Iterable[str]) -> Iterable[Found]:
        for name in names:
            value = literal(self.settings.get(name))
            if value is not None:
                yield Found(name, value)

    def _numbers(self, names: Iterable[str]) -> Iterable[tuple[str, float]]:
        for name in names:
            value = number(self.settings.get(name))
            if value is not None:
                yield name, value


def share(value: float, parts: int) -> float | int:
    """A quotient, whole where it is."""
    quotient = value / parts
    return int(quotient) if quotient == int(quotient) else quotient
