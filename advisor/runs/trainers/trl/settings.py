"""Settings of TRL, Unsloth and ms-swift in the package's names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import Derived, SettingsExtractor, number
from advisor.runs.trainers.table_files import setting_names
from advisor.runs.trainers.trl.batch import set_prompts, set_refresh

MOMENTUM = re.compile(r"(?:^|,)momentum=([^,]{1,20})")
RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})")
PASSES_ARGUMENTS = (5, 3)
"""Release of transformers since which ``optim_args`` reach SGD."""

UNCLIPPED = ("sapo", "vespo", "real")
"""Loss types that weigh large importance ratios down without a trust region."""


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run in the package's names."""
    if not settings:
        return Derived()
    extractor = SettingsExtractor(_without_sections(settings), "trl")
    _take_over(extractor)
    # Nested configurations keep the version of transformers that wrote them.
    _set_optimizer(extractor, str(settings.get("transformers_version", "")))
    _set_schedule(extractor)
    _set_trust_region(extractor)
    _set_adapter(extractor)
    _set_precision(extractor)
    set_prompts(extractor)
    set_refresh(extractor)
    return extractor.derived()


def _without_sections(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names of ``TrainingArguments``, whatever section they stand in."""
    values: dict[str, Any] = {}
    # A setting that stands less deep is the run's own, not that of a nested configuration.
    for key in sorted(settings, key=lambda key: key.count(".")):
        # Not "none", which scale_rewards may be.
        if settings[key] is None or str(settings[key]).strip() in ("", "None", "null"):
            continue
        above, _, name = key.rpartition(".")
        section = above.rpartition(".")[2]
        if name == "0" and f"{above}.1" not in settings:
            name = section  # a list of one
        elif name.isdecimal() and section in setting_names("trl")["adapter_targets"]:
            name = f"{section}.{name}"
        if name in ("r", "rank") and ("peft" in key or "lora" in key):
            name = "lora_r"
        if name in ("name", "path") and section == "model":
            name = "model_name_or_path"
        values.setdefault(name.replace("-", "_"), settings[key])
    return values


def _take_over(extractor: SettingsExtractor) -> None:
    """Derive settings whose value needs little arithmetic."""
    extractor.take_over("group_size", "max_prompt_length", "max_completion_length", "seed")
    extractor.take_over("planned_steps", "model", "task")
    for ours in ("learning_rate", "kl_coefficient", "parameters"):
        found = extractor.amount(ours)
        if found is not None and (found.value > 0 or (ours, found.value) == ("kl_coefficient", 0)):
            extractor.take(ours, found)
    if extractor.is_on("kl_in_reward") and extractor.facts.get("kl_coefficient", 1) > 0:
        extractor.assume("the logged reward contains the KL penalty (kl_in_reward is on)")
    found, planned = extractor.amount("logging_steps"), extractor.count("planned_steps")
    strategy = extractor.text("logging_strategy")
    by_steps = strategy is None or strategy.value.rpartition(".")[2].lower() == "steps"
    if found is None or found.value <= 0 or not by_steps:
        return
    if found.value >= 1:
        extractor.note("logging_steps", int(found.value), found.name)
    elif planned is not None:
        steps = math.ceil(found.value * planned.value)
        extractor.put("logging_steps", steps, f"{found} x {planned}, rounded up = {steps}")


def _set_optimizer(extractor: SettingsExtractor, version: str) -> None:
    optim = extractor.text("optim")
    kind = None
    if optim is not None:
        name = optim.value.rpartition(".")[2].lower()
        # schedule_free_sgd averages weights where SGD has momentum.
        kind = "adamw" if "adamw" in name else "sgd" if name == "sgd" else None
        if kind is not None:
            extractor.note("optimizer", kind, str(optim))
        elif "sgd" in name:
            extractor.assume(f"optim {name} is none of AdamW and SGD and was left out")
    decay, arguments = extractor.amount("adam_beta1"), extractor.text("optim_args")
    if decay is not None and 0 <= decay.value < 1 and (optim is None or kind == "adamw"):
        extractor.take("momentum", decay)
    stated = MOMENTUM.search(arguments.value.replace(" ", "")) if arguments is not None else None
    momentum = number(stated.group(1)) if stated is not None else None
    if kind != "sgd" or momentum is None:
        return
    release = RELEASE.match(version)
    if release is not None and tuple(map(int, release.groups())) < PASSES_ARGUMENTS:
        source = f"transformers {release.group()} keeps optim_args from SGD"
        extractor.note("momentum", 0.0, source)
        return
    extractor.note("momentum", momentum, "optim_args")
    if release is None:
        extractor.assume(
            f"momentum {momentum:g}: transformers is taken to be 5.3 or later; earlier releases "
            "keep optim_args from SGD"
        )


def _set_schedule(extractor: SettingsExtractor) -> None:
    extractor.choose("schedule")
    scheduler = extractor.text("schedule")
    if scheduler is not None and scheduler.value.rpartition(".")[2].lower() == "constant":
        extractor.put("warmup_steps", 0, "lr_scheduler_type constant has no warm-up = 0")
        return
    steps, share = extractor.amount("warmup_steps"), extractor.amount("warmup_ratio")
    if steps is not None and steps.value >= 1:
        extractor.note("warmup_steps", int(steps.value), steps.name)
        return
    # Since transformers 5 a share of the run may stand under the name of the count.
    if steps is not None and (steps.value > 0 or share is None):
        share = steps
    planned = extractor.count("planned_steps")
    if share is None or not 0 <= share.value <= 1:
        return
    if share.value == 0:
        extractor.put("warmup_steps", 0, f"{share} = 0")
    elif planned is not None:
        whole = math.ceil(share.value * planned.value)
        extractor.put("warmup_steps", whole, f"{share} x {planned}, rounded up = {whole}")


def _set_trust_region(extractor: SettingsExtractor) -> None:
    """Clipping of the importance ratio, and what advantages are divided by."""
    loss = extractor.text("loss_averaging")
    extractor.choose("loss_averaging")
    low, high = extractor.amount("epsilon"), extractor.amount("epsilon_high")
    if loss is None or loss.value.lower() not in UNCLIPPED:
        if low is not None and low.value > 0:
            extractor.take("clip_low", low)
        if high is not None and high.value > 0:
            extractor.take("clip_high", high)
        elif low is not None and low.value > 0:
            extractor.note("clip_high", low.value, "epsilon, as epsilon_high is not set")
    # One bare word, also where it is a switch, or none at all.
    scaling = str(extractor.settings.get("scale_rewards", "")).strip().strip("\"'").lower()
    kind = extractor.data["choices"]["advantage_scaling"].get(scaling)
    if kind is not None:
        extractor.note("advantage_scaling", kind, f"scale_rewards {scaling}")


def _set_precision(extractor: SettingsExtractor) -> None:
    """Trainers switch on one of two; that both are off is stated, not taken for granted."""
    for name in ("bf16", "fp16"):
        if extractor.is_on(name):
            extractor.note("precision", name, f"{name} is on")
            return
    if extractor.is_on("bf16") is False and extractor.is_on("fp16") is False:
        extractor.note("precision", "fp32", "bf16 and fp16 are off")


def _set_adapter(extractor: SettingsExtractor) -> None:
    kind, rank = extractor.text("adapter_kind"), extractor.count("adapter_rank")
    # Configurations print LoRA's default rank also where no adapter is trained.
    if extractor.is_on("use_peft") is False:
        extractor.note("adapter", "full", "use_peft is off")
    elif extractor.is_on("full_finetuning"):
        extractor.note("adapter", "full", "full_finetuning is on")
    elif kind is not None and "lora" not in kind.value.lower():
        if kind.value.lower() == "full":
            extractor.note("adapter", "full", kind.name)
    elif rank is not None:
        extractor.note("adapter", "lora", str(rank))
        extractor.take("adapter_rank", rank)
    elif kind is not None:
        extractor.note("adapter", "lora", kind.name)
    if extractor.facts.get("adapter") == "lora":
        extractor.take_over("adapter_alpha")
        extractor.take_targets()
