"""Names of the package's settings among OpenRLHF's flags."""

from __future__ import annotations

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
    "prompts_per_step": "train_batch_size / n_samples_per_prompt",
    "minibatches_per_refresh": "rollout_batch_size x n_samples_per_prompt / train_batch_size",
    "adapter": "lora_rank above 0",
}
"""What they are computed from, where no flag of OpenRLHF holds them."""
