r"""Meta-analysis of past posteriors: from what each says of a parameter to a new study's prior.

Each past posterior j gives a mean m and a sd s that already contain the prior N(m0, s0^2) it was
fitted under. Three steps turn them into a prior for a new study:

1. **Divide the prior out.** With normal prior and posterior the data alone said
   ``1/e^2 = 1/s^2 - 1/s0^2`` and ``y = e^2 (m/s^2 - m0/s0^2)``. A posterior that is not narrower
   than its prior by more than Monte Carlo error said nothing and takes no part.
2. **Meta-analysis.** The base entry N(b, B^2) speaks about a new study, so it holds both what is
   not known of the mean over studies and how studies differ: ``mu ~ N(b, (1 - share) B^2)`` and
   ``theta_j ~ N(mu, tau^2)`` with ``E[tau^2] = share B^2``. The spread tau between studies has a
   scaled inverse chi-square prior that weighs as much as ``PSEUDO_STUDIES`` studies, and is
   integrated out on a grid.
3. **Predict.** The learned entry has the mean and sd of theta of a new study:
   ``sd^2 = E[tau^2 + Var(mu)] + Var(E[mu])``, over the posterior of tau.

Without a study this is the base entry exactly; one study, however precise and however close to
the base, leaves half of its sd (``STUDY_SHARE``), one task three quarters (``TASK_SHARE``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.model import NormalPrior
from advisor.theory import FloatArray

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
