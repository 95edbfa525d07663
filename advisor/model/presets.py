"""Presets: which one suits some runs, where its evidence ends, and one as a table.

It states of every entry its central 80 % interval, read on its natural scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from advisor.common import counted
from advisor.model.parameters import PARAMETERS
from advisor.model.posterior import INTERVAL
from advisor.model.priors import HalfNormalPrior, NormalPrior, Priors
from advisor.runs import PilotRun, Settings

SMALL = 1e7  # Parameters below which a model is small: the evidence of that preset ends there

DECADE = 10.0
"""Factor beyond the sizes of the evidence, or of the pilots, from which a model is far away."""


def preset_for(runs: Sequence[PilotRun]) -> tuple[str, str]:
    """Preset whose evidence the runs lie in, or most of those that state an adapter, and why."""
    silent = [f"'{run.id}'" for run in runs if run.hyperparameters.adapter is None]
    lora = [run for run in runs if run.hyperparameters.adapter == "lora"]
    full = len(runs) - len(silent) - len(lora)
    which = f"LoRA is stated by {len(lora)} of {counted(len(runs), 'run')}"
    which += f", full fine-tuning by {full}: the runs disagree" if full else ""
    more = f" and {len(silent) - 3} more" if len(silent) > 3 else ""
    which += f"; no adapter is stated by {', '.join(silent[:3])}{more}" if silent else ""
    if len(lora) > full:
        return "lora", which
    if all_small(run.parameters for run in runs):
        why = f"every model has fewer than {SMALL:.0e} parameters"
        return "small_models", f"{why}; {which}" if lora else why
    return "full_finetuning", which if lora else "neither adapters nor small models alone"


def all_small(parameters: Iterable[float | None]) -> bool:
    """Whether models of these sizes are small, every one."""
    sizes = list(parameters)
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


SCALES = {parameter.entry: parameter.scale for parameter in PARAMETERS}


@dataclass(frozen=True)
class PriorRow:
    """One entry of a preset."""

    name: str
    mean: float | None
    sd: float
    scale: str
    lower: float
    median: float
    upper: float
    source: str


def prior_table(priors: Priors) -> list[PriorRow]:
    """Every entry of a preset, in the order of the preset."""
    tail, rows = (1 - INTERVAL) / 2, []
    for name, entry in prior_entries(priors).items():
        shares, mean = [tail, 0.5, 1 - tail], getattr(entry, "mean", None)
        if mean is None:
            shares = [(1 + share) / 2 for share in shares]  # of the half that is not negative
        scale, to_natural = natural_scale(name)
        lower, median, upper = (
            to_natural((mean or 0.0) + entry.sd * NormalDist().inv_cdf(share)) for share in shares
        )
        rows.append(PriorRow(name, mean, entry.sd, scale, lower, median, upper, entry.source))
    return rows


def prior_entries(priors: Priors) -> dict[str, NormalPrior | HalfNormalPrior]:
    """Distributions of a preset by name."""
    values = {name: getattr(priors, name) for name in type(priors).model_fields}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, NormalPrior | HalfNormalPrior)
    }


def natural_scale(name: str) -> tuple[str, Callable[[Any], Any]]:
    """How an entry is read; what is no parameter of the table is a logarithm."""
    scale = SCALES.get(name, "exp")
    if scale == "logistic":
        return scale, lambda value: 0.5 * (1 + math.tanh(0.5 * value))
    return scale, math.exp if scale == "exp" else float
