"""A preset as a table: every entry with its central 80 % interval, read on its natural scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from advisor.model.priors.loader import HalfNormalPrior, NormalPrior, Priors

INTERVAL = 0.8
"""Probability of the central interval of an entry."""

LOG_LEVELS = ("plateau_loss_level", "hazard_level")
"""Levels of the laws, which are linear in logs although their names do not say so."""


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
    return [_row(name, entry) for name, entry in prior_entries(priors).items()]


def prior_entries(priors: Priors) -> dict[str, NormalPrior | HalfNormalPrior]:
    """Distributions of a preset by name."""
    values = {name: getattr(priors, name) for name in type(priors).model_fields}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, NormalPrior | HalfNormalPrior)
    }


def natural_scale(name: str) -> tuple[str, Callable[[Any], Any]]:
    """How an entry is read: a name that ends in ``logit`` or ``log_odds`` is a share."""
    if name.endswith(("logit", "log_odds")):
        return "logistic", lambda value: 0.5 * (1 + math.tanh(0.5 * value))
    if name.startswith("log_") or name in LOG_LEVELS:
        return "exp", math.exp
    return "as is", float


def _row(name: str, entry: NormalPrior | HalfNormalPrior) -> PriorRow:
    tail = (1 - INTERVAL) / 2
    standard = NormalDist()
    if isinstance(entry, HalfNormalPrior):
        mean = None
        values = [entry.sd * standard.inv_cdf((1 + p) / 2) for p in (tail, 0.5, 1 - tail)]
    else:
        mean = entry.mean
        values = [mean + entry.sd * standard.inv_cdf(p) for p in (tail, 0.5, 1 - tail)]
    scale, to_natural = natural_scale(name)
    lower, median, upper = (to_natural(value) for value in values)
    return PriorRow(name, mean, entry.sd, scale, lower, median, upper, entry.source)
