"""Settings that a trainer prints before it trains: headers, dumped arguments, the command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import read_data, setting_names

NAMES = frozenset(
    {
        *read_data("trl")["printed"],
        *(name for names in setting_names("trl").values() for name in names),
    }
)
"""Settings that are looked at in logs in which much else stands too."""

PLANNED = "total_optimization_steps"
"""Length of a run as a trainer prints it, also where ``max_steps`` is -1: so many epochs."""

LONGEST = 65536
"""Characters of a line in which settings are sought."""

LONGEST_DUMP = 1000
"""Lines of a configuration that is printed one setting per line."""

HEADER = re.compile(
    r"(Instantaneous batch size per device|Batch size per device|batch size has been adjusted to"
    r"|Total train batch size[^=|]{0,80}|Total batch size[^=|]{0,60}|Gradient [Aa]ccumulation steps"
    r"|Total optimization steps|(?<=\| )Total steps|Data Parallel GPUs)"
    r"\s{0,4}[=:]\s{0,4}(\d[\d,]{0,15})"
)
HEADER_NAMES = {
    "instantaneous batch size per device": "per_device_train_batch_size",
    "batch size per device": "per_device_train_batch_size",
    "batch size has been adjusted to": "per_device_train_batch_size",
    "total train batch size": "total_train_batch_size",
    "total batch size": "total_train_batch_size",
    "gradient accumulation steps": "gradient_accumulation_steps",
    "total optimization steps": PLANNED,
    "total steps": PLANNED,
    "data parallel gpus": "world_size",
}
HEADER_WORDS = ("atch size", "ccumulation steps", "ptimization steps", "Total steps", "GPUs")
"""One of these stands in whatever ``HEADER`` finds."""

RESUMED = re.compile(r"Continuing training from global step (\d{1,9})")
MODEL = re.compile(
    r"""(?<![\w.])(?<![Rr]eward )(?<![Rr]eference )(?<![Jj]udge )(?<![Tt]eacher )"""
    r"""[Mm]odel(?:_name_or_path|_name|_id)?['"]?\s{0,3}[=:]\s{0,3}['"]?"""
    r"""([A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})(?=$|[\s,;'")\]])"""
)
FOLDERS = frozenset(
    {"output", "outputs", "result", "results", "checkpoint", "checkpoints", "ckpt", "ckpts"}
    | {"model", "models", "save", "saves", "saved", "run", "runs", "log", "logs", "data", "home"}
    | {"root", "tmp", "mnt", "workspace", "content", "cache", "exp", "experiments"}
)
"""What stands before the slash in a path, where a model on the hub has its owner."""

VALUE = r"""(?:'([^'\n]{0,200})'|"([^"\n]{0,200})"|([^\s,'"()\[\]{}]{1,200}))"""
PAIR = re.compile(rf"(?<![\w.-])([A-Za-z_]\w{{1,60}})={VALUE}(?=[,)\s]|$)")
FLAG = re.compile(rf"(?<![\w-])--([A-Za-z][\w-]{{1,60}})[ =]{{1,4}}{VALUE}")
DUMP = re.compile(
    r"(?:GRPO\w{0,30}Config|GRPO\w{0,30}Arguments|RLHFArguments|TrainingArguments|ModelArguments"
    r"|ScriptArguments|ModelConfig|Namespace)\("
)
"""Configurations of the trainer; that of vLLM, printed too, has a seed and a model of its own."""


class PrintedSettings:
    """Collects settings from the lines of a console log.

    Attributes
    ----------
    settings : dict of str to object
        Under the names of ``TrainingArguments``.
    planned_steps : int or None
        Of the run announced last.
    resumed_at : int
        Step from which it continues.
    announced : int
        Headers seen; each one announces a run.
    """

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.planned_steps: int | None = None
        self.resumed_at = 0
        self.announced = 0
        self._dump = 0
        self._has_model = False

    def feed(self, text: str) -> None:
        """Take one line, which holds no logged row."""
        if len(text) > LONGEST:
            return
        # Most lines say none of this, and a word is found quicker than a pattern.
        if any(word in text for word in HEADER_WORDS):
            for label, value in HEADER.findall(text):
                self._header(label, int(value.replace(",", "")))
        resumed = RESUMED.search(text) if "Continuing training" in text else None
        if resumed is not None:
            self.resumed_at = int(resumed.group(1))
        model = MODEL.search(text) if "odel" in text and not self._has_model else None
        if model is not None and model.group(1).partition("/")[0].lower() not in FOLDERS:
            self.settings["model_name_or_path"] = model.group(1)
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
        name = next(n for start, n in HEADER_NAMES.items() if label.lower().startswith(start))
        self.settings[name] = value
        if name == PLANNED:
            self.planned_steps = value or None
            self.resumed_at = 0
            self.announced += 1

    def _dumped(self, text: str) -> None:
        if self._dump and text.lstrip().startswith(")"):
            self._dump = 0
        elif self._dump:
            self._dump -= 1
            self._set({name: a or b or c for name, a, b, c in PAIR.findall(text)})
        elif DUMP.search(text):
            # One setting per line follows where the bracket stays open.
            self._dump = 0 if text.rstrip().endswith(")") else LONGEST_DUMP
            self._set({name: a or b or c for name, a, b, c in PAIR.findall(text)})
        elif "--num_generations" in text or text.lstrip().startswith("--"):
            flags = {n.replace("-", "_"): a or b or c for n, a, b, c in FLAG.findall(text)}
            self._set(flags)

    def _set(self, found: Mapping[str, str]) -> None:
        self.settings.update({name: value for name, value in found.items() if name in NAMES})
