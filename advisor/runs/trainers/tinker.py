"""Tinker and its cookbook: settings in the package's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from advisor.runs.trainers.derived import Derived, SettingsExtractor, share
from advisor.runs.trainers.registry import read_trainer


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a cookbook run."""
    # One row of ``metrics.jsonl`` is one batch of rollouts, cut into ``num_substeps`` optimizer
    # steps, each sample used once (``tinker_cookbook/rl/train.py``, ``train_step``).
    doubled = {key.replace("X_", ""): value for key, value in settings.items() if "X_" in key}
    extractor = SettingsExtractor({**doubled, **settings}, "tinker")
    substeps = extractor.defaulted("substeps", "tinker-cookbook's")
    extractor.take("minibatches_per_refresh", substeps)
    extractor.note("epochs_per_refresh", 1, "tinker uses each sample once")
    extractor.take_over("learning_rate", "group_size", "kl_coefficient", "max_completion_length")
    extractor.take_over("seed", "model", "task", "adapter_rank")
    if "adapter_rank" in extractor.facts:
        extractor.note("adapter", "lora", f"lora_rank {extractor.facts['adapter_rank']}")
    groups, planned = extractor.count("groups"), extractor.count("max_steps")
    times = int(substeps.value)
    if groups is not None:
        prompts = share(groups.value, times)
        extractor.put("prompts_per_step", prompts, f"{groups} / {substeps} = {prompts:g}")
    if planned is not None:
        steps = planned.value * times
        extractor.put("planned_steps", steps, f"{planned} x {substeps} = {steps}")
    most = extractor.count("staleness", least=0)
    if most is not None:
        lag = most.value * times
        extractor.put("lag", float(lag), f"{most} x {substeps} = {lag}")
        if lag:
            extractor.assume_as("lag", lag=lag)
    elif "async_config" in settings:
        extractor.note("lag", 0.0, "async_config is empty: synchronous")
    _derive_loss(extractor)
    if any(mark in settings for mark in extractor.data["keys"]["setting_marks"]):
        extractor.note("optimizer", "adam", "tinker.AdamParams")
        extractor.note("momentum", 0.9, "beta1 in tinker_cookbook/rl/train.py")
        extractor.note("advantage_scaling", "none", "rewards are centred")
        extractor.assume_as("constants")
    if extractor.is_on("remove_constant_reward_groups"):
        extractor.assume_as("filtered")
    return extractor.derived()


def _derive_loss(extractor: SettingsExtractor) -> None:
    extractor.choose("importance_ratio")
    loss = extractor.text("importance_ratio")
    if loss is not None and loss.value == "ppo":
        low, high = (
            found and replace(found, name=found.name.removeprefix("loss_fn_config."))
            for found in (extractor.amount("ratio_low"), extractor.amount("ratio_high"))
        )
        extractor.take_ratio_bounds(low, high)


TRAINER = read_trainer("tinker", derive=derive)
