"""Settings of prime-rl in the package's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.settings_extractor import SettingsExtractor, share

STRUCTURE = (
    "prime-rl takes one optimizer step per batch of rollouts and centres the rewards of a group "
    "without dividing by their spread; the run is taken to use its own algorithm"
)
TASK = re.compile(
    r"(?:orchestrator\.)?(?:train\.)?(?:source|env|environment)(?:\.0|\[0\])?\.(?:name|id)"
)


def _both(*names: str, part: str) -> tuple[str, ...]:
    """Names in one file for all (``trainer.optim.lr``), and in the component's own."""
    return tuple(full for name in names for full in (f"{part}.{name}", name))


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a prime-rl run."""
    # Sources: ``prime_rl/configs/orchestrator.py`` and ``trainer.py`` of August 2026, and their
    # ancestors back to July 2025 (``rollouts_per_example``, ``async_level``, ``mask_ratio_low``).
    extractor = SettingsExtractor(settings)
    steps = _updates(extractor)
    group = extractor.count(
        *_both("group_size", "rollouts_per_example", "rollouts_per_prompt", part="orchestrator")
    )
    if group is not None:
        extractor.take("group_size", group)
    batch = extractor.count(*_both("batch_size", part="orchestrator"))
    if group is not None and batch is not None:
        prompts = share(batch.value, group.value * steps)
        line = f"{batch} completions / {group}"
        line += f" / step_per_rollout {steps}" if steps > 1 else ""
        extractor.put("prompts_per_step", prompts, f"{line} = {prompts:g}")
    _derive_lag(extractor)
    extractor.take("learning_rate", extractor.amount(*_both("optim.lr", part="trainer")))
    _derive_optimizer(extractor)
    extractor.take(
        "planned_steps", extractor.count("max_steps", "trainer.max_steps", "orchestrator.max_steps")
    )
    _derive_schedule(extractor)
    _derive_mask(extractor)
    _derive_scaling(extractor)
    ranks = ("model.lora.rank", "model.experimental.lora.rank")
    extractor.take("adapter_rank", extractor.count(*_both(*ranks, part="trainer")))
    if "adapter_rank" in extractor.facts:
        extractor.put("adapter", "lora", f"adapter lora (rank {extractor.facts['adapter_rank']})")
    lengths = ("train.sampling.max_completion_tokens", "sampling.max_completion_tokens")
    extractor.take(
        "max_completion_length",
        extractor.count(*_both(*lengths, "sampling.max_tokens", part="orchestrator")),
    )
    extractor.take(
        "model", extractor.text("model.name", "trainer.model.name", "orchestrator.model.name")
    )
    extractor.take("task", extractor.text(*sorted(key for key in settings if TASK.fullmatch(key))))
    extractor.take("seed", extractor.count(*_both("seed", part="orchestrator"), least=0))
    return extractor.derived()


def _updates(extractor: SettingsExtractor) -> int:
    found = extractor.count("optim.step_per_rollout", "step_per_rollout")
    steps = found.value if found is not None else 1
    reason = f"{found.name} {steps}" if found is not None else "one optimizer step per batch"
    extractor.put("minibatches_per_refresh", steps, f"minibatches_per_refresh {steps} ({reason})")
    extractor.put("epochs_per_refresh", 1, "epochs_per_refresh 1 (prime-rl uses each sample once)")
    extractor.put("importance_ratio", True, "importance_ratio true (prime-rl always corrects)")
    extractor.assume(STRUCTURE)
    return steps


def _derive_lag(extractor: SettingsExtractor) -> None:
    names = _both("max_async_level", "async_level", part="orchestrator")
    found = extractor.count(
        *names, *_both("max_async_level", "async_level", part="trainer"), least=0
    )
    if found is None:
        assumption = "max_async_level 1 (prime-rl's default; hard-coded since May 2026)"
        extractor.put("lag", 1.0, f"lag 1: {assumption}")
        extractor.assume(assumption)
        return
    extractor.put("lag", float(found.value), f"lag {found.value} ({found.name})")
    is_strict = extractor.is_on(*_both("strict_async_level", part="orchestrator"))
    if found.value and not is_strict:
        extractor.assume(f"lag {found.value}: sampling is taken to run ahead as allowed")


def _derive_optimizer(extractor: SettingsExtractor) -> None:
    kind = extractor.text(*_both("optim.type", part="trainer"))
    if kind is not None and kind.value in ("adamw", "sgd"):
        extractor.take("optimizer", kind)
    if kind is not None and kind.value == "sgd":
        extractor.take("momentum", extractor.amount(*_both("optim.momentum", part="trainer")))
        if "momentum" not in extractor.facts:
            assumption = "momentum 0.9 (prime-rl's default for SGD)"
            extractor.put("momentum", 0.9, assumption)
            extractor.assume(assumption)
    elif kind is None or kind.value == "adamw":
        extractor.take("momentum", extractor.amount(*_both("optim.betas1", part="trainer")))


def _derive_schedule(extractor: SettingsExtractor) -> None:
    kind = extractor.text(*_both("scheduler.type", part="trainer"))
    if kind is None:
        return
    warmup = extractor.count(*_both("scheduler.warmup_steps", part="trainer"), least=0)
    if kind.value != "constant" and warmup is not None:
        extractor.take("warmup_steps", warmup)
    if kind.value in ("constant", "cosine"):
        extractor.take("schedule", kind)
    decay = extractor.count(*_both("scheduler.decay_steps", part="trainer"), least=0)
    planned = extractor.facts.get("planned_steps")
    if kind.value != "linear" or decay is None:
        return
    # Its "linear" holds the rate and lets it fall over the last decay_steps only.
    flat = None if planned is None or warmup is None else planned - warmup.value - decay.value
    if decay.value == 0:
        extractor.put("schedule", "constant", f"schedule constant ({decay.name} 0)")
    elif planned is not None and flat == 0:
        line = f"schedule linear ({decay} = max_steps {planned} - warm-up)"
        extractor.put("schedule", "linear", line)


def _derive_mask(extractor: SettingsExtractor) -> None:
    low = extractor.amount(*_both("loss.mask_ratio_low", part="trainer"))
    high = extractor.amount(*_both("loss.mask_ratio_high", "loss.clip_ratio", part="trainer"))
    if low is not None and 0 < low.value < 1:
        value = round(1 - low.value, 12)
        extractor.put("clip_low", value, f"1 - {low.name} {low.value:g} = {value:g}")
    if high is not None and high.value > 1:
        value = round(high.value - 1, 12)
        extractor.put("clip_high", value, f"{high.name} {high.value:g} - 1 = {value:g}")


def _derive_scaling(extractor: SettingsExtractor) -> None:
    names = _both("advantage.std_norm", part="orchestrator")
    normed = extractor.switch(*names)
    if normed is not None and normed.value:
        extractor.put("advantage_scaling", "group", f"advantage_scaling group ({normed.name} true)")
        return
    kind = extractor.text(*_both("algo.type", part="orchestrator"))
    if kind is None or kind.value in ("grpo", "echo"):
        reason = f"{kind.name} {kind.value}" if kind is not None else "prime-rl's default"
        extractor.put(
            "advantage_scaling", "none", f"advantage_scaling none ({reason}: centred only)"
        )
