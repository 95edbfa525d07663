"""Figure: plateau, stiffness and curvature exponent, posterior against prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from advisor.findings.prior_groups import prior_groups
from advisor.model.compat import density
from advisor.model.posterior import INTERVAL, MIN_SIZES, Posterior
from advisor.reporting.names import left_out_note, scientific, shorten
from advisor.theory.arrays import FloatArray

MAX_GROUPS = 10
PRIOR_DRAWS = 4000
PRIOR_REACH = 0.9
"""Central share of the prior that the axes keep in view."""


@dataclass(frozen=True)
class Ridge:
    """Posterior and prior density of one quantity.

    Attributes
    ----------
    label : str
    value, height, prior_value, prior_height : ndarray of shape (points,)
        Grids, and densities per unit of the axis (per decade on a log axis).
    lower, median, upper : float
        Central 80 % interval of the posterior.
    prior_lower, prior_upper : float
        Central 90 % interval of the prior.
    """

    label: str
    value: FloatArray
    height: FloatArray
    prior_value: FloatArray
    prior_height: FloatArray
    lower: float
    median: float
    upper: float
    prior_lower: float
    prior_upper: float

    @property
    def span(self) -> str:
        """Median and interval, to the digits that the interval's width makes worth reading."""
        width = max(self.upper - self.lower, 1e-12)
        digits = max(0, 1 - math.floor(math.log10(width)))
        return f"{self.median:.{digits}f} [{self.lower:.{digits}f}, {self.upper:.{digits}f}]"


@dataclass(frozen=True)
class Posteriors:
    """The whole figure; one ridge per (task, model), and the exponent.

    Attributes
    ----------
    plateau, stiffness : tuple of Ridge
        In reward units; per optimizer step, at the reference configuration.
    curvature : Ridge
        Exponent c of the model size in the stiffness.
    sizes : int
        Distinct model sizes among the pilots.
    reference : str
        Configuration at which plateau and stiffness are stated.
    left_out : int
        (task, model) pairs that are not drawn.
    """

    plateau: tuple[Ridge, ...]
    stiffness: tuple[Ridge, ...]
    curvature: Ridge
    sizes: int
    reference: str
    left_out: int

    @property
    def is_prior_dominated(self) -> bool:
        """Whether there are too few model sizes for the data to speak about the exponent."""
        return self.sizes < MIN_SIZES

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        pairs = [
            f"{plateau.label}: plateau {plateau.span}, stiffness {stiffness.span} per step."
            for plateau, stiffness in zip(self.plateau, self.stiffness, strict=True)
        ]
        curvature = f"Curvature exponent {self.curvature.span}" + (
            ", prior-dominated." if self.is_prior_dominated else "."
        )
        return " ".join(
            [f"Posterior densities against their priors, {self.reference}.", *pairs, curvature]
        )

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        return left_out_note(self.left_out)


def posteriors_info(posterior: Posterior) -> Posteriors:
    """Collect what the figure shows.

    Parameters
    ----------
    posterior : Posterior

    Returns
    -------
    info : Posteriors
        The prior is simulated from the posterior's own preset with a fixed seed.
    """
    meta = posterior.meta
    runs = [sum((run.task, run.model) == pair for run in meta.runs) for pair in meta.groups]
    kept = sorted(sorted(range(len(runs)), key=lambda g: -runs[g])[:MAX_GROUPS])
    prior = prior_groups(meta, PRIOR_DRAWS)
    labels = [" on ".join(map(shorten, meta.groups[g][::-1])) for g in kept]
    plateau, stiffness = posterior.flat("plateau"), posterior.flat("stiffness")
    return Posteriors(
        plateau=tuple(
            _ridge(label, plateau[:, g], prior.plateau[:, g])
            for label, g in zip(labels, kept, strict=True)
        ),
        stiffness=tuple(
            _ridge(label, stiffness[:, g], prior.stiffness[:, g], log=True)
            for label, g in zip(labels, kept, strict=True)
        ),
        curvature=_ridge("", posterior.flat("curvature_exponent"), prior.curvature),
        sizes=posterior.sizes,
        reference=(
            f"at learning rate {scientific(meta.reference.learning_rate)}, "
            f"group size {meta.reference.group_size:.3g}"
        ),
        left_out=len(runs) - len(kept),
    )


def _ridge(label: str, draws: FloatArray, prior: FloatArray, *, log: bool = False) -> Ridge:
    ends = [(1 - INTERVAL) / 2, 0.5, (1 + INTERVAL) / 2]
    lower, median, upper = np.quantile(draws, ends)
    reach = np.quantile(prior, [(1 - PRIOR_REACH) / 2, (1 + PRIOR_REACH) / 2])
    value, height = density(np.log10(draws) if log else draws)
    prior_value, prior_height = density(np.log10(prior) if log else prior, 512)
    return Ridge(
        label,
        10**value if log else value,
        height,
        10**prior_value if log else prior_value,
        prior_height,
        *map(float, (lower, median, upper, *reach)),
    )
