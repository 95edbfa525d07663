"""TRL, and the trainers that keep its names: Unsloth and ms-swift."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import yaml

from advisor.runs.trainers.derived import read_data
from advisor.runs.trainers.export import Launch, fill_template, per_device, words_for
from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.registry import read_trainer
from advisor.runs.trainers.trl import console
from advisor.runs.trainers.trl.settings import derive


def _asynchronous(table: KeyTable) -> KeyTable:
    """Keys of the asynchronous trainer; listed after TRL's, which win ties."""
    data = read_data("trl")["asynchronous"]
    return replace(
        table,
        name="TRL async",
        marks=(*table.marks, *data["marks"]),
        # Without a reference model, 'kl' is that of the policy to the one that made the sample.
        series={
            **{name: keys for name, keys in table.series.items() if name != "kl"},
            "policy_kl": ("kl",),
        },
        understood=(*table.understood, *data["marks"], "ratio"),
        setting_marks=tuple(data["setting_marks"]),
    )


def render(launch: Launch, model: str | None) -> str:
    """Write the arguments as YAML, with the arithmetic in comments."""
    limit, (batch, accumulation) = launch.settings.max_prompt_length, per_device(launch)
    return fill_template(
        "trl",
        launch,
        model=shlex.quote(" ".join(model.split())) if model else "MODEL",
        adapter=_adapter(launch),
        batch=batch,
        accumulation=accumulation,
        rounds=accumulation * launch.settings.minibatches_per_refresh,
        named_devices="1 device" if launch.devices == 1 else f"{launch.devices} devices",
        longest=f"the {limit} tokens of your pilots" if limit else "what your pilots had at most",
        arguments=yaml.safe_dump(arguments(launch), sort_keys=False).rstrip("\n"),
    )


def arguments(launch: Launch) -> dict[str, Any]:
    """Arguments of ``GRPOConfig``."""
    launch.check_synchronous("TRL")
    launch.check_corrected("TRL")
    settings, words = launch.settings, words_for("trl", launch.settings)
    batch, accumulation = per_device(launch)
    is_sgd, precision = settings.optimizer == "sgd", settings.precision
    found = {
        "learning_rate": settings.learning_rate,
        "num_generations": settings.group_size,
        "num_iterations": settings.epochs_per_refresh,
        "steps_per_generation": accumulation * settings.minibatches_per_refresh,
        "gradient_accumulation_steps": accumulation,
        "per_device_train_batch_size": batch,
        "max_steps": launch.steps,
        "lr_scheduler_type": words["schedule"],
        "warmup_steps": settings.warmup_steps,
        "beta": settings.kl_coefficient,
        "epsilon": settings.clip_low,
        "epsilon_high": settings.clip_high,
        "scale_rewards": settings.advantage_scaling,
        "optim": words["optimizer"],
        "logging_steps": 1,
        "save_steps": launch.saved_every,
        "optim_args": f"momentum={settings.momentum!r}" if is_sgd else None,
        "adam_beta1": None if is_sgd else settings.momentum,
        "weight_decay": 0.0 if settings.optimizer == "adam" else None,
        "max_completion_length": settings.max_completion_length,
        "loss_type": words["loss_averaging"],
        "bf16": precision and precision == "bf16",
        "fp16": precision and precision == "fp16",
    }
    return {name: value for name, value in found.items() if value is not None}


def _adapter(launch: Launch) -> str:
    """Arguments of ``ModelConfig``; capitals ask for what the pilots do not state."""
    settings = launch.settings
    if settings.adapter != "lora":
        return ""
    alpha = settings.adapter_alpha or "ALPHA"
    modules = (settings.adapter_targets or "MODULES").replace(",", " ")
    return (
        f" --use_peft --lora_r {settings.adapter_rank or 'RANK'} --lora_alpha {alpha} "
        f"--lora_target_modules {modules}"
    )


TRAINER = read_trainer(
    "trl", readers=(console.STATE_READER, console.READER), export=render, derive=derive
)
KEY_TABLE = TRAINER.keys[0]
TRAINER = replace(TRAINER, keys=(KEY_TABLE, _asynchronous(KEY_TABLE)))
