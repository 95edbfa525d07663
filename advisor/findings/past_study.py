"""What learning needs of one past posterior: a page of numbers in place of its draws.

A thousand of them fit where a dozen posteriors do, and they travel as JSON without losing a digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor.engine import digest_of
from advisor.findings.meta_analysis import without_prior
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
