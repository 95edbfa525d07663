"""verl and its forks: Logic-RL, verl-agent, rLLM, EasyR1."""

from __future__ import annotations

import shlex

from advisor.runs.trainers.export import Launch, fill_template, from_environment, refuse
from advisor.runs.trainers.registry import read_trainer
from advisor.runs.trainers.verl import console
from advisor.runs.trainers.verl.settings import OPTIM, derive, observe


def render(launch: Launch, model: str | None) -> str:
    """Write the overrides as a script."""
    launch.check_synchronous("verl")
    settings = launch.settings
    if settings.schedule not in ("constant", "cosine"):
        refuse("schedule", "verl", schedule=settings.schedule)
    moments = f"betas=[{settings.momentum!r},0.999]"  # verl's default; both are one setting
    if settings.optimizer == "sgd":
        moments = f"override_optimizer_config={{momentum:{settings.momentum!r}}}"
    is_lora, modules = settings.adapter == "lora", settings.adapter_targets
    named = modules if modules == "all-linear" else f"[{modules}]"
    targets = shlex.quote(f"actor_rollout_ref.model.target_modules={named}")
    return fill_template(
        "verl",
        launch,
        model=from_environment(model),
        # Training stops at these or at its epochs, and an epoch has at least one batch.
        refreshes=launch.refreshes("verl"),
        warmup=launch.in_refreshes("warmup", settings.warmup_steps, "verl"),
        moments=shlex.quote(OPTIM + moments),
        by_spread=settings.advantage_scaling == "group",
        has_kl=bool(settings.kl_coefficient),
        kl_of_loss=settings.kl_coefficient or None,
        loss_mode="gpg" if settings.importance_ratio is False else "vanilla",
        targets=targets if is_lora and modules is not None else None,
        # A base model under LoRA is never sent to vLLM, so that must load it itself.
        load_format="safetensors" if is_lora else None,
    )


TRAINER = read_trainer(
    "verl",
    readers=(console.JSONL_READER, console.READER),
    export=render,
    derive=derive,
    observe=observe,
)
