"""TRL, and the trainers that keep its names: Unsloth and ms-swift."""

from __future__ import annotations

import shlex
from dataclasses import replace

import yaml

from advisor.runs.trainers.derived import read_data
from advisor.runs.trainers.export import Launch, fill_template, per_device
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
    launch.check_synchronous("TRL")
    launch.check_corrected("TRL")
    settings, (batch, accumulation) = launch.settings, per_device(launch)
    limit, precision = settings.max_prompt_length, settings.precision
    is_sgd = settings.optimizer == "sgd"
    exact = {n: _exact(v) for n, v in settings.model_dump().items() if isinstance(v, float)}
    return fill_template(
        "trl",
        launch,
        **exact,
        model=shlex.quote(" ".join(model.split())) if model else "MODEL",
        adapter=_adapter(launch),
        batch=batch,
        accumulation=accumulation,
        rounds=accumulation * settings.minibatches_per_refresh,
        named_devices="1 device" if launch.devices == 1 else f"{launch.devices} devices",
        longest=f"the {limit} tokens of your pilots" if limit else "what your pilots had at most",
        saved_steps=launch.saved_every,
        sgd_momentum=repr(settings.momentum) if is_sgd else None,
        beta1=None if is_sgd else exact["momentum"],
        weight_decay="0.0" if settings.optimizer == "adam" else None,
        bf16=precision and str(precision == "bf16").lower(),
        fp16=precision and str(precision == "fp16").lower(),
    )


def _exact(value: float) -> str:
    """A number as YAML 1.1 reads it back: ``1.0e-06``, for ``1e-06`` is text there."""
    return yaml.safe_dump(value).partition("\n")[0]


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
