"""Hand-written loops: what their keys and settings mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from advisor.runs.trainers.derived import Derived, SettingsExtractor
from advisor.runs.trainers.key_table import passes, plain, read_key_table, spellings
from advisor.runs.trainers.registry import key_tables

SECTIONS = frozenset(
    {"training", "train", "trainer", "grpo", "rl", "ppo", "algorithm", "optim", "optimization"}
)
"""Sections in which a name means what it means outside of any."""

LEAST_CLIP = 0.01
"""Below it an ``epsilon`` is Adam's, not a trust region."""


def unless_another(keys: Iterable[str]) -> str | None:
    """Name of the hand-written loop, unless some keys are the marks of another trainer."""
    names = [name for key in keys for name in spellings(plain(key))]
    others = (other for other in key_tables() if other.name != NAME)
    return None if any(other.score(names) for other in others) else NAME


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a hand-written loop, beyond the names that many loops share."""
    inside = {
        key.rpartition(".")[2]: value
        for key, value in settings.items()
        if key.partition(".")[0] in SECTIONS
    }
    extractor = SettingsExtractor({**inside, **settings}, "own_loop")
    extractor.take_over("planned_steps", "warmup_steps", "kl_coefficient", "max_completion_length")
    prompts = extractor.amount("prompts_per_step")
    if prompts is not None and prompts.value > 0:
        extractor.take("prompts_per_step", prompts)
        if prompts.name == "batch":
            extractor.assume(f"{prompts} taken as prompts per optimizer step (not completions)")
    extractor.take("epochs_per_refresh", passes(extractor, "epochs_per_refresh", settings))
    extractor.choose("schedule")
    extractor.choose("optimizer")
    for ours in ("clip_low", "clip_high"):
        bound = extractor.amount(ours)
        if bound is not None and bound.value >= LEAST_CLIP:
            extractor.take(ours, bound)
    return extractor.derived()


_TABLE = read_key_table("own_loop", derive=derive)
KEY_TABLE = replace(
    _TABLE,
    series={
        series: (*names, *(name.replace("_", " ") for name in names))
        for series, names in _TABLE.series.items()
    },
)
NAME = KEY_TABLE.name
TRACES = tuple(name for (name,) in KEY_TABLE.reward[8:])
"""Names of a list that holds the mean reward of each step."""
