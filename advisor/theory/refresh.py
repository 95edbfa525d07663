"""The refresh cycle: when training on K-step-old rollouts diverges.

Over one refresh (K optimizer steps on one snapshot's rollouts) the distance u from the plateau and
its velocity v transform linearly; the run is stable if and only if the spectral radius of that map
is below one. Derived in the EMA normalisation, stiffness k per optimizer step; extends the
threshold rule of arXiv:2606.30789 (``k K < 1``) to its exact limit, partial correction and lag.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.theory.arrays import FloatArray


def _geometric(momentum: float, interval: int) -> float:
    """S1 = sum of momentum^j, j = 1..K."""
    return momentum * (1 - momentum**interval) / (1 - momentum)


def held_map(stiffness: float, momentum: float, interval: int) -> FloatArray:
    """Map of (u, v) over one refresh when the gradient is held at the snapshot.

    Parameters
    ----------
    stiffness : float
        k, per optimizer step.
    momentum : float
        In [0, 1).
    interval : int
        K, optimizer steps per refresh.

    Returns
    -------
    matrix : ndarray of shape (2, 2)
        ``[[1 - k (K - S1), S1], [-k (1 - momentum^K), momentum^K]]``.
    """
    s1, power = _geometric(momentum, interval), momentum**interval
    return np.array([[1 - stiffness * (interval - s1), s1], [-stiffness * (1 - power), power]])


def flip_limit(momentum: float, interval: int) -> float:
    """Stiffness at which a multiplier leaves through -1 (period-2 oscillation over refreshes)."""
    power = momentum**interval
    denominator = interval * (1 + power) - 2 * _geometric(momentum, interval)
    return 2 * (1 + power) / denominator if denominator > 0 else math.inf


def neimark_sacker_limit(momentum: float, interval: int) -> float:
    """Stiffness at which a complex pair leaves the unit circle (growing slow oscillation)."""
    if momentum == 0 or interval == 1:
        return math.inf
    power = momentum**interval
    denominator = _geometric(momentum, interval) - interval * power
    return (1 - power) / denominator if denominator > 0 else math.inf


def held_limit(momentum: float, interval: int) -> float:
    """Largest stable stiffness, per step, for a snapshot held K steps: the nearer of both limits.

    Examples
    --------
    >>> held_limit(0.0, 8) * 8
    2.0
    """
    return min(flip_limit(momentum, interval), neimark_sacker_limit(momentum, interval))


def lag_in_cycles(lag: float, interval: int) -> int:
    """Whole refreshes by which the rollouts are old: ``lag`` optimizer steps, rounded up."""
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
    """Largest |eigenvalue| of each matrix, shape (..., n, n) -> (...).

    A matrix that overflowed belongs to a refresh that diverges: its radius is ``inf``.
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


def stability_margin(
    stiffness: npt.ArrayLike,
    momentum: float,
    interval: int,
    *,
    lag: float = 0.0,
    uncorrected_share: npt.ArrayLike = 1.0,
    stiffness_ratio: npt.ArrayLike = 1.0,
) -> FloatArray:
    """Distance of the refresh map from instability; negative means it diverges.

    Parameters
    ----------
    stiffness : array_like of shape (...)
        k of the slow, reward-weighted mode that a reward curve shows, per optimizer step.
    momentum, interval, lag
        Momentum, K and lag in optimizer steps (rounded up to whole refreshes).
    uncorrected_share : array_like of shape (...)
        s in [0, 1].
    stiffness_ratio : array_like of shape (...)
        Stiffest mode over fitted mode, >= 1: the stiffest mode sets stability.

    Returns
    -------
    margin : ndarray of shape (...)
        ``1 - spectral radius``.
    """
    k = np.asarray(stiffness, dtype=float) * np.asarray(stiffness_ratio, dtype=float)
    cycles = lag_in_cycles(lag, interval)
    return 1 - spectral_radius(cycle_map(k, momentum, interval, uncorrected_share, cycles))


def paper_margin(stiffness: npt.ArrayLike, interval: int) -> FloatArray:
    """``1 - k K``: the threshold rule of arXiv:2606.30789, EMA normalisation; negative = beyond."""
    return 1 - np.asarray(stiffness, dtype=float) * interval


def sufficient_margin(
    stiffness: npt.ArrayLike, interval: npt.ArrayLike, lag: npt.ArrayLike = 0.0
) -> FloatArray:
    """``1 - k (lag + K/2)``: positive is sufficient for stability whatever the schedule.

    Checked on momentum in [0, .99], K <= 64 and 0 to 4 cycles of lag. If the lag is no multiple of
    K, :func:`stability_margin` rounds it up and can be negative where this is positive.
    """
    age = np.asarray(lag, dtype=float) + np.asarray(interval, dtype=float) / 2
    return np.asarray(1 - np.asarray(stiffness, dtype=float) * age)


def delay_radius(stiffness: float, momentum: float, delay: int) -> float:
    """Spectral radius when every gradient is exactly ``delay`` optimizer steps old.

    Parameters
    ----------
    stiffness : float
        k, per step.
    momentum : float
        In [0, 1).
    delay : int
        Age in optimizer steps.
    """
    polynomial = np.zeros(max(2, delay + 1) + 1)
    polynomial[0] = 1
    polynomial[1] -= 1 + momentum
    polynomial[2] += momentum
    polynomial[delay + 1] += (1 - momentum) * stiffness
    return float(np.abs(np.roots(polynomial)).max())


def critical_stiffness(
    radius: Callable[[float], float], *, low: float = 1e-8, high: float = 1e3, points: int = 2000
) -> float:
    """Smallest stiffness at which ``radius(stiffness)`` exceeds one.

    Parameters
    ----------
    radius : callable
        Spectral radius as a function of the stiffness, per step.
    low, high : float
        Range that is scanned, geometrically, before bisection.
    points : int
        Points of that scan: a window of instability narrower than their spacing is missed.

    Returns
    -------
    stiffness : float
        ``inf`` where the whole range is stable.
    """
    tolerance = 1e-10
    grid = np.geomspace(low, high, points)
    for below, above in itertools.pairwise(grid):
        if radius(float(above)) > 1 + tolerance:
            lo, hi = float(below), float(above)
            for _ in range(80):
                middle = (lo + hi) / 2
                lo, hi = (lo, middle) if radius(middle) > 1 + tolerance else (middle, hi)
            return (lo + hi) / 2
    return math.inf


def partial_correction_limit(interval: int, uncorrected_share: float) -> float:
    """Largest stable stiffness without momentum when a share s > 1/2 of the gradient is stale.

    ``k = (1 - (2s - 1)^{1/K}) / (1 - s)``; without momentum there is no refresh threshold for
    s <= 1/2 (only the on-policy bound on the fresh part remains), so ``inf`` is returned there.
    """
    if uncorrected_share <= 0.5:
        return math.inf
    if uncorrected_share == 1:
        return 2.0 / interval
    fresh = 1 - uncorrected_share
    return float((1 - (2 * uncorrected_share - 1) ** (1 / interval)) / fresh)


def schedule_radius(
    momentum: float, interval: int, *, uncorrected_share: float = 1.0, lag_cycles: int = 0
) -> Callable[[float], float]:
    """Spectral radius of one refresh schedule as a function of stiffness, for the scan above."""

    def radius(stiffness: float) -> float:
        matrix: Any = cycle_map(stiffness, momentum, interval, uncorrected_share, lag_cycles)
        return float(spectral_radius(matrix))

    return radius
