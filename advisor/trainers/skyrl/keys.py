"""Keys and settings of SkyRL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.trainers.batches import set_batches
from advisor.trainers.derived import Derived
from advisor.trainers.key_table import KeyTable
from advisor.trainers.settings_extractor import SettingsExtractor


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run; all of its batches count prompts."""
    extractor = SettingsExtractor(settings)
    extractor.take("group_size", extractor.count("generator.n_samples_per_prompt"))
    extractor.take("learning_rate", extractor.amount("trainer.policy.optimizer_config.lr"))
    extractor.take("epochs_per_refresh", extractor.count("trainer.update_epochs_per_batch"))
    set_batches(
        extractor,
        extractor.count("trainer.train_batch_size"),
        extractor.count("trainer.policy_mini_batch_size"),
    )
    is_used = [extractor.is_on(f"trainer.algorithm.{name}") for name in KL_SWITCHES]
    if any(is_used):
        extractor.take("kl_coefficient", extractor.amount("trainer.algorithm.kl_loss_coef"))
    elif is_used.count(False) == len(is_used):
        why = " and ".join(f"{name} is off" for name in KL_SWITCHES)
        extractor.put("kl_coefficient", 0.0, f"kl_coefficient 0: {why}")
    for ours, name in (("clip_low", "eps_clip_low"), ("clip_high", "eps_clip_high")):
        extractor.take(ours, extractor.amount(f"trainer.algorithm.{name}"))
    extractor.take("model", extractor.text("trainer.policy.model.path"))
    extractor.take(
        "max_completion_length", extractor.count("generator.sampling_params.max_generate_length")
    )
    extractor.take("seed", extractor.count("trainer.seed", least=0))
    return extractor.derived()


KL_SWITCHES = ("use_kl_loss", "use_kl_in_reward")

KEY_TABLE = KeyTable(
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
    setting_marks=(
        "generator.n_samples_per_prompt",
        "trainer.policy.optimizer_config.lr",
        "trainer.policy_mini_batch_size",
        "trainer.update_epochs_per_batch",
    ),
    derive=derive,
)
