"""Settings of TRL, Unsloth and ms-swift in the package's names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.trl.arguments import (
    LORA_KIND,
    LORA_RANK,
    LORA_TARGETS,
    MODEL,
    PLANNED,
    TASK,
    ArgumentsExtractor,
)
from advisor.runs.trainers.trl.batch import set_prompts, set_refresh
from advisor.runs.trainers.values import number

SCHEDULES = {
    "constant": "constant",
    "constant_with_warmup": "constant",
    "linear": "linear",
    "cosine": "cosine",
}
ADVANTAGE_SCALING = {
    "true": "group",
    "group": "group",
    "batch": "batch",
    "false": "none",
    "none": "none",
}
MOMENTUM = re.compile(r"(?:^|,)momentum=([^,]{1,20})")
RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})")
PASSES_ARGUMENTS = (5, 3)
"""Release of transformers since which ``optim_args`` reach SGD."""

AVERAGING = {
    "grpo": "sequence",
    "bnpo": "local_token",
    "dapo": "token",
    "dr_grpo": "fixed_length",
}
"""Loss types that differ in nothing but what the loss is a mean over (``grpo_trainer.py``)."""

UNCLIPPED = ("sapo", "vespo", "real")
"""Loss types that weigh large importance ratios down without a trust region."""


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run in the package's names."""
    if not settings:
        return Derived()
    extractor = ArgumentsExtractor(settings)
    _take_over(extractor)
    _set_logging_steps(extractor)
    # Nested configurations keep the version of transformers that wrote them.
    _set_optimizer(extractor, str(settings.get("transformers_version", "")))
    _set_schedule(extractor)
    _set_trust_region(extractor)
    _set_adapter(extractor)
    _set_precision(extractor)
    set_prompts(extractor)
    set_refresh(extractor)
    return extractor.derived()


def _take_over(extractor: ArgumentsExtractor) -> None:
    """Derive settings whose value needs no arithmetic."""
    extractor.take("group_size", extractor.count("num_generations"))
    extractor.take("max_prompt_length", extractor.count("max_prompt_length"))
    extractor.take("max_completion_length", extractor.count("max_completion_length"))
    extractor.take("planned_steps", extractor.count(PLANNED, "max_steps"))
    extractor.take("seed", extractor.count("seed", least=0))
    extractor.take("model", extractor.text(*MODEL))
    extractor.take("task", extractor.text(*TASK))
    for ours, name in (
        ("learning_rate", "learning_rate"),
        ("kl_coefficient", "beta"),
        ("parameters", "model/num_parameters"),
    ):
        found = extractor.amount(name)
        if found is not None and (found.value > 0 or (ours, found.value) == ("kl_coefficient", 0)):
            extractor.put(ours, found.value, f"{ours} {found.value:.12g} ({name})")
    if extractor.is_on("kl_in_reward") and extractor.facts.get("kl_coefficient", 1) > 0:
        extractor.assume("the logged reward contains the KL penalty (kl_in_reward is on)")


def _set_logging_steps(extractor: ArgumentsExtractor) -> None:
    found, planned = extractor.amount("logging_steps"), extractor.count(PLANNED, "max_steps")
    strategy = extractor.text("logging_strategy")
    by_steps = strategy is None or strategy.value.rpartition(".")[2].lower() == "steps"
    if found is None or found.value <= 0 or not by_steps:
        return
    if found.value >= 1:
        steps = int(found.value)
        extractor.put("logging_steps", steps, f"logging_steps {steps} (logging_steps)")
    elif planned is not None:
        steps = math.ceil(found.value * planned.value)
        extractor.put("logging_steps", steps, f"{found} x {planned}, rounded up = {steps}")


def _set_optimizer(extractor: ArgumentsExtractor, version: str) -> None:
    optim = extractor.text("optim")
    kind = None
    if optim is not None:
        name = optim.value.rpartition(".")[2].lower()
        # schedule_free_sgd averages weights where SGD has momentum.
        kind = "adamw" if "adamw" in name else "sgd" if name == "sgd" else None
        if kind is not None:
            extractor.put("optimizer", kind, f"optimizer {kind} (optim {optim.value})")
        elif "sgd" in name:
            extractor.assume(f"optim {name} is none of AdamW and SGD and was left out")
    if kind == "sgd":
        _set_momentum_of_sgd(extractor, version)
    decay = extractor.amount("adam_beta1")
    if decay is None or not 0 <= decay.value < 1 or (optim is not None and kind != "adamw"):
        return
    extractor.put("momentum", decay.value, f"momentum {decay.value:.12g} (adam_beta1)")


