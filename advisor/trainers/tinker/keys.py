"""Tinker and its cookbook: ``metrics.jsonl`` and ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.trainers.derived import Derived
from advisor.trainers.key_table import KeyTable
from advisor.trainers.settings_extractor import Taking, share

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
    """Settings of a cookbook run.

    Parameters
    ----------
    settings : mapping of str to object
        Of ``config.json``, flattened; some dumps repeat keys with ``X_`` before them.

    Returns
    -------
    derived : Derived

    Notes
    -----
    One row of ``metrics.jsonl`` is one batch of rollouts, cut into ``num_substeps`` optimizer
    steps, each sample used once (``tinker_cookbook/rl/train.py``, ``train_step``).
    """
    taking = Taking(_without_doubles(settings))
    substeps = _substeps(taking)
    taking.keep("epochs_per_refresh", 1, "epochs_per_refresh 1 (tinker uses each sample once)")
    taking.keep_amount("learning_rate", ("learning_rate",))
    taking.keep_count("group_size", GROUP_SIZE)
    groups = taking.count(GROUPS)
    if groups is not None:
        prompts = share(groups[1], substeps)
        line = f"{groups[0]} {groups[1]} / num_substeps {substeps} = {prompts:g}"
        taking.keep("prompts_per_step", prompts, line)
    planned = taking.count(("max_steps",))
    if planned is not None:
        steps = planned[1] * substeps
        line = f"max_steps {planned[1]} x num_substeps {substeps} = {steps}"
        taking.keep("planned_steps", steps, line)
    _take_lag(taking, substeps)
    _take_loss(taking)
    taking.keep_amount("kl_coefficient", ("kl_penalty_coef",))
    taking.keep_count("max_completion_length", ("max_tokens",))
    taking.keep_count("seed", ("seed", "dataset_builder.seed"), 0)
    taking.keep_text("model", ("model_name", "model"))
    taking.keep_text("task", ("env", "env_name", "dataset_builder.dataset_name", "dataset_name"))
    taking.keep_count("adapter_rank", ("lora_rank",))
    if "adapter_rank" in taking.facts:
        taking.keep("adapter", "lora", f"adapter lora (lora_rank {taking.facts['adapter_rank']})")
    if any(mark in settings for mark in MARKS):
        taking.keep("optimizer", "adam", "optimizer adam (tinker.AdamParams)")
        taking.keep("momentum", 0.9, "momentum 0.9 (beta1 in tinker_cookbook/rl/train.py)")
        taking.keep("advantage_scaling", "none", "advantage_scaling none (rewards are centred)")
        taking.assumptions.append(CONSTANTS)
    removes = taking.switch(("remove_constant_reward_groups",))
    if removes is not None and removes.value:
        taking.assumptions.append(
            "remove_constant_reward_groups: the logged reward is the mean over groups with spread"
        )
    return taking.derived()


def _without_doubles(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key.replace("X_", ""): value for key, value in settings.items() if "X_" in key}
    return {**plain, **settings}


def _substeps(taking: Taking) -> int:
    found = taking.count(("num_substeps",))
    if found is not None:
        line = f"minibatches_per_refresh {found[1]} (num_substeps)"
        taking.keep("minibatches_per_refresh", found[1], line)
        return found[1]
    said = "num_substeps 1 (tinker-cookbook's default)"
    taking.keep("minibatches_per_refresh", 1, f"minibatches_per_refresh 1: {said}")
    taking.assumptions.append(said)
    return 1


def _take_lag(taking: Taking, substeps: int) -> None:
    names = ("async_config.max_steps_off_policy", "max_steps_off_policy")
    most = taking.count(names, 0)
    if most is not None:
        lag = most[1] * substeps
        line = f"{most[0]} {most[1]} x num_substeps {substeps} = {lag}"
        taking.keep("lag", float(lag), line)
        if lag:
            taking.assumptions.append(f"lag {lag}: samples are taken to be as old as allowed")
    elif "async_config" in taking.settings:
        taking.keep("lag", 0.0, "lag 0 (async_config is empty: synchronous)")


def _take_loss(taking: Taking) -> None:
    loss = taking.text(("loss_fn",))
    if loss is None:
        return
    if loss.value in CORRECTED:
        taking.keep("importance_ratio", True, f"importance_ratio true (loss_fn {loss.value})")
    if loss.value != "ppo":
        return
    low = taking.amount(("loss_fn_config.clip_low_threshold",))
    high = taking.amount(("loss_fn_config.clip_high_threshold",))
    if low is not None and 0 <= low[1] < 1:
        value = round(1 - low[1], 12)
        taking.keep("clip_low", value, f"1 - clip_low_threshold {low[1]:g} = {value:g}")
    if high is not None and high[1] > 1:
        value = round(high[1] - 1, 12)
        taking.keep("clip_high", value, f"clip_high_threshold {high[1]:g} - 1 = {value:g}")


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

KEY_TABLE = KeyTable(
    name="Tinker",
    marks=(
        r"env/all/.+",
        r"progress/(?:batch|done_frac)",
        r"optim/kl_sample_train_v[12]",
        r"(?:sampling|training)_client/step.*",
        r"reward/g_minus_f",
    ),
    reward=(("env/all/reward/total",), ("reward/total",), ("reward/mean",)),
    never_reward={
        "reward/f": "it is the true goal, and the run may optimise a stand-in (reward/mean)",
        "reward/g": "it is one part of what is optimised (reward/mean)",
        "reward/g_minus_f": "it is a difference of two rewards",
    },
    refreshes=("step", "progress/batch", "training_client/step", "progress/step"),
    evaluations=(
        r"(?!env/)(?:[^/]+/)+env/all/reward/total",
        r"(?!env/)(?:[^/]+/)+env/all/(?:correct|accuracy)",
        r"test/reward/(?:mean|total)",
    ),
    series={
        "entropy": ("optim/entropy", "policy/entropy"),
        "learning_rate": ("optim/lr",),
        "kl": ("kl_policy_base",),
        "policy_kl": ("kl_pre_post_v1",),
        "mismatch_kl": ("optim/kl_sample_train_v1", "optim/kl_sample_train_v2"),
        "completion_length": ("env/all/ac_tokens_per_turn",),
        "all_right_share": ("env/all/by_group/frac_all_good",),
        "all_wrong_share": ("env/all/by_group/frac_all_bad",),
        "step_time_seconds": ("time/total",),
    },
    parts=r"(?:env/all|reward)/(?P<name>correct|format|f|g)",
    understood=(
        r"env/.+",
        r"(?:[^/]+/)+env/.+",
        r"test/.+",
        r"time/.+",
        r"progress/.+",
        r"optim/.+",
        r"(?:sampling|training)_client/.+",
        r"rollout_errors/.+",
        r"(?:test|eval)/rollout_errors/.+",
        r"kl_(?:policy_base|pre_post_v[12])",
        r"timestamp",
    ),
    setting_marks=MARKS,
    derive=derive,
)
