"""Names that many trainers and hand-written loops share; the fallback for every log."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.values import literal, number

RUN_KEYS = (
    *("run_id", "run_name", "run", "label", "tag", "experiment", "exp_name", "name"),
    *("method", "algorithm", "algo", "variant", "condition", "arm", "seed"),
)
"""Columns that name the run of a row, best first; several of them may do so together."""

KIND_KEYS = (
    *("type", "kind", "split", "mode", "phase", "stage", "event"),
    *("log_type", "row_type", "record_type", "entry_type", "event_type", "metric_type"),
)
"""Keys by which logs tell kinds of rows apart."""

COMPONENT_STD = re.compile(r"rewards/[^/]+/std")
"""Spread of one reward function over the batch, as TRL logs it."""

NAMES: dict[str, tuple[str, ...]] = {
    "learning_rate": ("learning_rate", "lr"),
    "group_size": (
        *("group_size", "num_generations", "G", "group", "n_samples_per_prompt"),
        "num_generations_per_prompt",
    ),
    "prompts_per_step": ("prompts_per_step", "prompts", "num_groups", "num_prompts_per_step"),
    "minibatches_per_refresh": ("minibatches_per_refresh",),
    "epochs_per_refresh": ("epochs_per_refresh", "mu", "num_iterations", "ppo_epochs"),
    "momentum": ("momentum", "adam_beta1", "beta1"),
    "kl_coefficient": ("kl_coefficient", "kl_coef", "kl_coeff", "kl_loss_coef"),
    "adapter_rank": ("adapter_rank", "lora_rank", "lora_r", "rank"),
    "adapter_alpha": ("adapter_alpha", "lora_alpha"),
    "max_prompt_length": ("max_prompt_length",),
    "max_completion_length": ("max_completion_length", "max_new_tokens", "max_tokens"),
    "model": ("model", "model_name", "model_name_or_path", "base_model_name_or_path"),
    "task": ("task", "dataset", "dataset_name"),
    "parameters": ("parameters", "params"),
    "seed": ("seed",),
}
"""Setting -> names under which loops of all kinds keep it, best first."""

NAME_OF_MODEL = re.compile(r"(?:.*\.)?model\.(?:name|path|id|name_or_path|model_path)")
"""A model's name in a section of its own."""

WHOLE = {
    "group_size",
    "minibatches_per_refresh",
    "epochs_per_refresh",
    "adapter_rank",
    "adapter_alpha",
    "max_prompt_length",
    "max_completion_length",
    "seed",
}
TEXT = {"model", "task"}


MOST_PASSES = 64
"""Passes over a batch of rollouts that anyone makes."""

MOST_LONE_PASSES = 8
"""Those that a bare ``num_iterations`` may mean: loops call the length of a run so, too."""

OF_PASSES = (
    *("per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation"),
    *("generation_batch_size", "scale_rewards", "epsilon", "max_completion_length"),
)
"""Arguments of TRL, beside which ``num_iterations`` is TRL's, too."""


def are_passes(key: str, count: float, names: Container[str]) -> bool:
    """Whether a setting means passes over the rollouts, rather than the length of a run.

    Parameters
    ----------
    key : str
        Its name, with its section.
    count : float
    names : container of str
        All settings beside it, without their sections.
    """
    if key.rpartition(".")[2] != "num_iterations":
        return count <= MOST_PASSES
    is_of_trl = sum(name in names for name in OF_PASSES) >= LEAST_OF_TRL
    return count <= (MOST_PASSES if is_of_trl else MOST_LONE_PASSES)


