"""Settings of hand-written loops in the package's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.common_keys import are_passes
from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.settings_extractor import SettingsExtractor

PROMPTS = (
    "batch",
    "prompts_per_step",
    "prompts_per_batch",
    "num_prompts",
    "questions_per_step",
    "n_prompts",
    "num_groups",
    "groups_per_step",
)
"""Prompts of one step; ``batch_size`` is not among them: it counts completions as often."""

PASSES = ("mu", "ppo_epochs", "inner_epochs", "epochs_per_step", "num_iterations")
"""Passes over a batch of rollouts, the surest name first."""

STEPS = ("steps", "max_steps", "num_steps", "n_steps", "total_steps", "n_grpo_steps")
SCHEDULES = ("lr_scheduler_type", "lr_scheduler", "lr_schedule", "schedule", "scheduler")
KINDS = {
    "constant": "constant",
    "none": "constant",
    "linear": "linear",
    "cosine": "cosine",
}
SECTIONS = frozenset(
    {"training", "train", "trainer", "grpo", "rl", "ppo", "algorithm", "optim", "optimization"}
)
"""Sections in which a name means what it means outside of any."""

LEAST_CLIP = 0.01
"""Below it an ``epsilon`` is Adam's, not a trust region."""

BOTH_CLIPS = ("clip_eps", "clip_epsilon", "eps_clip", "epsilon", "cliprange", "clip_range")


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a hand-written loop, beyond the names that many loops share."""
    inside = {
        key.rpartition(".")[2]: value
        for key, value in settings.items()
        if key.partition(".")[0] in SECTIONS
    }
    extractor = SettingsExtractor({**inside, **settings})
    prompts = extractor.amount(*PROMPTS)
    if prompts is not None and prompts.value > 0:
        extractor.put(
            "prompts_per_step", prompts.value, f"{prompts.value:g} prompts a step ({prompts.name})"
        )
        if prompts.name == "batch":
            extractor.assume(
                f"batch {prompts.value:g} taken as prompts per optimizer step (not completions)"
            )
    extractor.take("planned_steps", extractor.count(*STEPS))
    extractor.take(
        "warmup_steps",
        extractor.count("warmup_steps", "lr_warmup_steps", "num_warmup_steps", least=0),
    )
    passes = extractor.count(*PASSES)
    if passes is not None and are_passes(passes.name, passes.value, settings):
        extractor.take("epochs_per_refresh", passes)
    elif passes is not None:
        extractor.assume(
            f"{passes} is taken for the length of the run, not for passes over its rollouts"
        )
    extractor.take(
        "kl_coefficient",
        extractor.amount(
            "kl_coefficient", "kl_coef", "kl_coeff", "kl_weight", "beta_kl", "kl_beta", "beta"
        ),
    )
    schedule = extractor.text(*SCHEDULES)
    kind = KINDS.get(str(schedule.value).lower()) if schedule is not None else None
    if schedule is not None and kind is not None:
        extractor.put("schedule", kind, f"schedule {schedule.value} ({schedule.name})")
    optimizer = extractor.text("optimizer", "optim")
    if optimizer is not None and str(optimizer.value).lower() in ("adamw", "adam", "sgd"):
        name = str(optimizer.value).lower()
        extractor.put("optimizer", name, f"optimizer {optimizer.value} ({optimizer.name})")
    extractor.take(
        "max_completion_length", extractor.count("max_gen_len", "max_response_length", "max_new")
    )
    for ours, own in (("clip_low", "epsilon_low"), ("clip_high", "epsilon_high")):
        bound = extractor.amount(own, ours, *BOTH_CLIPS)
        if bound is not None and bound.value >= LEAST_CLIP:
            extractor.put(ours, bound.value, f"{ours} {bound.value:g} ({bound.name})")
    return extractor.derived()
