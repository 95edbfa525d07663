"""PRIME-Intellect's prime-rl: settings in the package's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import Derived, SettingsExtractor, share
from advisor.runs.trainers.registry import read_trainer

TASK = re.compile(
    r"(?:orchestrator\.)?(?:train\.)?(?:source|env|environment)(?:\.0|\[0\])?\.(?:name|id)"
)


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a prime-rl run."""
    extractor = SettingsExtractor(settings, "prime_rl")
    found = extractor.count("updates")
    steps = found.value if found is not None else 1
    extractor.note("minibatches_per_refresh", steps, str(found or "one optimizer step per batch"))
    extractor.note("epochs_per_refresh", 1, "prime-rl uses each sample once")
    extractor.note("importance_ratio", True, "prime-rl always corrects")
    extractor.assume_as("structure")
    extractor.take_over("group_size", "learning_rate", "planned_steps", "adapter_rank", "model")
    extractor.take_over("max_completion_length", "seed")
    group, batch = extractor.count("group_size"), extractor.count("batch")
    if group is not None and batch is not None:
        prompts = share(batch.value, group.value * steps)
        line = f"{batch} completions / {group}"
        line += f" / step_per_rollout {steps}" if steps > 1 else ""
        extractor.put("prompts_per_step", prompts, f"{line} = {prompts:g}")
    if "adapter_rank" in extractor.facts:
        extractor.note("adapter", "lora", f"rank {extractor.facts['adapter_rank']}")
    extractor.take("task", extractor.text(*sorted(key for key in settings if TASK.fullmatch(key))))
    _derive_lag(extractor)
    _derive_optimizer(extractor)
    _derive_schedule(extractor)
    _derive_advantages(extractor)
    return extractor.derived()


def _derive_lag(extractor: SettingsExtractor) -> None:
    found = extractor.count("lag", least=0)
    if found is None:
        assumption = "max_async_level 1 (prime-rl's default; hard-coded since May 2026)"
        extractor.put("lag", 1.0, f"lag 1: {assumption}")
        extractor.assume(assumption)
        return
    extractor.note("lag", float(found.value), found.name)
    if found.value and not extractor.is_on("strict"):
        extractor.assume_as("lag", lag=found.value)


def _derive_optimizer(extractor: SettingsExtractor) -> None:
    kind = extractor.text("optimizer")
    if kind is not None and kind.value in ("adamw", "sgd"):
        extractor.take("optimizer", kind)
    if kind is not None and kind.value == "sgd":
        extractor.take("momentum", extractor.amount("momentum_of_sgd"))
        if "momentum" not in extractor.facts:
            assumption = "momentum 0.9 (prime-rl's default for SGD)"
            extractor.put("momentum", 0.9, assumption)
            extractor.assume(assumption)
    elif kind is None or kind.value == "adamw":
        extractor.take("momentum", extractor.amount("momentum_of_adamw"))


def _derive_schedule(extractor: SettingsExtractor) -> None:
    kind = extractor.text("schedule")
    if kind is None:
        return
    warmup, decay = extractor.count("warmup_steps", least=0), extractor.count("decay", least=0)
    if kind.value != "constant":
        extractor.take("warmup_steps", warmup)
    if kind.value in ("constant", "cosine"):
        extractor.take("schedule", kind)
    planned = extractor.facts.get("planned_steps")
    if kind.value != "linear" or decay is None:
        return
    # Its "linear" holds the rate and lets it fall over the last decay_steps only.
    flat = None if planned is None or warmup is None else planned - warmup.value - decay.value
    if decay.value == 0:
        extractor.note("schedule", "constant", str(decay))
    elif flat == 0:
        extractor.note("schedule", "linear", f"{decay} = max_steps {planned} - warm-up")


def _derive_advantages(extractor: SettingsExtractor) -> None:
    """Trust region, and what advantages are divided by."""
    low = extractor.amount("mask_low")
    masked = low if low is not None and low.value else None
    extractor.take_ratio_bounds(masked, extractor.amount("mask_high"))
    divided, kind = extractor.switch("divided"), extractor.text("algorithm")
    if divided is not None and divided.value:
        extractor.note("advantage_scaling", "group", f"{divided.name} true")
    elif kind is None or kind.value in ("grpo", "echo"):
        source = "prime-rl's default" if kind is None else str(kind)
        extractor.note("advantage_scaling", "none", f"{source}: centred only")


TRAINER = read_trainer("prime_rl", derive=derive)
