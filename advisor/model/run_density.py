"""Density of the train rewards of one run: an AR(1) residual round its curve, heavy tails.

What a curve leaves of a run's rewards is a slow residual, correlated from bin to bin, besides the
sampling noise of each bin. A run's residuals are jointly Student t, so that an odd run does not
drag the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.model.cohort import MAX_BINS
from advisor.model.equations import DEGREES
from advisor.theory import FloatArray, namespace


def covariance(white: Any, residual: Any, correlation: Any) -> Any:
    """Covariance of the bins of a run, up to the common factor of the Student t."""
    diagonal = white[..., None] * np.eye(MAX_BINS)
    return residual[..., None, None] * correlation + diagonal


def run_log_density(
    value: Any, mean: Any, white: Any, residual: Any, correlation: Any, is_logged: Any
) -> Any:
    """Joint log density of the bins of each run."""
    return bin_log_densities(value, mean, white, residual, correlation, is_logged).sum(axis=-1)


def bin_log_densities(
    value: Any, mean: Any, white: Any, residual: Any, correlation: Any, is_logged: Any
) -> Any:
    """Log density of each bin given those before it in its run; they sum to the joint one."""
    from scipy.special import gammaln

    xp = namespace(value, mean, white, residual)
    root = xp.linalg.cholesky(covariance(white, residual, correlation))
    surprise = is_logged * _forward(root, value - mean)
    before = DEGREES + np.arange(MAX_BINS)
    squares = xp.cumsum(surprise**2, axis=-1)
    earlier = squares - surprise**2
    log_sd = xp.log(xp.diagonal(root, axis1=-2, axis2=-1))
    constant = gammaln((before + 1) / 2) - gammaln(before / 2) - np.log(DEGREES * np.pi) / 2
    density = (
        constant
        - log_sd
        + before / 2 * xp.log1p(earlier / DEGREES)
        - (before + 1) / 2 * xp.log1p(squares / DEGREES)
    )
    return is_logged * density


def one_step_ahead(
    value: FloatArray,
    mean: FloatArray,
    white: FloatArray,
    residual: FloatArray,
    correlation: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predictive Student t of each bin given those before it in its run."""
    root = np.linalg.cholesky(covariance(white, residual, correlation))
    surprise = _forward(root, value - mean)
    spread = np.diagonal(root, axis1=-2, axis2=-1)
    degrees: FloatArray = DEGREES + np.arange(MAX_BINS, dtype=float)
    earlier = np.cumsum(surprise**2, axis=-1) - surprise**2
    location = value - spread * surprise
    return (
        np.asarray(location),
        np.asarray(spread * np.sqrt((DEGREES + earlier) / degrees)),
        degrees,
    )


def _forward(root: Any, vector: Any) -> Any:
    """Solve ``root x = vector`` for lower triangles, batches first."""
    if namespace(root, vector) is np:
        out = np.zeros(np.broadcast_shapes(root.shape[:-1], vector.shape))
        for at in range(root.shape[-1]):
            known = np.einsum("...i,...i->...", root[..., at, :at], out[..., :at])
            out[..., at] = (vector[..., at] - known) / root[..., at, at]
        return out
    from pytensor.tensor.linalg import solve_triangular

    return solve_triangular(root, vector, lower=True, b_ndim=1)


def draw_run(
    mean: FloatArray,
    white: FloatArray,
    residual: FloatArray,
    correlation: FloatArray,
    is_logged: FloatArray,
    rng: np.random.Generator,
    size: Any = None,
) -> FloatArray:
    """Draw the bins of runs from the density of :func:`run_log_density`."""
    root = np.linalg.cholesky(covariance(white, np.asarray(residual), np.asarray(correlation)))
    shape = np.broadcast_shapes(np.shape(mean), root.shape[:-1])
    if size is not None:
        shape = (*np.broadcast_shapes(tuple(size), shape[:-1]), shape[-1])
    normal = (root @ rng.standard_normal(shape)[..., None])[..., 0]
    heavy = np.sqrt(DEGREES / rng.chisquare(DEGREES, shape[:-1]))[..., None]
    return np.asarray(np.where(is_logged > 0, mean + heavy * normal, 0.0))
