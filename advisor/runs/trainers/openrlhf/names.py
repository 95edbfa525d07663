"""Names of the package's settings among OpenRLHF's flags."""

from __future__ import annotations

from advisor.runs.settings import Settings

SETTING_NAMES = {
    "learning_rate": "--actor.adam.lr",
    "group_size": "--rollout.n_samples_per_prompt",
    "epochs_per_refresh": "--train.max_epochs",
    "minibatches_per_refresh": "--rollout.batch_size / --train.batch_size",
    "kl_coefficient": "--algo.kl.init_coef",
    "clip": "--actor.eps_clip_low_high",
    "max_completion_length": "--rollout.max_new_tokens",
    "temperature": "--rollout.temperature",
    "entropy": "--actor.entropy_coef",
    "prompts_per_step": "--rollout.batch_size",
    "advantage_scaling": "--algo.advantage.no_std_norm",
}

ASKED_AS = {
    "prompts_per_step": "--train.batch_size / --rollout.n_samples_per_prompt",
    "minibatches_per_refresh": "--rollout.batch_size x --rollout.n_samples_per_prompt "
    "/ --train.batch_size",
    "adapter": "a LoRA rank above 0",
}
"""What they are computed from, where no flag of OpenRLHF holds them."""


def paste(settings: Settings) -> str:
    """Flags of ``train_ppo_ray`` on one line; numbers as they are, not rounded."""
    trained = settings.prompts_per_step * settings.group_size
    return (
        f"--actor.adam.lr {settings.learning_rate!r} "
        f"--rollout.n_samples_per_prompt {settings.group_size} "
        f"--train.max_epochs {settings.epochs_per_refresh} "
        f"--rollout.batch_size {settings.prompts_per_step * settings.minibatches_per_refresh:g} "
        f"--train.batch_size {trained:g}"
    )