LEAST_OF_TRL = 2
"""Of those arguments."""


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings under their common names, taken over as they stand."""
    facts: dict[str, Any] = {}
    arithmetic: dict[str, str] = {}
    by_end = {key.rpartition(".")[2]: key for key in reversed(list(settings))}
    for name in filter(NAME_OF_MODEL.fullmatch, settings):
        by_end.setdefault("model", name)
    for ours, names in NAMES.items():
        key = next((by_end[name] for name in names if name in by_end), None)
        if key is None:
            continue
        value: Any = literal(settings[key]) if ours in TEXT else number(settings[key])
        usable = isinstance(value, str) if ours in TEXT else value is not None
        if not usable or (ours in WHOLE and value != int(value)):
            continue
        if ours == "epochs_per_refresh" and not are_passes(key, value, by_end):
            continue
        facts[ours] = int(value) if ours in WHOLE else value
        arithmetic[ours] = f"{ours} {settings[key]} ({key})"
    if "adapter_rank" in facts:
        if facts["adapter_rank"] > 0:
            facts["adapter"] = "lora"
        else:
            del facts["adapter_rank"], arithmetic["adapter_rank"]
    if facts.get("adapter") != "lora":
        facts.pop("adapter_alpha", None)
    return Derived(facts, arithmetic)


PARTS_OF_A_STEP = (
    ("t_rollout", "t_train"),
    ("rollout_time", "train_time"),
    ("time_rollout", "time_train"),
    ("time/rollout", "time/train"),
    ("generation_time", "train_time"),
)
"""Seconds of the two parts of a step, where the whole is not logged."""

COMMON_KEYS = KeyTable(
    name="common names",
    observed=tuple(dict.fromkeys(name for pair in PARTS_OF_A_STEP for name in pair)),
    reward=(
        ("reward",),
        ("mean_reward", "reward_mean", "rewards/mean", "reward/mean", "rollout/reward_mean"),
        ("reward_avg", "avg_reward"),
        ("train_reward", "episode_reward"),
        ("critic/score/mean", "env/all/reward/total"),
    ),
    optimizer_steps=(
        *("step", "global_step", "optimizer_step", "_step", "trainer/global_step"),
        *("training_step", "train_step"),
    ),
    evaluations=(
        r"(?:eval|val|test|validation|held_?out)[_/](?:mean_)?reward(?:/mean|_mean)?",
        r"(?:eval|val|test|validation|held_?out)[_/]acc(?:uracy)?(?:/mean)?",
        r"(?:eval|val|test|validation)[_/]score(?:/mean)?",
        r"(?:eval|val|test|validation|held_?out)[_/](?:em|exact_match|pass@1|success_rate)",
    ),
    series={
        "reward_std_within_group": ("reward_std", "group_reward_std"),
        "silent_group_share": ("frac_reward_zero_std", "zvf"),
        "entropy": ("entropy", "policy/entropy", "optim/entropy", "token_entropy", "entropy_avg"),
        "gradient_norm": ("grad_norm", "gradient_norm"),
        "clip_share": ("clip_ratio/region_mean", "clip_ratio", "clip_fraction", "clipfrac"),
        "learning_rate": ("learning_rate", "lr", "actor_lr", "optim/lr"),
        "kl": ("kl", "kl_loss", "reference_kl", "kl_mean"),
        "completion_length": (
            "completions/mean_length",
            "completion_length",
            "response_length/mean",
            "response_length",
            "avg_response_token_length",
            "avg_response_len",
        ),
        "truncated_share": (
            "completions/clipped_ratio",
            "response_length/clip_ratio",
            "truncated_rate",
        ),
        "step_time_seconds": ("step_time", "time/step", "time/total"),
        "policy_kl": ("approx_kl", "ppo_kl"),
        "importance_ess": ("importance_ess", "rollout_is_eff_sample_size"),
        "distinct_answers": ("distinct_answers", "unique_answers"),
        "loss": ("loss", "training loss", "policy_loss", "pg_loss"),
        "tokens": ("num_tokens",),
    },
    parts=r"rewards/(?P<name>[^/]+)(?:/mean)?",
    understood=(
        r"epoch",
        r"_?(?:timestamp|runtime)",
        r"total_steps|max_steps",
        r"train_(?:runtime|loss|samples_per_second|steps_per_second)|total_flos",
        r"seed|run_id|run_name|model|task",
        r"time",
        r"adv(?:antage)?_(?:avg|mean|std)",
        r"tokens_per_sec",
        r"policy_ratio",
    ),
    derive=derive,
)

UNSURE_STEPS = (
    "grpo_step",
    "rollout_step",
    "iteration",
    "iter",
    "progress/step",
    "progress/batch",
)
"""Counters that are batches of rollouts in some trainers and optimizer steps in others."""
