"""TRL: the recommendation as ``GRPOConfig`` arguments."""

from __future__ import annotations

from typing import Any

import yaml

from advisor.advice import Recommendation
from advisor.errors import InputError

SCHEDULES = {"constant": "constant_with_warmup", "linear": "linear", "cosine": "cosine"}
OPTIMIZERS = {"adamw": "adamw_torch", "adam": "adamw_torch", "sgd": "sgd"}


def trl_config(advice: Recommendation) -> dict[str, Any]:
    """Arguments of TRL's ``GRPOConfig`` that set what was advised.

    Parameters
    ----------
    advice : Recommendation

    Returns
    -------
    arguments : dict
        For one device: one prompt's group per micro-step, so that
        ``per_device_train_batch_size = G`` and ``gradient_accumulation_steps = P``. With D devices
        divide the accumulation by D.

    Raises
    ------
    InputError
        The prompts per step are no whole number, so no batch size fits.

    Notes
    -----
    K = num_iterations x steps_per_generation / gradient_accumulation_steps; the first factor is
    the epochs, the rest the mini-batches per refresh.
    """
    settings = advice.settings
    prompts = settings.prompts_per_step or 0.0
    if prompts != int(prompts):
        raise InputError(
            f"{prompts:g} prompts per step is no whole number",
            key="prompts_per_step",
            advice="Give whole prompts per optimizer step in pilots.toml",
        )
    accumulation = int(prompts)
    arguments: dict[str, Any] = {
        "learning_rate": settings.learning_rate,
        "num_generations": settings.group_size,
        "num_iterations": settings.epochs_per_refresh,
        "steps_per_generation": accumulation * (settings.minibatches_per_refresh or 1),
        "gradient_accumulation_steps": accumulation,
        "per_device_train_batch_size": settings.group_size,
        "max_steps": advice.steps,
        "lr_scheduler_type": SCHEDULES[settings.schedule or "constant"],
        "warmup_steps": settings.warmup_steps,
        "beta": settings.kl_coefficient,
        "epsilon": settings.clip_low,
        "epsilon_high": settings.clip_high,
        "scale_rewards": settings.advantage_scaling,
        "optim": OPTIMIZERS[settings.optimizer or "adamw"],
        "logging_steps": 1,
    }
    if settings.optimizer in ("adamw", "adam", None):
        arguments["adam_beta1"] = settings.momentum
    if settings.max_completion_length is not None:
        arguments["max_completion_length"] = settings.max_completion_length
    return arguments


def trl_yaml(advice: Recommendation) -> str:
    """Return the arguments as YAML, with the arithmetic in comments."""
    settings = advice.settings
    header = [
        "# GRPOConfig arguments (TRL), one device. With D devices divide",
        "# gradient_accumulation_steps and steps_per_generation by D.",
        f"# Refresh interval K = {settings.refresh_interval} optimizer steps = "
        f"num_iterations {settings.epochs_per_refresh} x "
        f"(steps_per_generation / gradient_accumulation_steps) {settings.minibatches_per_refresh}.",
    ]
    if advice.kind != "recommendation":
        header.append(f"# NOT a recommendation ({advice.kind}): see recommendation.json.")
    body = yaml.safe_dump(trl_config(advice), sort_keys=False)
    return "\n".join(header) + "\n" + body
