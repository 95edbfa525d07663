"""Settings in the package's names, each with the arithmetic that led to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Derived:
    """Settings in the package's names, and how each was derived.

    Attributes
    ----------
    facts : dict of str to object
        By ``advisor.runs.logs.settings.stated_settings.KEYS``.
    arithmetic : dict of str to str
        How each fact was derived: ``"train_batch_size 1024 / ppo_mini_batch_size 256 = 4"``.
    assumptions : tuple of str
        What the source did not state and was assumed.
    warnings : tuple of str
        What the user should check.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    arithmetic: dict[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def put(self, name: str, value: Any, arithmetic: str) -> None:
        """Set a fact and its arithmetic."""
        self.facts[name], self.arithmetic[name] = value, arithmetic

    def drop(self, name: str) -> None:
        """Remove a fact and its arithmetic."""
        self.facts.pop(name, None)
        self.arithmetic.pop(name, None)

    def assume(self, line: str) -> None:
        """Add an assumption once."""
        if line not in self.assumptions:
            self.assumptions = (*self.assumptions, line)

    def warn(self, line: str) -> None:
        """Add a warning once."""
        if line not in self.warnings:
            self.warnings = (*self.warnings, line)
