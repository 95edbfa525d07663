"""Names of the package's settings in TRL's ``GRPOConfig``, and its defaults."""

from __future__ import annotations

from advisor.runs.settings import Settings

SETTING_NAMES = {
    "learning_rate": "learning_rate",
    "group_size": "num_generations",
    "epochs_per_refresh": "num_iterations",
    "minibatches_per_refresh": "steps_per_generation",
    "kl_coefficient": "beta",
    "clip": "epsilon",
    "max_completion_length": "max_completion_length",
    "temperature": "temperature",
    "entropy": "entropy_coeff or epsilon_high",
    "prompts_per_step": "gradient_accumulation_steps",
    "advantage_scaling": "scale_rewards",
}

RECIPES = {
    "TRL defaults": {
        "learning_rate": 1e-6,
        "group_size": 8,
        "minibatches_per_refresh": 1,
        "epochs_per_refresh": 1,
    }
}
"""Defaults of ``GRPOConfig`` in TRL 1.x."""


def paste(settings: Settings) -> str:
    """Arguments of ``GRPOConfig`` on one line; numbers as they are, not rounded."""
    trained = settings.prompts_per_step * settings.group_size
    fresh = trained * settings.minibatches_per_refresh
    return (
        f"learning_rate={settings.learning_rate!r}, num_generations={settings.group_size}, "
        f"num_iterations={settings.epochs_per_refresh}, generation_batch_size={fresh:.0f}"
    )


ASKED_AS = {
    "prompts_per_step": "per_device_train_batch_size x devices x gradient_accumulation_steps "
    "/ num_generations",
    "minibatches_per_refresh": "steps_per_generation / gradient_accumulation_steps",
    "adapter": "use_peft",
}
"""What they are computed from, where no argument of TRL holds them."""
