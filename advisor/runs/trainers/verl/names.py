"""Names of the package's settings in verl's configuration, and those of its example scripts."""

from __future__ import annotations

from advisor.runs.settings import Settings

_VERL = "actor_rollout_ref."

SETTING_NAMES = {
    "learning_rate": f"{_VERL}actor.optim.lr",
    "group_size": f"{_VERL}rollout.n",
    "epochs_per_refresh": f"{_VERL}actor.ppo_epochs",
    "minibatches_per_refresh": "data.train_batch_size / actor.ppo_mini_batch_size",
    "kl_coefficient": f"{_VERL}actor.kl_loss_coef",
    "clip": f"{_VERL}actor.clip_ratio_high",
    "max_completion_length": "data.max_response_length",
    "temperature": f"{_VERL}rollout.temperature",
    "entropy": f"{_VERL}actor.entropy_coeff or clip_ratio_high",
    "prompts_per_step": "data.train_batch_size",
    "advantage_scaling": "algorithm.norm_adv_by_std_in_grpo",
}

RECIPES = {
    "verl example scripts": {
        "learning_rate": 1e-6,
        "group_size": 5,
        "minibatches_per_refresh": 4,
        "epochs_per_refresh": 1,
    }
}
"""verl's GRPO example scripts: ``rollout.n`` 5, 1024/256 prompts."""

ASKED_AS = {
    "prompts_per_step": "actor.ppo_mini_batch_size",
    "adapter": "actor_rollout_ref.model.lora_rank above 0",
}
"""Where the name of a setting is that of another thing: a step takes a mini-batch."""


def paste(settings: Settings) -> str:
    """Hydra overrides on one line; numbers as they are, not rounded."""
    prompts = settings.prompts_per_step
    return (
        f"{_VERL}actor.optim.lr={settings.learning_rate!r} "
        f"{_VERL}rollout.n={settings.group_size} "
        f"{_VERL}actor.ppo_epochs={settings.epochs_per_refresh} "
        f"data.train_batch_size={prompts * settings.minibatches_per_refresh:g} "
        f"{_VERL}actor.ppo_mini_batch_size={prompts:g}"
    )
