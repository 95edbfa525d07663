"""Keys and settings of AReaL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.trainers.derived import Derived
from advisor.trainers.key_table import KeyTable
from advisor.trainers.settings_extractor import SettingsExtractor, share

ACTOR = r"(?:ppo_|grpo_)?actor"


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run; ``ppo_n_minibatches`` optimizer steps are taken per batch of rollouts."""
    extractor = SettingsExtractor(settings)
    extractor.take("group_size", extractor.count("gconfig.n_samples"))
    extractor.take("learning_rate", extractor.amount("actor.optimizer.lr"))
    extractor.take("kl_coefficient", extractor.amount("actor.kl_ctl"))
    count = extractor.count("actor.ppo_n_minibatches")
    extractor.take("minibatches_per_refresh", count)
    if count is not None:
        why = "AReaL passes once over a batch of rollouts"
        extractor.put("epochs_per_refresh", 1, f"epochs_per_refresh 1: {why}")
        prompts = extractor.count("train_dataset.batch_size")
        if prompts is not None:
            per_step = share(prompts.value, count.value)
            line = f"{prompts} / {count} = {per_step:g} prompts"
            extractor.put("prompts_per_step", per_step, line)
    low = extractor.amount("actor.eps_clip")
    extractor.take("clip_low", low)
    extractor.take("clip_high", extractor.amount("actor.eps_clip_higher") or low)
    extractor.take("max_completion_length", extractor.count("gconfig.max_new_tokens"))
    extractor.take("model", extractor.text("actor.path"))
    extractor.take("task", extractor.text("train_dataset.path"))
    extractor.take("seed", extractor.count("seed", least=0))
    return extractor.derived()


def _of_actor(*names: str) -> tuple[str, ...]:
    return tuple(
        f"{actor}/{name}" for actor in ("ppo_actor", "grpo_actor", "actor") for name in names
    )


KEY_TABLE = KeyTable(
    name="AReaL",
    marks=(
        rf"{ACTOR}/(?:task_reward|final_reward|kl_rewards|seq_len|no_eos_ratios|correct_seq_len).*",
        rf"{ACTOR}/update/.+|{ACTOR}/(?:advantages|behave_\w+|importance_weight)/\w+",
        r"timeperf/.+",
        r"eval-rollout/.+",
    ),
    reward=(*((name,) for name in _of_actor("task_reward/avg")), ("rollout/reward",)),
    never_reward={
        **dict.fromkeys(_of_actor("final_reward/avg"), "it is the score minus the KL penalty"),
        **dict.fromkeys(_of_actor("kl_rewards/avg"), "it is the KL penalty"),
        **dict.fromkeys(_of_actor("advantages/avg"), "it is about 0 whatever the policy does"),
    },
    refreshes=("train step", "step", "_step", "global_step"),
    evaluations=(r"eval-rollout/(?:task_)?reward(?:/avg)?", r"eval/(?:task_)?reward(?:/avg)?"),
    series={
        "entropy": _of_actor("update/entropy/avg", "entropy/avg"),
        "gradient_norm": _of_actor("update/grad_norm", "update/grad_norm/avg", "grad_norm"),
        "clip_share": _of_actor("update/clip_ratio/avg", "clip_ratio/avg"),
        "learning_rate": _of_actor("update/lr", "update/lr/avg", "lr"),
        "completion_length": _of_actor("seq_len/avg"),
        "truncated_share": _of_actor("no_eos_ratios/avg"),
        "policy_kl": _of_actor("update/approx_kl/avg", "approx_kl/avg"),
        "step_time_seconds": ("timeperf/train_step",),
        "loss": _of_actor("update/actor_loss/avg", "update/loss/avg", "actor_loss/avg"),
    },
    understood=(rf"{ACTOR}/.+|(?:rollout|eval-rollout|timeperf|eval)/.+|\w+_n_seqs|n_\w+",),
    setting_marks=(
        "gconfig.n_samples",
        "actor.ppo_n_minibatches",
        "actor.optimizer.lr",
        "actor.kl_ctl",
    ),
    derive=derive,
)
