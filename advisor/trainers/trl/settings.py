"""Settings of TRL, Unsloth and ms-swift in the package's names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from advisor.trainers.derived import Derived
from advisor.trainers.trl.batch import set_prompts, set_refresh
from advisor.trainers.trl.given import LORA_KIND, LORA_RANK, MODEL, PLANNED, TASK, Given
from advisor.trainers.values import number

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

UNCLIPPED = ("sapo", "vespo", "real")
"""Loss types that weigh large importance ratios down without a trust region."""


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run in the package's names.

    Parameters
    ----------
    settings : mapping of str to object
        As in `Given`.

    Returns
    -------
    derived : Derived
    """
    given = Given(settings)
    _take_over(given)
    _set_logging_steps(given)
    # Nested configurations keep the version of transformers that wrote them.
    _set_optimizer(given, str(settings.get("transformers_version", "")))
    _set_schedule(given)
    _set_trust_region(given)
    _set_adapter(given)
    set_prompts(given)
    set_refresh(given)
    return Derived(given.facts, given.arithmetic, tuple(dict.fromkeys(given.assumptions)))


def _take_over(given: Given) -> None:
    """Settings whose value needs no arithmetic."""
    for ours, found in (
        ("group_size", given.count("num_generations")),
        ("max_completion_length", given.count("max_completion_length")),
        ("planned_steps", given.count(PLANNED, "max_steps")),
    ):
        if found is not None:
            given.set(ours, int(found.value), f"{ours} {found.value:.12g} ({found.name})")
    for ours, name in (
        ("learning_rate", "learning_rate"),
        ("kl_coefficient", "beta"),
        ("parameters", "model/num_parameters"),
    ):
        found = given.number(name)
        if found is not None and (found.value > 0 or (ours, found.value) == ("kl_coefficient", 0)):
            given.set(ours, found.value, f"{ours} {found.value:.12g} ({name})")
    seed = given.number("seed")
    if seed is not None and seed.value >= 0 and seed.value.is_integer():
        given.set("seed", int(seed.value), f"{seed} (seed)")
    for ours, names in (("model", MODEL), ("task", TASK)):
        text = given.text(*names)
        if text is not None:
            given.set(ours, text[1], f"{ours} {text[1]} ({text[0]})")
    if given.is_on("kl_in_reward") and given.facts.get("kl_coefficient", 1) > 0:
        given.assumptions.append("the logged reward contains the KL penalty (kl_in_reward is on)")


def _set_logging_steps(given: Given) -> None:
    found, planned = given.number("logging_steps"), given.count(PLANNED, "max_steps")
    strategy = given.text("logging_strategy")
    by_steps = strategy is None or strategy[1].rpartition(".")[2].lower() == "steps"
    if found is None or found.value <= 0 or not by_steps:
        return
    if found.value >= 1:
        steps = int(found.value)
        given.set("logging_steps", steps, f"logging_steps {steps} (logging_steps)")
    elif planned is not None:
        steps = math.ceil(found.value * planned.value)
        given.set("logging_steps", steps, f"{found} x {planned}, rounded up = {steps}")


def _set_optimizer(given: Given, version: str) -> None:
    optim = given.text("optim")
    kind = None
    if optim is not None:
        name = optim[1].rpartition(".")[2].lower()
        # schedule_free_sgd averages weights where SGD has momentum.
        kind = "adamw" if "adamw" in name else "sgd" if name == "sgd" else None
        if kind is not None:
            given.set("optimizer", kind, f"optimizer {kind} (optim {optim[1]})")
        elif "sgd" in name:
            given.assumptions.append(f"optim {name} is none of AdamW and SGD and was left out")
    if kind == "sgd":
        _set_momentum_of_sgd(given, version)
    decay = given.number("adam_beta1")
    if decay is None or not 0 <= decay.value < 1 or (optim is not None and kind != "adamw"):
        return
    given.set("momentum", decay.value, f"momentum {decay.value:.12g} (adam_beta1)")


