"""Keys and settings of AI2's open-instruct (``grpo_fast.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.trainers.derived import Derived
from advisor.trainers.key_table import KeyTable
from advisor.trainers.settings_extractor import SettingsExtractor, share


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run from its arguments."""
    extractor = SettingsExtractor(
        {key.rpartition(".")[2]: settings[key] for key in settings} | dict(settings)
    )
    extractor.take("group_size", extractor.count("num_samples_per_prompt_rollout"))
    extractor.take("learning_rate", extractor.amount("learning_rate"))
    extractor.take("kl_coefficient", extractor.amount("beta"))
    extractor.take("epochs_per_refresh", extractor.count("num_epochs"))
    parts = extractor.count("num_mini_batches")
    extractor.take("minibatches_per_refresh", parts)
    prompts = extractor.count("num_unique_prompts_rollout")
    if parts is not None and prompts is not None:
        per_step = share(prompts.value, parts.value)
        extractor.put("prompts_per_step", per_step, f"{prompts} / {parts} = {per_step:g} prompts")
    extractor.take("clip_low", extractor.amount("clip_lower"))
    extractor.take("clip_high", extractor.amount("clip_higher"))
    extractor.take("max_completion_length", extractor.count("response_length"))
    extractor.take("model", extractor.text("model_name_or_path"))
    steps = extractor.amount("async_steps")
    if steps is not None and extractor.facts.get("minibatches_per_refresh") is not None:
        interval = int(extractor.facts["minibatches_per_refresh"]) * int(
            extractor.facts.get("epochs_per_refresh", 1)
        )
        lag = steps.value * interval
        extractor.put("lag", lag, f"{steps} batches x {interval} optimizer steps = {lag:g}")
    return extractor.derived()


KEY_TABLE = KeyTable(
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
    setting_marks=(
        "num_unique_prompts_rollout",
        "num_samples_per_prompt_rollout",
        "num_mini_batches",
        "apply_verifiable_reward",
    ),
    derive=derive,
)
