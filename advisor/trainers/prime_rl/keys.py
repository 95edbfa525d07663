"""PRIME-Intellect's prime-rl: ``metrics.jsonl``, W&B, its console, and TOML configs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from advisor.trainers.derived import Derived
from advisor.trainers.key_table import KeyTable
from advisor.trainers.settings_extractor import Taking, share

AGENTS = ("agent", "player", "solver", "policy")
"""Names that environments give to the one agent that is trained; the first is the default."""

STRUCTURE = (
    "prime-rl takes one optimizer step per batch of rollouts and centres the rewards of a group "
    "without dividing by their spread; the run is taken to use its own algorithm"
)
TASK = re.compile(
    r"(?:orchestrator\.)?(?:train\.)?(?:source|env|environment)(?:\.0|\[0\])?\.(?:name|id)"
)


def _both(*names: str, part: str) -> tuple[str, ...]:
    """Names in one file for all (``trainer.optim.lr``), and in the component's own."""
    return tuple(full for name in names for full in (f"{part}.{name}", name))


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a prime-rl run.

    Parameters
    ----------
    settings : mapping of str to object
        Of ``rl.toml``, or of the trainer's and the orchestrator's own files, flattened.

    Returns
    -------
    derived : Derived

    Notes
    -----
    Sources: ``prime_rl/configs/orchestrator.py`` and ``trainer.py`` of August 2026, and their
    ancestors back to July 2025 (``rollouts_per_example``, ``async_level``, ``mask_ratio_low``).
    """
    taking = Taking(settings)
    steps = _updates(taking)
    group = taking.count(
        _both("group_size", "rollouts_per_example", "rollouts_per_prompt", part="orchestrator")
    )
    if group is not None:
        taking.keep("group_size", group[1], f"group_size {group[1]} ({group[0]})")
    batch = taking.count(_both("batch_size", part="orchestrator"))
    if group is not None and batch is not None:
        prompts = share(batch[1], group[1] * steps)
        line = f"{batch[0]} {batch[1]} completions / {group[0]} {group[1]}"
        line += f" / step_per_rollout {steps}" if steps > 1 else ""
        taking.keep("prompts_per_step", prompts, f"{line} = {prompts:g}")
    _take_lag(taking)
    taking.keep_amount("learning_rate", _both("optim.lr", part="trainer"))
    _take_optimizer(taking)
    taking.keep_count("planned_steps", ("max_steps", "trainer.max_steps", "orchestrator.max_steps"))
    _take_schedule(taking)
    _take_mask(taking)
    _take_scaling(taking)
    ranks = ("model.lora.rank", "model.experimental.lora.rank")
    taking.keep_count("adapter_rank", _both(*ranks, part="trainer"))
    if "adapter_rank" in taking.facts:
        taking.keep("adapter", "lora", f"adapter lora (rank {taking.facts['adapter_rank']})")
    lengths = ("train.sampling.max_completion_tokens", "sampling.max_completion_tokens")
    taking.keep_count(
        "max_completion_length", _both(*lengths, "sampling.max_tokens", part="orchestrator")
    )
    taking.keep_text("model", ("model.name", "trainer.model.name", "orchestrator.model.name"))
    taking.keep_text("task", sorted(key for key in settings if TASK.fullmatch(key)))
    taking.keep_count("seed", _both("seed", part="orchestrator"), 0)
    return taking.derived()


def _updates(taking: Taking) -> int:
    found = taking.count(("optim.step_per_rollout", "step_per_rollout"))
    steps = found[1] if found is not None else 1
    said = f"{found[0]} {steps}" if found is not None else "one optimizer step per batch"
    taking.keep("minibatches_per_refresh", steps, f"minibatches_per_refresh {steps} ({said})")
    taking.keep("epochs_per_refresh", 1, "epochs_per_refresh 1 (prime-rl uses each sample once)")
    taking.keep("importance_ratio", True, "importance_ratio true (prime-rl always corrects)")
    taking.assumptions.append(STRUCTURE)
    return steps


def _take_lag(taking: Taking) -> None:
    names = _both("max_async_level", "async_level", part="orchestrator")
    found = taking.count((*names, *_both("max_async_level", "async_level", part="trainer")), 0)
    if found is None:
        said = "max_async_level 1 (prime-rl's default; hard-coded since May 2026)"
        taking.keep("lag", 1.0, f"lag 1: {said}")
        taking.assumptions.append(said)
        return
    taking.keep("lag", float(found[1]), f"lag {found[1]} ({found[0]})")
    strict = taking.switch(_both("strict_async_level", part="orchestrator"))
    if found[1] and not (strict is not None and strict.value):
        taking.assumptions.append(f"lag {found[1]}: sampling is taken to run ahead as allowed")


def _take_optimizer(taking: Taking) -> None:
    kind = taking.text(_both("optim.type", part="trainer"))
    if kind is not None and kind.value in ("adamw", "sgd"):
        taking.keep("optimizer", kind.value, f"optimizer {kind.value} ({kind.key})")
    if kind is not None and kind.value == "sgd":
        taking.keep_amount("momentum", _both("optim.momentum", part="trainer"))
        if "momentum" not in taking.facts:
            said = "momentum 0.9 (prime-rl's default for SGD)"
            taking.keep("momentum", 0.9, said)
            taking.assumptions.append(said)
    elif kind is None or kind.value == "adamw":
        taking.keep_amount("momentum", _both("optim.betas1", part="trainer"))


def _take_schedule(taking: Taking) -> None:
    kind = taking.text(_both("scheduler.type", part="trainer"))
    if kind is None:
        return
    warmup = taking.count(_both("scheduler.warmup_steps", part="trainer"), 0)
    if kind.value != "constant" and warmup is not None:
        taking.keep("warmup_steps", warmup[1], f"warmup_steps {warmup[1]} ({warmup[0]})")
    if kind.value in ("constant", "cosine"):
        taking.keep("schedule", kind.value, f"schedule {kind.value} ({kind.key})")
    decay = taking.count(_both("scheduler.decay_steps", part="trainer"), 0)
    planned = taking.facts.get("planned_steps")
    if kind.value != "linear" or decay is None:
        return
    # Its "linear" holds the rate and lets it fall over the last decay_steps only.
    flat = None if planned is None or warmup is None else planned - warmup[1] - decay[1]
    if decay[1] == 0:
        taking.keep("schedule", "constant", f"schedule constant ({decay[0]} 0)")
    elif planned is not None and flat == 0:
        line = f"schedule linear ({decay[0]} {decay[1]} = max_steps {planned} - warm-up)"
        taking.keep("schedule", "linear", line)


def _take_mask(taking: Taking) -> None:
    low = taking.amount(_both("loss.mask_ratio_low", part="trainer"))
    high = taking.amount(_both("loss.mask_ratio_high", "loss.clip_ratio", part="trainer"))
    if low is not None and 0 < low[1] < 1:
        value = round(1 - low[1], 12)
        taking.keep("clip_low", value, f"1 - {low[0]} {low[1]:g} = {value:g}")
    if high is not None and high[1] > 1:
        value = round(high[1] - 1, 12)
        taking.keep("clip_high", value, f"{high[0]} {high[1]:g} - 1 = {value:g}")


def _take_scaling(taking: Taking) -> None:
    names = _both("advantage.std_norm", part="orchestrator")
    normed = taking.switch(names)
    if normed is not None and normed.value:
        taking.keep("advantage_scaling", "group", f"advantage_scaling group ({normed.key} true)")
        return
    kind = taking.text(_both("algo.type", part="orchestrator"))
    if kind is None or kind.value in ("grpo", "echo"):
        said = f"{kind.key} {kind.value}" if kind is not None else "prime-rl's default"
        taking.keep("advantage_scaling", "none", f"advantage_scaling none ({said}: centred only)")


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
