"""Keys of OpenRLHF and its forks in W&B, TensorBoard and on the console."""

from __future__ import annotations

import numpy as np

from advisor.runs.logfiles.table import Table
from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.openrlhf.settings import MARKS, derive

KL_KEYS = ("kl", "train/kl")
LEAST_ROWS = 5
"""Rows from which a KL of exactly 0 is none that happens to be small."""


def observe(table: Table) -> Derived:
    """KL coefficient, where the rows show that there is no reference policy."""
    # Without a reference OpenRLHF logs a KL of exactly 0 (``make_experience`` and
    # ``training_step``); with one, rounding alone makes it differ from 0.
    for key in KL_KEYS:
        values = table.column(key)
        values = values[np.isfinite(values)]
        if values.size >= LEAST_ROWS and not values.any():
            line = f"kl_coefficient 0: '{key}' is exactly 0 in all {values.size} rows"
            return Derived({"kl_coefficient": 0.0}, {"kl_coefficient": line})
    return Derived({}, {})


KEY_TABLE = KeyTable(
    name="OpenRLHF",
    marks=(
        r"act(?:or)?_lr",
        r"actor_grad_norm",
        r"act_loss",
        r"ppo_clip_ratio",
        r"logprobs_diff",
        r"vllm_kl",
        r"group_reward_std",
        r"response_clip_ratio",
        r"glen|tlen|gen_len|tot_len",
        r"rollout/(?:reward_mean|truncated_rate|response_length_mean|num_samples)",
        r"timing/(?:make_experience|ppo_train|broadcast)",
        r"dynamic_filtering_pass_rate",
        r"eval/eval_.+_pass\d+",
        r"eval_.+_pass\d+",
    ),
    # Averages over mini-batches weigh samples unequally where batches are dynamic.
    reward=(("rollout/reward_mean",), ("reward",), ("rm",)),
    never_reward={
        "return": "it includes the KL penalty",
        "ret": "it includes the KL penalty",
        "score": "it decides which prompts are kept; what is optimised is 'reward'",
        "rollout/reward_std": "it is the spread over the whole batch",
        "values": "it is the critic's forecast",
        "vals": "it is the critic's forecast",
    },
    refreshes=("global_step", "eval/global_step", "step"),
    evaluations=(r"(?:eval/)?eval_.+_pass1",),
    series={
        "reward_std_within_group": ("group_reward_std",),
        "entropy": ("entropy_loss", "ent_loss"),
        "gradient_norm": ("actor_grad_norm", "grad_norm"),
        "clip_share": ("ppo_clip_ratio",),
        "learning_rate": ("actor_lr", "act_lr"),
        "kl": ("kl",),
        "completion_length": (
            "rollout/response_length_mean",
            "response_length",
            "gen_len",
            "glen",
        ),
        "truncated_share": ("rollout/truncated_rate", "truncated", "response_clip_ratio"),
        "step_time_seconds": ("timing/step_total",),
        "policy_kl": ("ppo_kl",),
        "mismatch_kl": ("vllm_kl",),
        "loss": ("policy_loss", "act_loss", "pg"),
    },
    understood=(
        r"(?:critic|ptx|aux)_loss|critic_lr|critic_grad_norm|cri(?:_lr)?|ptx",
        r"total_length|tlen|tot_len|num_actions",
        r"logprobs_diff",
        r"rollout/num_samples",
        r"timing/.+|perf/.+",
        r"dynamic_filtering_pass_rate",
        r"(?:eval/)?eval_.+|eval/epoch",
        r"generated_samples(?:/text_summary)?",
        r"eval/(?:response_length_mean|truncated_rate|num_samples)",
    ),
    setting_marks=MARKS,
    derive=derive,
    observe=observe,
)
