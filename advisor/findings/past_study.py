"""What learning needs of one past posterior: a page of numbers in place of its draws.

A thousand of them fit where a dozen posteriors do, and they travel as JSON without losing a digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor.common import digest_of
from advisor.model import (
    POPULATION,
    NormalPrior,
    Posterior,
    Priors,
    Reference,
    convergence,
    prior_entries,
)
from advisor.theory import FloatArray


class PastRun(BaseModel):
    """A run of a past study; ``fingerprint`` is empty where it cannot be known again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    fingerprint: str
    parameters: float
    adapter: str
    optimizer: str


class PastStudy(BaseModel):
    """What the data of one study said, its prior divided out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    preset: str
    preset_digest: str
    tasks: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]
    runs: tuple[PastRun, ...]
    reference: Reference
    said: dict[str, tuple[tuple[float | None, ...], tuple[float | None, ...]]]


def past_study(posterior: Posterior) -> PastStudy:
    """Sum up a posterior for learning."""
    meta = posterior.meta
    said = {}
    names = {name.replace(".", "_"): name for name in POPULATION}
    for entry, prior in prior_entries(meta.priors).items():
        parameter = names.get(entry, entry)
        if not isinstance(prior, NormalPrior) or parameter not in posterior.draws:
            continue
        value, error = data_alone(posterior, parameter, getattr(meta.placed_priors, entry))
        said[entry] = _finite(value), _finite(error)
    return PastStudy(
        data=meta.provenance.data_sha256,
        preset=meta.priors.name,
        preset_digest=preset_digest(meta.priors),
        tasks=meta.tasks,
        groups=meta.groups,
        runs=tuple(
            PastRun(
                id=run.id,
                fingerprint=run.fingerprint,
                parameters=run.parameters,
                adapter=str(run.settings.adapter),
                optimizer=str(run.settings.optimizer),
            )
            for run in meta.runs
        ),
        reference=meta.reference,
        said=said,
    )


def data_alone(
    posterior: Posterior, parameter: str, prior: NormalPrior
) -> tuple[FloatArray, FloatArray]:
    """Estimates and standard errors of a parameter with its prior divided out."""
    draws = posterior.as_in_priors(parameter)
    draws = draws.reshape(*posterior.draws[parameter].shape[:2], -1)
    mean = draws.mean(axis=(0, 1))
    squares = (draws - mean) ** 2
    # Each variance by its own draws: the worst parameter of a fit mixes ten times as slowly as one
    # that the data say little about, and would silence it.
    effective_draws = convergence({parameter: squares})[parameter][1]
    return without_prior(mean, squares.mean(axis=(0, 1)), prior, effective_draws)


def preset_digest(priors: Priors) -> str:
    """Hash of all of a preset."""
    return digest_of(priors.model_dump(mode="json"))


def _finite(values: Any) -> tuple[float | None, ...]:
    """Numbers, and None for those that are not: JSON has no NaN."""
    return tuple(float(value) if np.isfinite(value) else None for value in values)


STUDY_SHARE = 0.16
"""Share of the variance of a base entry that is spread between studies, the rest being doubt about
their mean: with this share one perfect study that agrees with the base leaves half of its sd."""

TASK_SHARE = 0.5
"""The same for levels of tasks, of which one says little about the next."""

PSEUDO_STUDIES = 4
"""Degrees of freedom of the prior of the spread: with as many studies, half of what is known of
the spread is theirs."""

MONTE_CARLO_ERRORS = 3.0
"""Standard errors of a posterior's variance by which it must be below that of its prior."""

_GRID = np.linspace(np.log(1e-3), np.log(1e3), 600)
"""Log of the spread between studies over its prior scale."""


@dataclass(frozen=True)
class Estimates:
    """What the data of past studies said about one entry, the prior divided out."""

    value: FloatArray
    error: FloatArray
    weight: FloatArray
    studies: tuple[int, ...]


def without_prior(
    mean: FloatArray, variance: FloatArray, prior: NormalPrior, effective_draws: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """What the data alone said: estimates and standard errors."""
    ratio = variance / prior.sd**2
    is_informed = 1 - ratio > MONTE_CARLO_ERRORS * np.sqrt(2 / effective_draws)
    left = np.where(is_informed, 1 - ratio, np.nan)
    return (mean - ratio * prior.mean) / left, np.sqrt(variance / left)


def new_study(found: Estimates, base: NormalPrior, share: float) -> tuple[float, float, float]:
    """Predict the parameter of a study that has not been run.

    Normal-normal hierarchical model with the mean over studies integrated in closed form and the
    spread on a grid (Roever et al., arXiv:2007.08352, for spreads from few studies). A weight w
    raises the likelihood of a unit to the power w.
    """
    expected = share * base.sd**2
    doubt = base.sd**2 - expected
    spread = expected * np.exp(2 * _GRID)
    # The scale that makes the mean of an inverse chi-square variance the expected one.
    scale = expected * (PSEUDO_STUDIES - 2) / PSEUDO_STUDIES
    total = spread[:, None] + found.error**2
    precision = 1 / doubt + (found.weight / total).sum(axis=1)
    center = (base.mean / doubt + (found.weight * found.value / total).sum(axis=1)) / precision
    misfit = (found.weight * (found.value - center[:, None]) ** 2 / total).sum(axis=1)
    log_density = (
        -PSEUDO_STUDIES * (_GRID + scale / (2 * spread))
        - 0.5 * (found.weight * np.log(total)).sum(axis=1)
        - 0.5 * np.log(precision)
        - 0.5 * (misfit + (center - base.mean) ** 2 / doubt)
    )
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = density @ center
    variance = density @ (spread + 1 / precision + (center - mean) ** 2)
    return float(mean), float(np.sqrt(variance)), float(np.sqrt(density @ spread))
