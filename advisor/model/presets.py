"""Which preset fits runs for which none was named, and where its evidence ends."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.model.priors.loader import Priors
from advisor.runs import PilotRun, Settings

SMALL = 1e7
"""Parameters below which a model is small: the evidence of that preset ends there."""

DECADE = 10.0
"""Factor beyond the sizes of the evidence, or of the pilots, from which a model is far away."""


def preset_for(runs: Sequence[PilotRun]) -> tuple[str, str]:
    """Preset whose evidence the runs lie in, and why."""
    if runs and all(run.hyperparameters.adapter == "lora" for run in runs):
        return "lora", "every run trains an adapter"
    if all_small(runs):
        return "small_models", f"every model has fewer than {SMALL:.0e} parameters"
    return "full_finetuning", "neither adapters nor small models alone"


def all_small(runs: Sequence[PilotRun]) -> bool:
    """Whether every one of some runs trains a small model."""
    sizes = [run.parameters for run in runs]
    return bool(sizes) and all(size is not None and size < SMALL for size in sizes)


def outside_evidence(
    preset: Priors, settings: Settings, parameters: float, piloted: Sequence[float]
) -> str | None:
    """Say in what a target lies outside of what shaped a preset and of what was piloted."""
    domain = preset.domain
    known = ("adamw",) if domain is None else domain.optimizers
    if settings.optimizer not in known:
        rests = "every preset rests" if domain is None else f"preset '{preset.name}' rests"
        return f"the optimizer is {settings.optimizer.upper()}, and {rests} on AdamW"
    if domain is not None:
        if settings.adapter not in domain.adapters:
            return f"preset '{preset.name}' rests on adapter '{domain.adapters[0]}' alone"
        if not domain.least_parameters <= parameters <= domain.most_parameters:
            return (
                f"preset '{preset.name}' rests on models of {domain.least_parameters:.0e} to "
                f"{domain.most_parameters:.0e} parameters"
            )
    if not min(piloted) / DECADE <= parameters <= max(piloted) * DECADE:
        return "the model is more than ten times larger or smaller than any that was piloted"
    return None
