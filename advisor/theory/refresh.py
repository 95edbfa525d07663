"""The refresh cycle: when training on K-step-old rollouts diverges.

Over one refresh (K optimizer steps on one snapshot's rollouts) the distance u from the plateau and
its velocity v transform linearly; the run is stable if and only if the spectral radius of that map
is below one. Derived in the EMA normalisation, stiffness k per optimizer step; extends the
threshold rule of arXiv:2606.30789 (``k K < 1``) to its exact limit, partial correction and lag.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from advisor.theory.arrays import FloatArray


def lag_in_cycles(lag: float, interval: int) -> int:
    """Age of the rollouts in whole refreshes, rounded up.

    Parameters
    ----------
    lag : float
        Age in optimizer steps.
    interval : int
        K, optimizer steps per refresh.

    Returns
    -------
    cycles : int
    """
    return math.ceil(lag / interval)


def cycle_map(
    stiffness: npt.ArrayLike,
    momentum: float,
    interval: int,
    uncorrected_share: npt.ArrayLike = 1.0,
    lag_cycles: int = 0,
) -> FloatArray:
    """Map over one refresh with a partly corrected, possibly lagging snapshot.

    Parameters
    ----------
    stiffness : array_like of shape (...)
        k, per optimizer step.
    momentum : float
        In [0, 1).
    interval : int
        K, optimizer steps per refresh.
    uncorrected_share : array_like of shape (...)
        s in [0, 1]; 1 without an importance ratio, 0 with an unclipped one.
    lag_cycles : int
        Age of the snapshot in whole refreshes.

    Returns
    -------
    matrix : ndarray of shape (..., 2 + lag_cycles, 2 + lag_cycles)
        Acts on (u, v, u one refresh ago, ..., u lag_cycles refreshes ago).
    """
    k, share = np.broadcast_arrays(
        np.asarray(stiffness, dtype=float), np.asarray(uncorrected_share, dtype=float)
    )
    pull = (1 - momentum) * k
    one = np.zeros((*k.shape, 3, 3))
    # One optimizer step on (u, v, snapshot): v' = mu v - pull (s w + (1 - s) u), u' = u + v'.
    one[..., 1, 0] = -pull * (1 - share)
    one[..., 1, 1] = momentum
    one[..., 1, 2] = -pull * share
    one[..., 0, :] = one[..., 1, :]
    one[..., 0, 0] += 1
    one[..., 2, 2] = 1
    with np.errstate(over="ignore", invalid="ignore"):
        cycle = np.linalg.matrix_power(one, interval)
    size = 2 + lag_cycles
    matrix = np.zeros((*k.shape, size, size))
    matrix[..., :2, :2] = cycle[..., :2, :2]
    snapshot = 0 if lag_cycles == 0 else size - 1
    matrix[..., :2, snapshot] += cycle[..., :2, 2]
    if lag_cycles:
        matrix[..., 2, 0] = 1
        for older in range(3, size):
            matrix[..., older, older - 1] = 1
    return matrix


def spectral_radius(matrix: FloatArray) -> FloatArray:
    """Largest absolute eigenvalue of each matrix.

    Parameters
    ----------
    matrix : ndarray of shape (..., n, n)

    Returns
    -------
    radius : ndarray of shape (...)
        ``inf`` for a matrix that overflowed: it belongs to a refresh that diverges.
    """
    finite = np.asarray(np.isfinite(matrix).all(axis=(-2, -1)))
    bounded = np.where(finite[..., None, None], np.clip(matrix, -1e100, 1e100), 0.0)
    return np.asarray(np.where(finite, _radius(bounded), np.inf))


def _radius(matrix: FloatArray) -> FloatArray:
    if matrix.shape[-1] == 2:
        half_trace = (matrix[..., 0, 0] + matrix[..., 1, 1]) / 2
        det = matrix[..., 0, 0] * matrix[..., 1, 1] - matrix[..., 0, 1] * matrix[..., 1, 0]
        gap = half_trace**2 - det
        real = np.abs(half_trace) + np.sqrt(np.maximum(gap, 0))
        return np.asarray(np.where(gap >= 0, real, np.sqrt(np.maximum(det, 0))))
    return np.asarray(np.abs(np.linalg.eigvals(matrix)).max(axis=-1))
