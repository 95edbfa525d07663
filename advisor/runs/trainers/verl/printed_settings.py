"""Settings that a verl console log states before its first row of metrics."""

from __future__ import annotations

import re
from typing import Any

from advisor.runs.trainers.verl.printed_config import (
    DICT_START,
    LONGEST_LINE,
    LONGEST_VALUE,
    PrintedDict,
    PrintedYaml,
    plain_value,
    untag,
)

OVERRIDE = re.compile(r"(?<!\S)['\"]?[+~]{0,2}([a-z_]\w*(?:\.\w+)+)=('[^']*'|\"[^\"]*\"|[^\s'\"]+)")
SIZE = re.compile(r"\w+For(?:CausalLM|ConditionalGeneration) contains (\d+(?:\.\d+)?)([BMK]) param")
SCALES = {"B": 1e9, "M": 1e6, "K": 1e3}
PLANNED = re.compile(r"Total training steps: (\d{1,9})\s*$")
PLANNED_NAME = "trainer.total_training_steps"

GROUPS = ("actor_rollout_ref.", "algorithm.", "trainer.")
"""Settings of which a configuration has some; another dictionary may begin as one does."""


class PrintedSettings:
    """Collects settings line by line: configurations, command lines, counts and sizes."""

    def __init__(self) -> None:
        self._dict: PrintedDict | None = None
        self._yaml: PrintedYaml | None = None
        self._dumps: list[dict[str, Any]] = []
        self._commands: list[dict[str, Any]] = []
        self._planned: set[int] = set()
        self._sizes: set[float] = set()

    def feed(self, text: str) -> None:
        """Read one line that holds no metrics."""
        if self._dict is not None:
            self._dict.feed(untag(text))
            if not self._dict.is_open:
                self.end()
        elif self._yaml is not None:
            if not self._yaml.feed(untag(text)):
                self.end()
        elif "{'" in text:
            line = untag(text)
            if DICT_START.match(line.text):
                self._dict = PrintedDict(line)
        elif " contains " in text:
            self._note_size(text)
        elif "Total training steps: " in text:
            found = PLANNED.search(text)
            if found is not None:
                self._planned.add(int(found.group(1)))
        elif "main_ppo" in text or "verl.trainer" in text:
            self._note_command(text)
        elif "Config" in text and untag(text).text.strip() == "Config":
            self._yaml = PrintedYaml(untag(text).tag, ".")

    def end(self) -> None:
        """Close a configuration that is still open."""
        if self._dict is not None and any(k.startswith(GROUPS) for k in self._dict.settings):
            self._dumps.append(self._dict.settings)
        if self._yaml is not None:
            values = {k: (plain_value(v), v) for k, v in self._yaml.cells.items()}
            found = {
                k: text.strip("'\"") if value is NotImplemented else value
                for k, (value, text) in values.items()
            }
            if any(k.startswith(("worker.", "trainer.")) for k in found):
                self._dumps.append(found)
        self._dict = self._yaml = None

    def settings(self) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
        """Settings under verl's names, what was assumed, and warnings.

        A configuration printed in full comes before command lines. Where the attempts at a run
        that share a log differ in a setting, it is left out: no row says to which it belongs.
        """
        sources = self._dumps or self._commands
        settings: dict[str, Any] = {}
        unlike: set[str] = set()
        for source in sources:
            for key, value in source.items():
                if settings.setdefault(key, value) != value:
                    unlike.add(key)
        settings = {key: value for key, value in settings.items() if key not in unlike}
        warnings = []
        if unlike:
            warnings.append(
                f"the log holds {len(sources)} configurations that differ in {len(unlike)} "
                f"settings, which were left out: {', '.join(sorted(unlike)[:5])}"
            )
        assumptions = []
        is_open = settings.get(PLANNED_NAME) is None and PLANNED_NAME not in unlike
        if is_open and len(self._planned) == 1:
            (settings[PLANNED_NAME],) = self._planned
            assumptions.append(f"{PLANNED_NAME} is the printed 'Total training steps'")
        return settings, tuple(assumptions), tuple(warnings)

    def facts(self) -> dict[str, Any]:
        """Size of the model, where one alone is printed."""
        return {"parameters": next(iter(self._sizes))} if len(self._sizes) == 1 else {}

    def _note_size(self, text: str) -> None:
        found = SIZE.search(text[:LONGEST_LINE])
        if found is not None:
            self._sizes.add(float(found.group(1)) * SCALES[found.group(2)])

    def _note_command(self, text: str) -> None:
        overrides = {}
        for match in OVERRIDE.finditer(text[:LONGEST_LINE]):
            value = match.group(2).strip("'\"")
            if "$" not in value and len(value) <= LONGEST_VALUE:
                overrides[match.group(1)] = value
        if overrides:
            self._commands.append(overrides)