def _set_momentum_of_sgd(extractor: ArgumentsExtractor, version: str) -> None:
    arguments = extractor.text("optim_args")
    stated = MOMENTUM.search(arguments.value.replace(" ", "")) if arguments is not None else None
    momentum = number(stated.group(1)) if stated is not None else None
    if momentum is None:
        return
    release = RELEASE.match(version)
    if release is not None and tuple(map(int, release.groups())) < PASSES_ARGUMENTS:
        how = f"momentum 0 (transformers {release.group()} keeps optim_args from SGD)"
        extractor.put("momentum", 0.0, how)
        return
    extractor.put("momentum", momentum, f"momentum {momentum:g} (optim_args)")
    if release is None:
        extractor.assume(
            f"momentum {momentum:g}: transformers is taken to be 5.3 or later; earlier releases "
            "keep optim_args from SGD"
        )


def _set_schedule(extractor: ArgumentsExtractor) -> None:
    scheduler = extractor.text("lr_scheduler_type")
    name = None if scheduler is None else scheduler.value.rpartition(".")[2].lower()
    if name in SCHEDULES:
        kind = SCHEDULES[name]
        extractor.put("schedule", kind, f"schedule {kind} (lr_scheduler_type {name})")
    if name == "constant":
        extractor.put("warmup_steps", 0, "lr_scheduler_type constant has no warm-up = 0")
        return
    steps, share = extractor.amount("warmup_steps"), extractor.amount("warmup_ratio")
    if steps is not None and steps.value >= 1:
        whole = int(steps.value)
        extractor.put("warmup_steps", whole, f"warmup_steps {whole} (warmup_steps)")
        return
    # Since transformers 5 a share of the run may stand under the name of the count.
    if steps is not None and (steps.value > 0 or share is None):
        share = steps
    planned = extractor.count(PLANNED, "max_steps")
    if share is None or not 0 <= share.value <= 1:
        return
    if share.value == 0:
        extractor.put("warmup_steps", 0, f"{share} = 0")
    elif planned is not None:
        whole = math.ceil(share.value * planned.value)
        extractor.put("warmup_steps", whole, f"{share} x {planned}, rounded up = {whole}")


def _set_trust_region(extractor: ArgumentsExtractor) -> None:
    """Clipping of the importance ratio, and what advantages are divided by."""
    loss = extractor.text("loss_type")
    averaging = AVERAGING.get(loss.value.lower()) if loss is not None else None
    if loss is not None and averaging is not None:
        extractor.put("loss_averaging", averaging, f"loss_averaging {averaging} ({loss})")
    low, high = extractor.amount("epsilon"), extractor.amount("epsilon_high")
    if loss is None or loss.value.lower() not in UNCLIPPED:
        if low is not None and low.value > 0:
            extractor.put("clip_low", low.value, f"clip_low {low.value:.12g} (epsilon)")
        if high is not None and high.value > 0:
            extractor.put("clip_high", high.value, f"clip_high {high.value:.12g} (epsilon_high)")
        elif low is not None and low.value > 0:
            how = f"clip_high {low.value:.12g} (epsilon, as epsilon_high is not set)"
            extractor.put("clip_high", low.value, how)
    scaling = extractor.word("scale_rewards")
    if scaling in ADVANTAGE_SCALING:
        kind = ADVANTAGE_SCALING[scaling]
        extractor.put(
            "advantage_scaling", kind, f"advantage_scaling {kind} (scale_rewards {scaling})"
        )


def _set_precision(extractor: ArgumentsExtractor) -> None:
    """Trainers switch on one of two; that both are off is said, not taken for granted."""
    for name in ("bf16", "fp16"):
        if extractor.is_on(name):
            extractor.put("precision", name, f"precision {name} ({name} is on)")
            return
    if extractor.is_on("bf16") is False and extractor.is_on("fp16") is False:
        extractor.put("precision", "fp32", "precision fp32 (bf16 and fp16 are off)")


def _set_adapter(extractor: ArgumentsExtractor) -> None:
    kind, rank = extractor.text(*LORA_KIND), extractor.count(*LORA_RANK)
    # Configurations print LoRA's default rank also where no adapter is trained.
    if extractor.is_on("use_peft") is False:
        extractor.put("adapter", "full", "adapter full (use_peft is off)")
    elif extractor.is_on("full_finetuning"):
        extractor.put("adapter", "full", "adapter full (full_finetuning is on)")
    elif kind is not None and "lora" not in kind.value.lower():
        if kind.value.lower() == "full":
            extractor.put("adapter", "full", f"adapter full ({kind.name})")
    elif rank is not None:
        extractor.put("adapter", "lora", f"adapter lora ({rank})")
        extractor.put("adapter_rank", int(rank.value), f"adapter_rank {rank.value:g} ({rank.name})")
    elif kind is not None:
        extractor.put("adapter", "lora", f"adapter lora ({kind.name})")
    if extractor.facts.get("adapter") == "lora":
        extractor.take("adapter_alpha", extractor.count("lora_alpha"))
        extractor.take_targets(*LORA_TARGETS)
