"""What a setting is called in the trainer that wrote a log."""

from __future__ import annotations

from advisor.run.pilot_run import PilotRun

_VERL = "actor_rollout_ref."

NAMES: dict[str, dict[str, str]] = {
    "TRL": {
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
    },
    "verl": {
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
    },
    "OpenRLHF": {
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
    },
}
"""Trainer -> setting -> its name there."""


def knob(run: PilotRun, setting: str) -> str:
    """Name of a setting in the run's trainer; in plain words where the trainer is unknown."""
    return NAMES.get(run.framework, {}).get(setting, setting.replace("_", " "))
