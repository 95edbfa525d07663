"""Keys of trainers of which only tables are read: nothing of their consoles or settings."""

from __future__ import annotations

from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.trainer import Trainer

ACTOR = r"(?:ppo_|grpo_)?actor"


def _of_actor(*names: str) -> tuple[str, ...]:
    return tuple(
        f"{actor}/{name}" for actor in ("ppo_actor", "grpo_actor", "actor") for name in names
    )


SKYRL = KeyTable(
    name="SkyRL",
    marks=(
        r"reward/(?:avg_raw_reward|avg_pass_at_\d+|mean_positive_reward)",
        r"policy/(?:policy_loss|policy_entropy|policy_lr|raw_grad_norm|policy_update_steps)",
        r"generate/(?:avg_num_tokens|std_num_tokens|min_num_tokens|max_num_tokens)",
        r"loss/avg_(?:final_rewards|raw_advantages(?:_abs)?)",
    ),
    reward=(("reward/avg_raw_reward",), ("reward/mean_raw_reward",)),
    never_reward={
        "loss/avg_final_rewards": "it is the score minus the KL penalty",
        "reward/mean_positive_reward": "it averages only the positive ones",
    },
    refreshes=("trainer/global_step", "step", "_step"),
    evaluations=(
        r"eval/all/(?:avg_score|mean_score)",
        r"eval/all/pass_at_1",
        r"eval/.+/(?:avg_score|mean_score)",
    ),
    series={
        "entropy": ("policy/policy_entropy",),
        "gradient_norm": ("policy/raw_grad_norm", "policy/grad_norm"),
        "clip_share": ("policy/ppo_clip_ratio", "policy/clip_ratio"),
        "learning_rate": ("policy/policy_lr", "policy/lr"),
        "kl": ("policy/policy_kl", "loss/avg_kl"),
        "completion_length": ("generate/avg_num_tokens",),
        "step_time_seconds": ("timing/step",),
        "loss": ("policy/policy_loss", "policy/final_loss"),
    },
    understood=(r"(?:reward|policy|generate|loss|timing|trainer|eval|async|environment)/.+",),
)

SLIME = KeyTable(
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
)
"""Also of miles, which keeps its keys."""

AREAL = KeyTable(
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
)

OPEN_INSTRUCT = KeyTable(
    name="open-instruct",
    marks=(
        r"objective/(?:scores|verifiable_reward|verifiable_correct_rate|kl\d?_avg)",
        r"val/(?:stop_rate|sequence_lengths(?:_\w+)?|advantages_(?:mean|min|max)|format_scores)",
        r"policy/(?:clipfrac_avg|approxkl_avg|entropy_avg)",
        r"loss/(?:policy_avg|kl_avg|total_avg)",
    ),
    reward=(("scores",), ("objective/scores",), ("objective/verifiable_reward",)),
    never_reward={
        "val/format_scores": "it is one part of the reward",
        "objective/verifiable_correct_rate": "it counts rewards above 0",
    },
    refreshes=("training_step", "global_step", "_step"),
    evaluations=(r"eval/(?:objective/)?scores", r"eval/objective/verifiable_reward"),
    series={
        "entropy": ("policy/entropy_avg",),
        "gradient_norm": ("optim/grad_norm",),
        "clip_share": ("policy/clipfrac_avg",),
        "learning_rate": ("lr",),
        "kl": ("objective/kl2_avg", "objective/kl3_avg", "objective/kl_avg", "objective/kl1_avg"),
        "completion_length": ("val/sequence_lengths",),
        "truncated_share": ("val/truncated_completion_fraction",),
        "step_time_seconds": ("time/total",),
        "policy_kl": ("policy/approxkl_avg",),
        "loss": ("loss/policy_avg",),
    },
    understood=(
        r"(?:objective|val|policy|loss|eval|time|tools|optim|packing)/.+",
        "episode",
        "epoch",
    ),
)

TRAINERS = tuple(Trainer(table.name, (table,)) for table in (SKYRL, SLIME, AREAL, OPEN_INSTRUCT))
