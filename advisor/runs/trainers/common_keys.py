"""Names that many trainers and hand-written loops share; the fallback for every log."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from advisor.runs.trainers.derived import LEAST, TEXTS, Derived, literal, number
from advisor.runs.trainers.key_table import read_key_table
from advisor.runs.trainers.table_files import read_data

DATA = read_data("common")
RUN_KEYS: tuple[str, ...] = tuple(DATA["run_keys"])
KIND_KEYS: tuple[str, ...] = tuple(DATA["kind_keys"])
UNSURE_STEPS: tuple[str, ...] = tuple(DATA["unsure_steps"])
PARTS_OF_A_STEP: tuple[tuple[str, str], ...] = tuple(map(tuple, DATA["parts_of_a_step"]))

COMPONENT_STD = re.compile(r"rewards/[^/]+/std")
"""Spread of one reward function over the batch, as TRL logs it."""

NAME_OF_MODEL = re.compile(r"(?:.*\.)?model\.(?:name|path|id|name_or_path|model_path)")
"""A model's name in a section of its own."""

MOST_PASSES = 64
"""Passes over a batch of rollouts that anyone makes."""

MOST_LONE_PASSES = 8
"""Those that a bare ``num_iterations`` may mean: loops call the length of a run so, too."""


def are_passes(key: str, count: float, names: Container[str]) -> bool:
    """Whether a setting, next to others without sections, means passes over the rollouts."""
    if key.rpartition(".")[2] != "num_iterations":
        return count <= MOST_PASSES
    is_of_trl = sum(name in names for name in DATA["arguments_of_trl"]) >= 2
    return count <= (MOST_PASSES if is_of_trl else MOST_LONE_PASSES)


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings under their common names, taken over as they stand."""
    facts: dict[str, Any] = {}
    arithmetic: dict[str, str] = {}
    by_end = {key.rpartition(".")[2]: key for key in reversed(list(settings))}
    for name in filter(NAME_OF_MODEL.fullmatch, settings):
        by_end.setdefault("model", name)
    for ours, names in DATA["settings"].items():
        key = next((by_end[name] for name in names if name in by_end), None)
        if key is None:
            continue
        value: Any = literal(settings[key]) if ours in TEXTS else number(settings[key])
        usable = isinstance(value, str) if ours in TEXTS else value is not None
        if not usable or (ours in LEAST and value != int(value)):
            continue
        if ours == "epochs_per_refresh" and not are_passes(key, value, by_end):
            continue
        facts[ours] = int(value) if ours in LEAST else value
        arithmetic[ours] = f"{ours} {settings[key]} ({key})"
    if "adapter_rank" in facts:
        if facts["adapter_rank"] > 0:
            facts["adapter"] = "lora"
        else:
            del facts["adapter_rank"], arithmetic["adapter_rank"]
    if facts.get("adapter") != "lora":
        facts.pop("adapter_alpha", None)
    return Derived(facts, arithmetic)


COMMON_KEYS = read_key_table("common", derive=derive)
