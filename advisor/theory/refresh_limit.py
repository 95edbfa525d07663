"""Largest stiffness that a refresh schedule stands, tabulated over the uncorrected share.

A run holds modes of every stiffness up to its stiffest, so what counts is the first stiffness at
which the map of `refresh` stops contracting: stable windows beyond it do not help.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from advisor.theory.arrays import BoolArray, FloatArray
from advisor.theory.refresh import cycle_map, lag_in_cycles, spectral_radius

SHARES = np.linspace(0.0, 1.0, 17)
"""Uncorrected shares at which limits are tabulated; between them log limits are interpolated."""

LEAST, MOST, POINTS = 1e-4, 1e3, 240
"""Stiffness, per step, that is scanned geometrically: 7 % between neighbours."""

JUMP = 1.2
"""Ratio of neighbouring limits from which another window of instability opens between them: the
smaller of the two is then taken."""

HALVINGS = 20

TOLERANCE = 1e-10


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
