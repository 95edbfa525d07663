"""TRL: the settings as arguments of ``GRPOConfig``.

Checked against TRL 1.16.0 with transformers 5.23.0: ``trl/trainer/grpo_config.py`` and
``trl/trainer/grpo_trainer.py`` for the batches, ``transformers/training_args.py`` and
``transformers/trainer_optimizer.py`` for optimizer and schedule.

============================  ==================================================================
setting                       argument
============================  ==================================================================
P x G completions per step    ``per_device_train_batch_size`` (counts completions) x
                              ``gradient_accumulation_steps`` x devices
mini-batches per refresh      ``steps_per_generation`` / ``gradient_accumulation_steps``
epochs per refresh            ``num_iterations``
group size G                  ``num_generations``
learning rate, its schedule   ``learning_rate``, ``lr_scheduler_type``, ``warmup_steps``,
                              ``max_steps`` (optimizer steps, and the length of the schedule)
momentum                      ``adam_beta1``; with SGD ``optim_args``
KL coefficient                ``beta``
clip low, high                ``epsilon``, ``epsilon_high``
advantage scaling             ``scale_rewards``
loss averaging, precision     ``loss_type``; ``bf16``, ``fp16``
alpha and modules of LoRA     ``--lora_alpha``, ``--lora_target_modules`` of the command
============================  ==================================================================
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

import yaml

from advisor.runs.trainers.launch import TRANSFORMERS_SCHEDULES, Carried, Launch, per_device

CHECKED = "TRL 1.16.0 with transformers 5.23.0"
FILE_NAME = "trl_config.yaml"

AVERAGING = {
    "sequence": "grpo",
    "local_token": "bnpo",
    "token": "dapo",
    "fixed_length": "dr_grpo",
}

CARRIED = (
    Carried("loss_averaging", "loss_type: LOSS", "dapo"),
    Carried("precision", "bf16: SWITCH, or fp16: SWITCH", "bf16"),
    Carried("max_completion_length", "max_completion_length: TOKENS", "512"),
    Carried("adapter_alpha", "--lora_alpha ALPHA", "32"),
    Carried("adapter_targets", "--lora_target_modules MODULES", "those that PEFT has listed"),
)

OPTIMIZERS = {"adamw": "adamw_torch", "adam": "adamw_torch", "sgd": "sgd"}


def render(launch: Launch, model: str | None) -> str:
    """Write the arguments as YAML, with the arithmetic in comments."""
    body = yaml.safe_dump(arguments(launch), sort_keys=False)
    asked = launch.asks(CARRIED, {"loss_averaging": AVERAGING}, "TRL")
    return _commented(_comments(launch, model)) + body + _commented(asked)


def _commented(lines: Iterable[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def arguments(launch: Launch) -> dict[str, Any]:
    """Arguments of ``GRPOConfig``."""
    launch.check_synchronous("TRL")
    launch.check_corrected("TRL")
    settings = launch.settings
    batch, accumulation = per_device(launch)
    found: dict[str, Any] = {
        "learning_rate": launch.learning_rate,
        "num_generations": launch.group_size,
        "num_iterations": launch.epochs,
        "steps_per_generation": accumulation * launch.minibatches,
        "gradient_accumulation_steps": accumulation,
        "per_device_train_batch_size": batch,
        "max_steps": launch.steps,
        "lr_scheduler_type": TRANSFORMERS_SCHEDULES[launch.settings.schedule],
        "warmup_steps": launch.settings.warmup_steps,
        "beta": settings.kl_coefficient,
        "epsilon": settings.clip_low,
        "epsilon_high": settings.clip_high,
        "scale_rewards": settings.advantage_scaling,
        "optim": OPTIMIZERS[launch.settings.optimizer],
        "logging_steps": 1,
    }
    if launch.settings.optimizer == "sgd":
        found["optim_args"] = f"momentum={settings.momentum!r}"
    else:
        found["adam_beta1"] = settings.momentum
    if launch.settings.optimizer == "adam":
        found["weight_decay"] = 0.0  # AdamW without decay is Adam
    if settings.max_completion_length is not None:
        found["max_completion_length"] = settings.max_completion_length
    if settings.loss_averaging in AVERAGING:
        found["loss_type"] = AVERAGING[settings.loss_averaging]
    if settings.precision is not None:
        found |= {"bf16": settings.precision == "bf16", "fp16": settings.precision == "fp16"}
    return found


def _adapter(launch: Launch) -> str:
    """Arguments of ``ModelConfig``; capitals ask for what the pilots do not tell."""
    settings = launch.settings
    if settings.adapter != "lora":
        return ""
    alpha = settings.adapter_alpha or "ALPHA"
    modules = (settings.adapter_targets or "MODULES").replace(",", " ")
    return (
        f" --use_peft --lora_r {settings.adapter_rank} --lora_alpha {alpha} "
        f"--lora_target_modules {modules}"
    )


def _prompt_comments(launch: Launch) -> list[str]:
    """TRL takes prompts as they are."""
    limit = launch.settings.max_prompt_length
    known = f"the {limit} tokens of your pilots" if limit else "what your pilots had at most"
    return [f"TRL cuts no prompts: leave those longer than {known} out of the dataset."]


def _comments(launch: Launch, model: str | None) -> list[str]:
    batch, accumulation = per_device(launch)
    named = shlex.quote(" ".join(model.split())) if model else "MODEL"
    plural = "device" if launch.devices == 1 else "devices"
    return [
        "Arguments of TRL's GRPOConfig. Start with your data and reward in place of the capitals:",
        f"  trl grpo --config {FILE_NAME} --num_processes {launch.devices} "
        f"--model_name_or_path {named}{_adapter(launch)} "
        "--dataset_name DATASET --reward_funcs REWARD",
        "",
        *launch.refresh_comments(
            f"steps_per_generation {accumulation * launch.minibatches} / "
            f"gradient_accumulation_steps {accumulation}",
            "num_iterations",
        ),
        f"One optimizer step: {launch.prompts} prompts x {launch.group_size} completions = "
        f"{launch.completions}",
        f"  = per_device_train_batch_size {batch} x gradient_accumulation_steps {accumulation} x "
        f"{launch.devices} {plural} (--num_processes)",
        "For less memory divide per_device_train_batch_size and multiply",
        "gradient_accumulation_steps and steps_per_generation by one number.",
        *_prompt_comments(launch),
        *launch.dataset_comments,
    ]
