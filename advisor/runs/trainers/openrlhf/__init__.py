"""OpenRLHF and its forks."""

from __future__ import annotations

import math

from advisor.runs.trainers.export import Launch, fill_template, from_environment, refuse
from advisor.runs.trainers.openrlhf import console
from advisor.runs.trainers.openrlhf.settings import derive, observe
from advisor.runs.trainers.registry import read_trainer


def render(launch: Launch, model: str | None) -> str:
    """Write the flags as a script."""
    launch.check_corrected("OpenRLHF")
    settings = launch.settings
    if settings.optimizer == "sgd":
        refuse("sgd", "openrlhf")
    limit, prompt = settings.max_completion_length, settings.max_prompt_length
    is_lora, has_kl = settings.adapter == "lora", bool(settings.kl_coefficient)
    refreshes, lag = launch.refreshes("OpenRLHF"), settings.lag
    queue = launch.in_refreshes("queue", lag, "OpenRLHF") if lag else None
    return fill_template(
        "openrlhf",
        launch,
        # The flag of the prompt's limit is of both limits together.
        unknown=("max_prompt_length",) if limit is None else (),
        model=from_environment(model),
        samples=launch.rollout_prompts * refreshes,
        both_lengths=None if limit is None or prompt is None else prompt + limit,
        warmup_ratio=warmup_ratio(launch.steps, settings.warmup_steps),
        # AdamW without decay is Adam.
        weight_decay=0.0 if settings.optimizer == "adam" else None,
        use_loss="use_loss" if has_kl else None,
        kl_estimator="k3" if has_kl else None,
        targets=(settings.adapter_targets or "").replace(",", " ") or None if is_lora else None,
        # Engines share the trainer's devices, or run ahead on devices of their own.
        engine_sleep=None if queue else "enable_sleep",
        shared_memory=None if queue else 0.6,
        async_enable="async_enable" if queue else None,
        own_devices=launch.devices if queue else None,
        steps_ahead=f"{settings.lag:g}" if queue else None,
        queue=queue,
    )


def warmup_ratio(steps: int, warmup_steps: int) -> float:
    """Share of the run that OpenRLHF turns back into a number of warm-up steps."""
    # The plain quotient misses it where ceil(steps * ratio) is a rounding error too large.
    ratio = warmup_steps / steps
    return ratio if math.ceil(steps * ratio) == warmup_steps else math.nextafter(ratio, 0.0)


TRAINER = read_trainer(
    "openrlhf",
    readers=(console.READER,),
    export=render,
    derive=derive,
    observe=observe,
)
