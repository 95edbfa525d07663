"""Keys and settings of slime and miles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.trainers.batches import set_batches
from advisor.trainers.derived import Derived
from advisor.trainers.key_table import KeyTable
from advisor.trainers.settings_extractor import Setting, SettingsExtractor


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run from its arguments; batches of optimizer steps count completions."""
    extractor = SettingsExtractor(
        {key.rpartition(".")[2].replace("-", "_"): settings[key] for key in settings}
    )
    group = extractor.count("n_samples_per_prompt")
    extractor.take("group_size", group)
    extractor.take("learning_rate", extractor.amount("lr"))
    prompts = extractor.count("rollout_batch_size")
    steps = extractor.count("num_steps_per_rollout")
    if prompts is not None and group is not None:
        whole = Setting(f"{prompts} x {group} =", prompts.value * group.value)
        mini = extractor.count("global_batch_size")
        if mini is None and steps is not None and not whole.value % steps.value:
            mini = Setting(f"{whole} / {steps} =", whole.value // steps.value)
        set_batches(extractor, whole, mini, "completions")
        if "minibatches_per_refresh" in extractor.facts:
            why = "slime passes once over a batch of rollouts"
            extractor.put("epochs_per_refresh", 1, f"epochs_per_refresh 1: {why}")
    terms = [extractor.amount(name) for name in ("kl_coef", "kl_loss_coef")]
    if any(terms):
        total = sum(term.value for term in terms if term is not None)
        shown = " + ".join(str(term) for term in terms if term is not None)
        extractor.put("kl_coefficient", total, f"{shown} = {total:g}")
    low, high = extractor.amount("eps_clip"), extractor.amount("eps_clip_high")
    extractor.take("clip_low", low)
    extractor.take("clip_high", high or low)
    extractor.take("max_completion_length", extractor.count("rollout_max_response_len"))
    extractor.take("momentum", extractor.amount("adam_beta1"))
    extractor.take("model", extractor.text("hf_checkpoint"))
    return extractor.derived()


KEY_TABLE = KeyTable(
    name="slime",
    marks=(
        r"rollout/(?:raw_reward|total_lengths|response_lengths|ref_log_probs|log_probs|truncated)",
        r"rollout/(?:response_len|zero_std|truncated_ratio|repetition_frac).*",
        r"train/(?:lr-pg_\d+|train_rollout_logprob_abs_diff|ois|entropy_loss|pg_clipfrac)",
    ),
    reward=(("rollout/raw_reward",), ("rollout/raw_reward/mean",)),
    never_reward={
        "rollout/rewards": "it is normalised within groups, so about 0 whatever the policy does",
        "rollout/returns": "it is made of advantages, whose mean is about 0",
        "rollout/advantages": "it is about 0 whatever the policy does",
    },
    refreshes=("rollout/step", "rollout_id", "step"),
    evaluations=(r"eval/[\w.-]+", r"eval/[\w.-]+/(?:score|accuracy|mean)"),
    series={
        "entropy": ("train/entropy_loss", "rollout/entropy"),
        "gradient_norm": ("train/grad_norm",),
        "clip_share": ("train/pg_clipfrac",),
        "learning_rate": ("train/lr-pg_0",),
        "kl": ("train/kl_loss",),
        "completion_length": (
            *("rollout/response_lengths", "rollout/response_len/mean"),
            "rollout/total_lengths",
        ),
        "truncated_share": ("rollout/truncated_ratio", "rollout/truncated"),
        "step_time_seconds": ("perf/step_time",),
        "policy_kl": ("train/ppo_kl",),
        "loss": ("train/pg_loss", "train/loss"),
    },
    understood=(r"(?:rollout|train|perf|eval|passrate|multi_turn)/.+",),
    setting_marks=("rollout_max_response_len", "num_steps_per_rollout", "hf_checkpoint"),
    derive=derive,
)
