"""Keys of CS336's GRPO loops, whose kinds of rows are told apart by ``type``."""

from __future__ import annotations

from advisor.runs.trainers.cs336.settings import IN_ROWS, derive, observe
from advisor.runs.trainers.key_table import KeyTable

PART = "it is one part of the reward, or one side of it"
SPREAD = "it is a spread or an extreme of a batch"


KEY_TABLE = KeyTable(
    name="CS336",
    observed=tuple(IN_ROWS),
    marks=(
        r"grpo_step",
        r"rollout_epoch|train_batch_index|num_train_batches",
        r"epochs_per_rollout_batch|optimizer_updates_per_rollout_batch",
        r"train_(?:format|answer)_(?:accuracy|reward)",
        r"grpo/mean_(?:raw|answer)_reward",
    ),
    reward=(
        ("reward",),
        ("mean_reward", "reward_mean", "grpo/mean_reward"),
        ("mean_raw_reward", "grpo/mean_raw_reward", "rewards_total"),
        ("train_reward",),
    ),
    never_reward={
        "format_accuracy": PART,
        "answer_accuracy": PART,
        "train_format_accuracy": PART,
        "train_answer_accuracy": PART,
        "format_reward": PART,
        "mean_format_reward": PART,
        "grpo/mean_format_reward": PART,
        "answer_reward": PART,
        "mean_answer_reward": PART,
        "grpo/mean_answer_reward": PART,
        "std_reward": SPREAD,
        "reward_std": SPREAD,
        "min_reward": SPREAD,
        "max_reward": SPREAD,
        "mean_advantage": "it is about 0 whatever the policy does",
        "best_answer_accuracy": "it is the best held-out accuracy so far",
    },
    optimizer_steps=("optimizer_step", "train_step"),
    refreshes=("grpo_step", "grpo/step", "rollout_step"),
    evaluations=(
        r"(?:eval|val|validation)[/_](?:mean_)?(?:answer_)?reward(?:_mean)?",
        r"(?:eval|val|validation)[/_](?:answer_)?accuracy",
        r"grpo/validation_accuracy",
    ),
    series={
        "entropy": ("token_entropy", "avg_token_entropy", "grpo/token_entropy"),
        "gradient_norm": ("grad_norm", "gradient_norm", "grpo/gradient_norm"),
        "clip_share": ("clip_fraction",),
        "learning_rate": ("learning_rate", "lr"),
        "kl": ("reference_kl",),
        "completion_length": ("avg_response_token_length", "response_tokens_mean"),
        "truncated_share": ("truncated_frac",),
        "policy_kl": ("approx_kl",),
        "loss": ("loss", "grpo/loss"),
    },
    understood=(
        r"(?:rollout|eval|step|train)_seconds|step_time_s|time/.+",
        r"rollout_epoch|train_batch_index|num_(?:examples|questions|rollouts|train_batches)",
        r"epochs_per_rollout_batch|optimizer_updates_per_rollout_batch",
        r"std_advantage|advantage_(?:std|abs_mean)|scaled_loss|kl_penalty",
        r"avg_response_length|response_length_\w+|empty_response_\w+",
        r"(?:degenerate|all_correct|all_wrong)_groups|pruned_frac|num_pruned_rollout",
        r"(?:micro|train_|rollout_)?batch_?size|microbatch_size|group_size",
        r"gradient_accumulation_steps|loss_(?:type|normalization|normalize_constant)",
        r"cliprange(?:_low|_high)?|kl_coef|reference_model_cached|old_log_probs_cached",
        r"temperature|top_p|max_tokens|stop|include_stop_str_in_output|eval_step",
        r"cuda_.+|gpu_.+|max_memory_.+",
    ),
    kind_key="type",
    train_kinds=("rollout", "train"),
    eval_kinds=("eval", "evaluation", "val", "validation"),
    setting_marks=(
        "epochs_per_rollout_batch",
        "n_grpo_steps",
        "n_train_steps_per_rollout_batch",
        "use_std_normalization",
        "importance_reweighting_method",
        "advantage_normalizer",
    ),
    derive=derive,
    observe=observe,
)
