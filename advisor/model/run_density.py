"""Density of the train rewards of one run: an AR(1) residual round its curve, heavy tails.

What a curve leaves of a run's rewards is a slow residual, correlated from bin to bin, besides the
sampling noise of each bin. A run's residuals are jointly Student t, so an odd run does not drag the
others. The residual is filtered bin by bin, which gives the density of each bin given those before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from advisor.theory.arrays import FloatArray, namespace

DEGREES = 5.0
"""Degrees of freedom of a run's residuals, and of an evaluation's."""

LEAST_VARIANCE = 1e-6
"""Variance of a bin below which no noise is believed, in squared shares of the reward range."""


def bin_surprises(
    value: Any, mean: Any, white: Any, residual: Any, persistence: Any
) -> tuple[list[Any], list[Any]]:
    """Difference of each bin from its forecast by the bins before, and its variance.

    Parameters
    ----------
    value, mean, white, persistence : array_like of shape (..., bins)
        Rewards, curve, variance of the sampling noise, and correlation of the residual with that
        of the bin before (0 at the first).
    residual : array_like of shape (...)
        Stationary variance of the residual.

    Returns
    -------
    surprise, variance : list of array_like of shape (...), one entry per bin
        For normal residuals; of Student t ones the variance holds up to a common factor.
    """
    surprises, variances = [], []
    filtered, uncertain = 0.0, 0.0
    for at in range(np.shape(value)[-1] if isinstance(value, np.ndarray) else value.type.shape[-1]):
        kept = persistence[..., at]
        before = kept**2 * uncertain + residual * (1 - kept**2)
        variance = before + white[..., at]
        surprise = value[..., at] - mean[..., at] - kept * filtered
        filtered = kept * filtered + before / variance * surprise
        uncertain = before * white[..., at] / variance
        surprises.append(surprise)
        variances.append(variance)
    return surprises, variances


def run_log_density(
    value: Any, mean: Any, white: Any, residual: Any, persistence: Any, is_logged: Any
) -> Any:
    """Joint log density of the bins of each run.

    Parameters
    ----------
    value, mean, white, residual, persistence
        As for :func:`bin_surprises`.
    is_logged : array_like of shape (..., bins)
        1 for the bins that a run has, which come first, else 0.

    Returns
    -------
    density : array_like of shape (...)
        Multivariate Student t with ``DEGREES`` degrees of freedom.
    """
    xp = namespace(value, mean, white, residual)
    surprises, variances = bin_surprises(value, mean, white, residual, persistence)
    squares, log_determinant = 0.0, 0.0
    for at, (surprise, variance) in enumerate(zip(surprises, variances, strict=True)):
        squares += is_logged[..., at] * surprise**2 / variance
        log_determinant += is_logged[..., at] * xp.log(variance)
    bins = is_logged.sum(axis=-1)
    log_gamma = gammaln if xp is np else xp.gammaln
    return (
        log_gamma((DEGREES + bins) / 2)
        - float(gammaln(DEGREES / 2))
        - bins / 2 * float(np.log(DEGREES * np.pi))
        - log_determinant / 2
        - (DEGREES + bins) / 2 * xp.log1p(squares / DEGREES)
    )


def draw_run(
    mean: FloatArray,
    white: FloatArray,
    residual: FloatArray,
    persistence: FloatArray,
    is_logged: FloatArray,
    rng: np.random.Generator,
    size: Any = None,
) -> FloatArray:
    """Draw the bins of runs from the density of :func:`run_log_density`.

    Parameters
    ----------
    mean, white, residual, persistence, is_logged
        As for :func:`run_log_density`; broadcast against each other.
    rng : numpy.random.Generator
    size : tuple of int, optional
        Batch shape (...).

    Returns
    -------
    value : ndarray of shape (..., bins)
        0 where a run has no such bin.
    """
    residual = np.asarray(residual)
    shape = np.broadcast_shapes(
        np.shape(mean), np.shape(white), (*residual.shape, 1), np.shape(persistence)
    )
    if size is not None:
        shape = (*np.broadcast_shapes(tuple(size), shape[:-1]), shape[-1])
    slow = np.zeros(shape)
    normal = rng.standard_normal((2, *shape))
    for at in range(shape[-1]):
        kept = np.broadcast_to(persistence, shape)[..., at]
        before = slow[..., at - 1] if at else 0.0
        fresh = np.sqrt(residual * (1 - kept**2)) * normal[0, ..., at]
        slow[..., at] = kept * before + fresh
    heavy = np.sqrt(DEGREES / rng.chisquare(DEGREES, shape[:-1]))[..., None]
    drawn = mean + heavy * (slow + np.sqrt(white) * normal[1])
    return np.asarray(np.where(is_logged > 0, drawn, 0.0))
