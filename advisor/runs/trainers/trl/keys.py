"""Keys of TRL, and of the trainers that keep its names: Unsloth and ms-swift."""

from __future__ import annotations

import dataclasses

from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.trl.settings import derive

ASYNC_MARKS = (
    r"weight_sync_time_s",
    r"forward_time_s",
    r"train_seq_len",
    r"training_tok/s",
    r"generation_tok_per_s",
    r"(?:scoring_time|wait_scoring)_ms",
    r"buffer_qsize",
)
"""Keys of TRL's asynchronous trainer."""

KEY_TABLE = KeyTable(
    name="TRL",
    marks=(
        r"(?:eval_)?completions/(?:mean|min|max)_(?:terminated_)?length",
        r"(?:eval_)?completions/clipped_ratio",
        r"completion_length|completions_length",
        r"(?:eval_)?frac_reward_zero_std",
        r"(?:eval_)?clip_ratio/(?:low_mean|low_min|high_mean|high_max|region_mean)",
        r"sampling/(?:sampling_logp_difference|importance_sampling_ratio)/\w+",
        r"rewards/[^/]+(?:/mean|/std)?",
        r"global_step/max_steps",
    ),
    reward=(("reward",),),
    never_reward={
        "reward_std": "it is the spread of the rewards",
        "frac_reward_zero_std": "it is the share of groups whose rewards are all equal",
        "train_loss": "it is the loss of the whole run, in its closing row",
        "rewards/chosen": "it is DPO's implicit reward, of pairs that were given",
        "rewards/rejected": "it is DPO's implicit reward, of pairs that were given",
        "rewards/margins": "it is DPO's margin between pairs that were given",
        "rewards/accuracies": "it is DPO's share of pairs in the right order",
    },
    # W&B numbers its own rows in 'Step'; TRL writes the optimizer step beside it.
    optimizer_steps=("global_step", "step"),
    evaluations=(r"eval[_/]reward", r"eval[_/]rewards/[^/]+(?:/mean)?"),
    series={
        "reward_std_within_group": ("reward_std",),
        "silent_group_share": ("frac_reward_zero_std",),
        "entropy": ("entropy", "entropy/mean"),
        "gradient_norm": ("grad_norm", "grad norm"),
        "clip_share": ("clip_ratio/region_mean", "clip_ratio"),
        "learning_rate": ("learning_rate", "learning rate"),
        "kl": ("kl",),
        "completion_length": (
            "completions/mean_length",
            "completion_length",
            "completions_length",
        ),
        "truncated_share": ("completions/clipped_ratio", "response_clip_ratio"),
        "step_time_seconds": ("step_time",),
        "mismatch_difference": ("sampling/sampling_logp_difference/mean",),
        "loss": ("loss", "training loss"),
        "tokens": ("num_tokens", "num_input_tokens_seen"),
    },
    parts=r"rewards/(?P<name>.+?)(?:/mean)?(?<!/std)",
    understood=(
        r"epoch|_?step|total_flos|_?runtime|_?timestamp|validation loss",
        r"train_(?:runtime|loss|samples_per_second|steps_per_second|tokens_per_second)",
        r"eval[_/].+",
        r"rewards/.+",
        r"completions?/.+",
        r"clip_ratio/.+",
        r"sampling/.+",
        r"tools/.+",
        r"profiling/.+",
        r"entropy/.+|entropy_coef",
        r"policy_loss|aux_loss|nll_loss|load_balancing_loss",
        r"cispo_clip_ratio|vespo/.+|fipo/.+|sdar/.+|rlsd_lambda|teacher_kl",
        r"rollout_correction/.+|self_distillation/.+",
        r"num_turns|mean_token_accuracy",
        # What ms-swift and Megatron add of the clock and of the machine.
        r"global_step/max_steps|iteration|percentage|(?:elapsed|remaining)[_ ]time",
        r"train_speed\((?:s/it|iter/s)\)|memory\(gib\)|elapsed[_ ]time[_ ]per[_ ]iteration.*",
        r"consumed[_ ]samples|skipped samples|global batch size|loss[_ ]scale|throughput.*",
        r"number of (?:skipped|nan) iterations|num zeros|params[_ ]norm",
        r"advantages?(?:/.+)?|token_acc|acc",
    ),
    setting_marks=(
        "num_generations",
        "steps_per_generation",
        "generation_batch_size",
        "max_completion_length",
        "scale_rewards",
        "epsilon_high",
        "vllm_importance_sampling_correction",
        "mask_truncated_completions",
    ),
    derive=derive,
)

ASYNC_KEY_TABLE = dataclasses.replace(
    KEY_TABLE,
    name="TRL async",
    marks=(*KEY_TABLE.marks, *ASYNC_MARKS),
    # Without a reference model, 'kl' is that of the policy to the one that made the sample.
    series={
        **{name: keys for name, keys in KEY_TABLE.series.items() if name != "kl"},
        "policy_kl": ("kl",),
    },
    understood=(*KEY_TABLE.understood, *ASYNC_MARKS, r"ratio"),
    setting_marks=("max_staleness", "weight_sync_steps", "max_inflight_tasks"),
)
"""TRL's experimental asynchronous trainer; to be listed after `KEY_TABLE`, which wins ties."""
