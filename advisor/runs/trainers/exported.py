"""Configurations for trainers of which no more than tables is read: prime-rl, NeMo-RL, ms-swift."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from advisor.runs.settings import Settings
from advisor.runs.trainers.derived import read_data
from advisor.runs.trainers.export import (
    Export,
    Launch,
    fill_template,
    from_environment,
    per_device,
    refuse,
)


def _shared(settings: Settings) -> dict[str, Any]:
    """Values that all three have: both lengths, and lines of an adapter or of one optimizer."""
    prompt, limit = settings.max_prompt_length, settings.max_completion_length
    is_sgd, is_lora = settings.optimizer == "sgd", settings.adapter == "lora"
    return {
        **({} if is_lora else {"adapter_rank": None}),
        "both_lengths": None if prompt is None or limit is None else prompt + limit,
        "is_lora": "" if is_lora else None,
        "beta1": None if is_sgd else settings.momentum,
        "sgd_momentum": settings.momentum if is_sgd else None,
        "nesterov": "false" if is_sgd else None,
        # AdamW without decay is Adam.
        "weight_decay": 0.0 if settings.optimizer == "adam" else None,
    }


def render_ms_swift(launch: Launch, model: str | None) -> str:
    """Write the arguments of ``swift rlhf`` as a script."""
    launch.check_synchronous("ms-swift")
    launch.check_corrected("ms-swift")
    settings, (batch, accumulation) = launch.settings, per_device(launch)
    is_lora, modules = settings.adapter == "lora", settings.adapter_targets
    return fill_template(
        "ms_swift_export",
        launch,
        **_shared(settings),
        model=from_environment(model),
        batch=batch,
        accumulation=accumulation,
        rounds=accumulation * settings.minibatches_per_refresh,
        optimizer="sgd" if settings.optimizer == "sgd" else "adamw_torch",
        targets=modules.replace(",", " ") if is_lora and modules else None,
        saved_steps=launch.saved_every,
    )


def render_nemo_rl(launch: Launch, model: str | None) -> str:
    """Write the overrides of NeMo-RL's example as a script."""
    launch.check_synchronous("NeMo-RL")
    settings = launch.settings
    if settings.epochs_per_refresh > 1:
        refuse("epochs", "nemo_rl_export", epochs=settings.epochs_per_refresh)
    if settings.advantage_scaling == "batch":
        refuse("scaling", "nemo_rl_export", scaling="batch")
    if settings.optimizer == "sgd":
        refuse("sgd", "nemo_rl_export")
    refreshes = launch.in_refreshes("steps", launch.steps, "NeMo-RL")
    warmup = launch.in_refreshes("warmup", settings.warmup_steps, "NeMo-RL")
    modules, is_lora = settings.adapter_targets, settings.adapter == "lora"
    is_listed = is_lora and modules not in (None, "all-linear")
    overrides: dict[str, str] = {
        "scheduler": f"policy.scheduler={_scheduler(settings, warmup, refreshes)}",
        "moments": f"policy.optimizer.kwargs.betas=[{settings.momentum!r},0.999]",
        "targets": f"policy.dtensor_cfg.lora_cfg.target_modules=[{modules}]",
    }
    return fill_template(
        "nemo_rl_export",
        launch,
        unknown=("max_prompt_length",) if settings.max_completion_length is None else (),
        **{**_shared(settings), "is_lora": str(is_lora).lower()},
        model=from_environment(model),
        refreshes=refreshes,
        without_ratio=str(settings.importance_ratio is False).lower(),
        all_linear="false" if is_listed else None,
        **{name: shlex.quote(line) for name, line in overrides.items()}
        | ({} if is_listed else {"targets": None}),
    )


def _scheduler(settings: Settings, warmup: int, last: int) -> str:
    """Schedulers of torch, one after the other, in the grammar of overrides."""
    rest = max(1, last - warmup)
    decays: dict[str, tuple[str, dict[str, float]]] = {
        "constant": ("ConstantLR", {"factor": 1.0, "total_iters": rest}),
        "linear": ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": rest}),
        "cosine": ("CosineAnnealingLR", {"T_max": rest}),
    }
    # torch allows no factor of 0 at the start.
    rise: tuple[str, dict[str, float]] = (
        "LinearLR",
        {"start_factor": 1e-8, "end_factor": 1.0, "total_iters": warmup},
    )
    parts = [
        f"{{name:torch.optim.lr_scheduler.{name},kwargs:"
        f"{{{','.join(f'{key}:{value}' for key, value in values.items())}}}}}"
        for name, values in ([rise] if warmup else []) + [decays[settings.schedule]]
    ]
    return f"[{','.join([*parts, f'{{milestones:[{warmup}]}}' if warmup else '{milestones:[]}'])}]"


def render_prime_rl(launch: Launch, model: str | None) -> str:
    """Write a configuration of prime-rl."""
    settings = launch.settings
    if launch.interval > 1:
        refuse("updates", "prime_rl_export", interval=launch.interval)
    if settings.advantage_scaling != "none":
        refuse("scaling", "prime_rl_export", scaling=settings.advantage_scaling)
    if settings.kl_coefficient:
        refuse("kl", "prime_rl_export", kl=settings.kl_coefficient)
    if settings.lag != int(settings.lag):
        refuse("lag", "prime_rl_export", lag=settings.lag)
    launch.check_corrected("prime-rl")
    # Its constant schedule has no warm-up; its linear one decays at the end where asked to.
    warmup, modules = settings.warmup_steps, settings.adapter_targets or "all-linear"
    kind = "linear" if settings.schedule == "constant" and warmup else settings.schedule
    ends = {"linear": launch.steps - warmup, "constant": 0 if warmup else None}
    is_lora, rank = settings.adapter == "lora", settings.adapter_rank or '"RANK"'
    text = fill_template(
        "prime_rl_export",
        launch,
        unknown=("max_prompt_length",) if settings.max_completion_length is None else (),
        **_shared(settings) | ({"adapter_rank": rank} if is_lora else {}),
        model=json.dumps(model) if model else '"MODEL"',
        lag_steps=int(settings.lag),
        train_gpus=launch.devices if (is_one := launch.devices < 8) else None,
        is_spread=None if is_one else "",  # a node has eight, and inference needs one
        optimizer="sgd" if settings.optimizer == "sgd" else "adamw",
        scheduler=kind,
        warmup=None if kind == "constant" else warmup,
        decay_steps=ends.get(settings.schedule),
        has_completion_limit=None if settings.max_completion_length is None else "",
        has_precision="" if settings.precision in ("bf16", "fp32") else None,
        targets=json.dumps(modules.split(",")) if is_lora and modules != "all-linear" else None,
    )
    return re.sub("\n{3,}", "\n\n", text)  # where a table has no line


def exports() -> dict[str, Export]:
    """Export by the name of its trainer."""
    renders = {
        "ms_swift_export": render_ms_swift,
        "nemo_rl_export": render_nemo_rl,
        "prime_rl_export": render_prime_rl,
    }
    return {
        (data := read_data(table))["name"]: Export(**data["export"], render=render)
        for table, render in renders.items()
    }
