"""The refresh cycle: when training on K-step-old rollouts diverges.

Over one refresh (K optimizer steps on one snapshot's rollouts) the distance u from the plateau and
its velocity v transform linearly. The run is stable if and only if the spectral radius of that map
is below one. Derived in the EMA normalisation, stiffness k per optimizer step. It extends the
threshold rule of arXiv:2606.30789 (``k K < 1``) to its exact limit, partial correction and lag.
A run has modes of every stiffness up to its stiffest. So its limit is the first stiffness at which
the map stops contracting; stable windows beyond it do not help.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from advisor.theory.arrays import BoolArray, FloatArray

SHARES = np.linspace(0.0, 1.0, 17)
"""Uncorrected shares at which limits are tabulated; between them log limits are interpolated."""

LEAST, MOST, POINTS = 1e-4, 1e3, 240
"""Stiffness, per step, that is scanned geometrically: 7 % between neighbours."""

JUMP = 1.2
"""Ratio of neighbouring limits from which another window of instability opens between them: the
smaller of the two is then taken."""

HALVINGS, TOLERANCE = 20, 1e-10


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


def stiffness_limit(
    momentum: float, interval: int, uncorrected_share: npt.ArrayLike, lag: float = 0.0
) -> FloatArray:
    """First stiffness at which a refresh schedule diverges.

    Parameters
    ----------
    momentum : float
        In [0, 1).
    interval : int
        K, optimizer steps per refresh.
    uncorrected_share : array_like of shape (...)
        s in [0, 1].
    lag : float
        Optimizer steps, rounded up to whole refreshes.

    Returns
    -------
    limit : ndarray of shape (...)
        k per optimizer step; ``MOST`` where nothing up to it diverges. Within 2 % of a direct scan,
        but too small between two tabulated shares whose limits differ by more than ``JUMP``.
    """
    table = _limits(float(momentum), int(interval), lag_in_cycles(lag, interval))
    share = np.asarray(uncorrected_share, dtype=float)
    between = np.interp(share, SHARES, table)
    above = np.clip(np.searchsorted(SHARES, share), 1, SHARES.size - 1)
    least = np.minimum(table[above - 1], table[above])
    is_jump = np.abs(table[above] - table[above - 1]) > np.log(JUMP)
    # Where the share is tabulated its own limit holds, jump or not.
    return np.asarray(np.exp(np.where(is_jump & ~np.isin(share, SHARES), least, between)))


@lru_cache(maxsize=256)
def _limits(momentum: float, interval: int, cycles: int) -> FloatArray:
    """Log limit at every share of ``SHARES``."""

    def diverges(stiffness: FloatArray, shares: FloatArray) -> BoolArray:
        radius = spectral_radius(cycle_map(stiffness, momentum, interval, shares, cycles))
        return np.asarray(radius > 1 + TOLERANCE)

    grid = np.geomspace(LEAST, MOST, POINTS)
    beyond = diverges(
        np.broadcast_to(grid, (SHARES.size, POINTS)),
        np.broadcast_to(SHARES[:, None], (SHARES.size, POINTS)),
    )
    first = np.where(beyond.any(axis=1), beyond.argmax(axis=1), POINTS - 1)
    low, high = np.log(grid[np.maximum(first - 1, 0)]), np.log(grid[first])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        out = diverges(np.exp(middle), SHARES)
        low, high = np.where(out, low, middle), np.where(out, middle, high)
    return np.asarray(np.where(beyond.any(axis=1), low, np.log(MOST)))
