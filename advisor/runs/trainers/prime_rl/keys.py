"""Keys of PRIME-Intellect's prime-rl in ``metrics.jsonl``, W&B and its console."""

from __future__ import annotations

from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.prime_rl.settings import derive

AGENTS = ("agent", "player", "solver", "policy")
"""Names that environments give to the one agent that is trained; the first is the default."""


def _of_agents(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.format(agent) for agent in AGENTS)


KEY_TABLE = KeyTable(
    name="prime-rl",
    marks=(
        r"mismatch_kl/.+",
        r"kl_ent_ratio/mean",
        r"batch/(?:solve_none|solve_all|effective_batch_size|async_level|off_policy_level/.+)",
        r"(?:solve_none|solve_all|effective_batch_size)/all",
        r"reward/(?:solve_none|solve_all|effective_batch_size)",
        r"progress/ckpt_step",
        r"agg/(?:all|effective)/.+",
        r"off_policy/.+",
        r"async level|max\. off-policy(?: level)?",
        r"trainable",
    ),
    reward=(
        *((name,) for name in _of_agents("agg/effective/{}/reward/mean")),
        *((name,) for name in _of_agents("agg/all/{}/reward/mean")),
        ("reward/all/mean",),
        ("reward/mean",),
        ("reward/reward",),
    ),
    never_reward={
        "val_reward/mean": "it is held out",
        "val_reward/all/mean": "it is held out",
        "reward/advantage": "it is an advantage",
    },
    optimizer_steps=("step", "progress/orchestrator/step"),
    evaluations=(
        r"eval/[^/]+/effective/[^/]+/avg@\d+",
        r"eval/[^/]+/all/[^/]+/avg@\d+",
        r"eval/[^/]+/avg@\d+",
        r"val_reward/(?:all/)?mean",
    ),
    series={
        "entropy": ("entropy/all/mean", "entropy/mean"),
        "gradient_norm": ("optim/grad_norm", "grad. norm"),
        "clip_share": ("is_masked/mean", "is_clipped/mean"),
        "learning_rate": ("optim/lr",),
        "mismatch_kl": ("mismatch_kl/all/mean", "mismatch_kl/mean", "mismatch kl"),
        "completion_length": (
            *_of_agents("agg/effective/{}/num_output_tokens/mean"),
            "decode_len/all/mean",
            "decode_len/mean",
            "completion_len/mean",
        ),
        "truncated_share": (
            *_of_agents("agg/effective/{}/is_truncated/mean"),
            "is_truncated/all/mean",
            "is_truncated/mean",
            "truncation",
        ),
        "all_right_share": (
            *_of_agents("agg/all/{}/solved_all"),
            "solve_all/all",
            "batch/solve_all",
            "reward/solve_all",
        ),
        "all_wrong_share": (
            *_of_agents("agg/all/{}/solved_none"),
            "solve_none/all",
            "batch/solve_none",
            "reward/solve_none",
        ),
        "step_time_seconds": ("time/step",),
        "loss": ("loss/mean",),
        "tokens": ("progress/total_tokens",),
    },
    parts=rf"agg/effective/(?:{'|'.join(AGENTS)})/rewards/(?P<name>[^/]+)/mean",
    understood=(
        r"(?:perf|time|timing|system|progress|optim|watcher|dispatcher|inference|pool)/.+",
        r"(?:event_loop_lag|concurrency|curriculum|sampler|gate|filters|pre_filters)/.+",
        r"(?:batch|effective_batch_size|solve_all|solve_none|stop_condition|error|metrics)/.+",
        r"(?:reward|val_reward|val_batch|advantage|sampling|chinese)/.+",
        r"(?:seq_len|prompt_len|completion_len|prefill_len|decode_len|num_turns)/.+",
        r"(?:is_truncated|samples_per_rollout|generation_ms|scoring_ms|seq)/.+",
        r"(?:empty|errored)_rollouts/.+",
        r"(?:entropy|loss|nll|ref_kl|teacher_kl|kl_ent_ratio|max_vio|routing_confidence)/.+",
        r"(?:un)?(?:masked_)?mismatch_kl/.+|is_(?:masked|clipped)(?:_low|_high)?/.+",
        r"(?:masked_advantage_(?:positive|negative)|sequence_masked_low)/.+",
        r"(?:clipped_)?importance_ratio/.+|recomputed_logprob_error/.+",
        r"(?:trainer_|inference_|old_)?probs/.+|off_policy/.+|eval/.+",
        r"[^/]+/(?:all|effective)/.+",
        r"mfu|peak mem\.|throughput|seq\. length|trainable|turns|branches|cancelled",
        r"async level|max\. off-policy(?: level)?|max vio|routing conf\.|time",
    ),
    setting_marks=(
        "rollouts_per_example",
        "max_async_level",
        "async_level",
        "strict_async_level",
        "max_off_policy_steps",
        "token_batch_size",
        "rollout_transport",
        "rollout_transport.type",
        "orchestrator.batch_size",
        "orchestrator.group_size",
        "trainer.optim.lr",
        "dppo_mask_low",
        "ipo_mask_low",
        "inference_gpu_ids",
        "trainer_gpu_ids",
    ),
    derive=derive,
)
