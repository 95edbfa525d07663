"""Settings of Tinker's cookbook in the package's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.settings_extractor import SettingsExtractor, share

MARKS = (
    "num_substeps",
    "groups_per_batch",
    "kl_penalty_coef",
    "kl_discount_factor",
    "async_config",
    "async_config.max_steps_off_policy",
    "max_steps_off_policy",
    "stream_minibatch_config",
    "compute_post_kl",
    "remove_constant_reward_groups",
    "rollout_error_tolerance",
    "dataset_builder.group_size",
    "model_name_for_tokenizer",
)
"""Settings that only the cookbook has."""

GROUPS = (
    "groups_per_batch",
    "dataset_builder.groups_per_batch",
    "dataset_builder.batch_size",
    "dataset_builder.problems_per_batch",
    "async_config.groups_per_batch",
    "stream_minibatch_config.groups_per_batch",
    "batch_size",
)
"""Prompts of one batch of rollouts; a cookbook builder's ``batch_size`` counts groups too."""

GROUP_SIZE = ("group_size", "dataset_builder.group_size", "dataset_builder.num_envs_per_problem")
CORRECTED = ("importance_sampling", "ppo", "cispo", "dro")
CONSTANTS = (
    "tinker-cookbook fixes Adam's first decay at 0.9 and centres rewards without dividing by "
    "their spread; the run is taken to leave both as they are"
)


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a cookbook run."""
    # One row of ``metrics.jsonl`` is one batch of rollouts, cut into ``num_substeps`` optimizer
    # steps, each sample used once (``tinker_cookbook/rl/train.py``, ``train_step``).
    extractor = SettingsExtractor(_without_doubles(settings))
    substeps = _substeps(extractor)
    extractor.put("epochs_per_refresh", 1, "epochs_per_refresh 1 (tinker uses each sample once)")
    extractor.take("learning_rate", extractor.amount("learning_rate"))
    extractor.take("group_size", extractor.count(*GROUP_SIZE))
    groups = extractor.count(*GROUPS)
    if groups is not None:
        prompts = share(groups.value, substeps)
        line = f"{groups} / num_substeps {substeps} = {prompts:g}"
        extractor.put("prompts_per_step", prompts, line)
    planned = extractor.count("max_steps")
    if planned is not None:
        steps = planned.value * substeps
        line = f"max_steps {planned.value} x num_substeps {substeps} = {steps}"
        extractor.put("planned_steps", steps, line)
    _derive_lag(extractor, substeps)
    _derive_loss(extractor)
    extractor.take("kl_coefficient", extractor.amount("kl_penalty_coef"))
    extractor.take("max_completion_length", extractor.count("max_tokens"))
    extractor.take("seed", extractor.count("seed", "dataset_builder.seed", least=0))
    extractor.take("model", extractor.text("model_name", "model"))
    extractor.take(
        "task", extractor.text("env", "env_name", "dataset_builder.dataset_name", "dataset_name")
    )
    extractor.take("adapter_rank", extractor.count("lora_rank"))
    if "adapter_rank" in extractor.facts:
        extractor.put(
            "adapter", "lora", f"adapter lora (lora_rank {extractor.facts['adapter_rank']})"
        )
    if any(mark in settings for mark in MARKS):
        extractor.put("optimizer", "adam", "optimizer adam (tinker.AdamParams)")
        extractor.put("momentum", 0.9, "momentum 0.9 (beta1 in tinker_cookbook/rl/train.py)")
        extractor.put("advantage_scaling", "none", "advantage_scaling none (rewards are centred)")
        extractor.assume(CONSTANTS)
    if extractor.is_on("remove_constant_reward_groups"):
        extractor.assume(
            "remove_constant_reward_groups: the logged reward is the mean over groups with spread"
        )
    return extractor.derived()


def _without_doubles(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key.replace("X_", ""): value for key, value in settings.items() if "X_" in key}
    return {**plain, **settings}


def _substeps(extractor: SettingsExtractor) -> int:
    found = extractor.count("num_substeps")
    if found is not None:
        line = f"minibatches_per_refresh {found.value} (num_substeps)"
        extractor.put("minibatches_per_refresh", found.value, line)
        return found.value
    assumption = "num_substeps 1 (tinker-cookbook's default)"
    extractor.put("minibatches_per_refresh", 1, f"minibatches_per_refresh 1: {assumption}")
    extractor.assume(assumption)
    return 1


def _derive_lag(extractor: SettingsExtractor, substeps: int) -> None:
    names = ("async_config.max_steps_off_policy", "max_steps_off_policy")
    most = extractor.count(*names, least=0)
    if most is not None:
        lag = most.value * substeps
        line = f"{most} x num_substeps {substeps} = {lag}"
        extractor.put("lag", float(lag), line)
        if lag:
            extractor.assume(f"lag {lag}: samples are taken to be as old as allowed")
    elif "async_config" in extractor.settings:
        extractor.put("lag", 0.0, "lag 0 (async_config is empty: synchronous)")


def _derive_loss(extractor: SettingsExtractor) -> None:
    loss = extractor.text("loss_fn")
    if loss is None:
        return
    if loss.value in CORRECTED:
        extractor.put("importance_ratio", True, f"importance_ratio true (loss_fn {loss.value})")
    if loss.value != "ppo":
        return
    low = extractor.amount("loss_fn_config.clip_low_threshold")
    high = extractor.amount("loss_fn_config.clip_high_threshold")
    if low is not None and 0 <= low.value < 1:
        value = round(1 - low.value, 12)
        extractor.put("clip_low", value, f"1 - clip_low_threshold {low.value:g} = {value:g}")
    if high is not None and high.value > 1:
        value = round(high.value - 1, 12)
        extractor.put("clip_high", value, f"clip_high_threshold {high.value:g} - 1 = {value:g}")
