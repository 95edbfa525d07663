"""Keys and settings of the made-up trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.runs import Derived, KeyTable, SettingsExtractor


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run."""
    extractor = SettingsExtractor(settings)
    extractor.take("learning_rate", extractor.amount("pace"))
    extractor.take("group_size", extractor.count("siblings"))
    questions = extractor.count("questions")
    if questions is not None:
        extractor.put("prompts_per_step", questions.value, f"{questions}, one step per batch")
        extractor.put("minibatches_per_refresh", 1, f"{questions}, one step per batch")
        extractor.assume("the made-up trainer uses each sample once")
        extractor.put("epochs_per_refresh", 1, "epochs_per_refresh 1")
    return extractor.derived()


KEY_TABLE = KeyTable(
    name="made-up",
    marks=(r"mu_\w+",),
    reward=(("mu_praise",),),
    never_reward={"mu_praise_max": "it is the largest of a batch"},
    optimizer_steps=("mu_turn",),
    series={"entropy": ("mu_surprise",), "completion_length": ("mu_words",)},
    setting_marks=("siblings", "questions"),
    derive=derive,
)