def _set_momentum_of_sgd(given: Given, version: str) -> None:
    arguments = given.text("optim_args")
    stated = MOMENTUM.search(arguments[1].replace(" ", "")) if arguments is not None else None
    momentum = number(stated.group(1)) if stated is not None else None
    if momentum is None:
        return
    release = RELEASE.match(version)
    if release is not None and tuple(map(int, release.groups())) < PASSES_ARGUMENTS:
        how = f"momentum 0 (transformers {release.group()} keeps optim_args from SGD)"
        given.set("momentum", 0.0, how)
        return
    given.set("momentum", momentum, f"momentum {momentum:g} (optim_args)")
    if release is None:
        given.assumptions.append(
            f"momentum {momentum:g}: transformers is taken to be 5.3 or later; earlier releases "
            "keep optim_args from SGD"
        )


def _set_schedule(given: Given) -> None:
    scheduler = given.text("lr_scheduler_type")
    name = None if scheduler is None else scheduler[1].rpartition(".")[2].lower()
    if name in SCHEDULES:
        kind = SCHEDULES[name]
        given.set("schedule", kind, f"schedule {kind} (lr_scheduler_type {name})")
    if name == "constant":
        given.set("warmup_steps", 0, "lr_scheduler_type constant has no warm-up = 0")
        return
    steps, share = given.number("warmup_steps"), given.number("warmup_ratio")
    if steps is not None and steps.value >= 1:
        whole = int(steps.value)
        given.set("warmup_steps", whole, f"warmup_steps {whole} (warmup_steps)")
        return
    # Since transformers 5 a share of the run may stand under the name of the count.
    if steps is not None and (steps.value > 0 or share is None):
        share = steps
    planned = given.count(PLANNED, "max_steps")
    if share is None or not 0 <= share.value <= 1:
        return
    if share.value == 0:
        given.set("warmup_steps", 0, f"{share} = 0")
    elif planned is not None:
        whole = math.ceil(share.value * planned.value)
        given.set("warmup_steps", whole, f"{share} x {planned}, rounded up = {whole}")


def _set_trust_region(given: Given) -> None:
    """Clipping of the importance ratio, and what advantages are divided by."""
    loss = given.text("loss_type")
    low, high = given.number("epsilon"), given.number("epsilon_high")
    if loss is None or loss[1].lower() not in UNCLIPPED:
        if low is not None and low.value > 0:
            given.set("clip_low", low.value, f"clip_low {low.value:.12g} (epsilon)")
        if high is not None and high.value > 0:
            given.set("clip_high", high.value, f"clip_high {high.value:.12g} (epsilon_high)")
        elif low is not None and low.value > 0:
            how = f"clip_high {low.value:.12g} (epsilon, as epsilon_high is not set)"
            given.set("clip_high", low.value, how)
    scaling = given.word("scale_rewards")
    if scaling in ADVANTAGE_SCALING:
        kind = ADVANTAGE_SCALING[scaling]
        given.set("advantage_scaling", kind, f"advantage_scaling {kind} (scale_rewards {scaling})")


def _set_adapter(given: Given) -> None:
    kind, rank = given.text(*LORA_KIND), given.count(*LORA_RANK)
    # Configurations print LoRA's default rank also where no adapter is trained.
    if given.is_on("use_peft") is False:
        given.set("adapter", "full", "adapter full (use_peft is off)")
    elif given.is_on("full_finetuning"):
        given.set("adapter", "full", "adapter full (full_finetuning is on)")
    elif kind is not None and "lora" not in kind[1].lower():
        if kind[1].lower() == "full":
            given.set("adapter", "full", f"adapter full ({kind[0]})")
    elif rank is not None:
        given.set("adapter", "lora", f"adapter lora ({rank})")
        given.set("adapter_rank", int(rank.value), f"adapter_rank {rank.value:g} ({rank.name})")
    elif kind is not None:
        given.set("adapter", "lora", f"adapter lora ({kind[0]})")
