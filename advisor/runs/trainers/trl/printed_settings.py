"""Settings that a trainer prints before it trains: headers, dumped arguments, the command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import patterns, read_data, setting_names

PATTERNS = patterns("trl")
CONSOLE = read_data("trl")["console"]

NAMES = {*read_data("trl")["printed"], *sum(setting_names("trl").values(), ())}
"""Settings that are looked at in logs in which much else stands too."""

PLANNED = "total_optimization_steps"
"""Length of a run as a trainer prints it, also where ``max_steps`` is -1: so many epochs."""

HEADER_WORDS = ("atch size", "ccumulation steps", "ptimization steps", "Total steps", "GPUs")
"""One of these stands in whatever is found as a header."""


class PrintedSettings:
    """Collects settings from the lines of a console log."""

    def __init__(self) -> None:
        # Under the names of ``TrainingArguments``.
        self.settings: dict[str, Any] = {}
        # Of the run announced last, and the step from which it continues.
        self.planned_steps: int | None = None
        self.resumed_at = 0
        # Headers seen; each one announces a run.
        self.announced = 0
        self._dump = 0
        self._has_model = False

    def feed(self, text: str) -> None:
        """Take one line, which holds no logged row."""
        if len(text) > 65536:
            return
        # Most lines say none of this, and a word is found quicker than a pattern.
        if any(word in text for word in HEADER_WORDS):
            for label, value in PATTERNS["header"].findall(text):
                self._header(label.lower(), int(value.replace(",", "")))
        resumed = PATTERNS["resumed"].search(text) if "Continuing training" in text else None
        if resumed is not None:
            self.resumed_at = int(resumed.group(1))
        is_sought = "odel" in text and not self._has_model
        model = PATTERNS["model"].search(text) if is_sought else None
        if model is not None and model[1].partition("/")[0].lower() not in CONSOLE["folders"]:
            self.settings["model_name_or_path"] = model[1]
            self._has_model = True
        self._dumped(text)

    def take(self, cells: Mapping[str, str]) -> None:
        """Take a printed dict that is no logged row: perhaps the configuration."""
        if "num_generations" in cells or "per_device_train_batch_size" in cells:
            self._set(cells)

    def began(self) -> None:
        """Note that the run announced has logged its first row."""
        self._has_model = False
        self._dump = 0

    def _header(self, label: str, value: int) -> None:
        name = next(n for start, n in CONSOLE["headers"].items() if label.startswith(start))
        self.settings[name] = value
        if name == PLANNED:
            self.planned_steps = value or None
            self.resumed_at = 0
            self.announced += 1

    def _dumped(self, text: str) -> None:
        is_begun = not self._dump and PATTERNS["dump"].search(text) is not None
        if self._dump and text.lstrip().startswith(")"):
            self._dump = 0
        elif self._dump or is_begun:
            self._set({name: a or b or c for name, a, b, c in PATTERNS["pair"].findall(text)})
            self._dump -= 1
            if is_begun:
                # One setting per line follows where the bracket stays open.
                self._dump = 0 if text.rstrip().endswith(")") else 1000
        elif "--num_generations" in text or text.lstrip().startswith("--"):
            flags = PATTERNS["flag"].findall(text)
            self._set({name.replace("-", "_"): a or b or c for name, a, b, c in flags})

    def _set(self, found: Mapping[str, str]) -> None:
        self.settings.update({name: value for name, value in found.items() if name in NAMES})
