"""Are ranks uniform? ECDF with simultaneous bands (Sailynoja, Burkner, Vehtari, arXiv:2103.10522).

A rank counts how many of L posterior draws lie below the truth; under the right posterior it is
uniform on 0..L (Talts et al., arXiv:1804.06788). At every point of the ECDF the number of ranks up
to it is binomial; the smallest two-sided tail probability over all points is compared with the one
of simulated uniform ranks, which makes one test of all points.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from advisor.theory import FloatArray, IntArray

SIMULATED = 100_000
"""Sets of uniform ranks behind a band: a level of 0.001 then rests on a hundred of them."""

CHUNK = 10_000


def rank_of(truth: float, draws: FloatArray) -> int:
    """Number of posterior draws below the truth."""
    return int(np.sum(draws < truth))


def counts_up_to(ranks: IntArray, draws: int) -> IntArray:
    """Number of ranks, (..., simulations), that are at most 0, 1, ..., ``draws - 1``."""
    flat = ranks.reshape(-1, ranks.shape[-1])
    cells = np.stack([np.bincount(row, minlength=draws + 1) for row in flat])
    return np.cumsum(cells, axis=1)[:, :draws].reshape(*ranks.shape[:-1], draws)


class Band(NamedTuple):
    """What uniform ranks do.

    Attributes
    ----------
    simulations, draws : int
        Number of ranks N, and L.
    tails : ndarray of shape (draws, simulations + 1)
        Two-sided binomial tail probability of every count at every point.
    smallest : ndarray of shape (SIMULATED,)
        Smallest tail probability over the points, of simulated sets of uniform ranks; ordered.
    """

    simulations: int
    draws: int
    tails: FloatArray
    smallest: FloatArray

    def chance(self, ranks: IntArray) -> float:
        """Probability that uniform ranks stray as far from uniformity as these."""
        counts = counts_up_to(ranks, self.draws)
        seen = self.tails[np.arange(self.draws), counts].min()
        below = np.searchsorted(self.smallest, seen * (1 + 1e-9), side="right")
        return float((1 + below) / (1 + self.smallest.size))

    def limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ECDF difference that uniform ranks leave with probability ``level``."""
        least = np.quantile(self.smallest, level)
        share = np.arange(1, self.draws + 1) / (self.draws + 1)
        inside = self.tails >= least
        counts = np.arange(self.simulations + 1)
        low = np.where(inside, counts, self.simulations).min(axis=1)
        high = np.where(inside, counts, 0).max(axis=1)
        return low / self.simulations - share, high / self.simulations - share


@cache
def uniform_band(simulations: int, draws: int) -> Band:
    """Simulate what the ECDF of so many uniform ranks among 0..``draws`` does."""
    share = np.arange(1, draws + 1) / (draws + 1)
    counts = np.arange(simulations + 1)
    below = binom.cdf(counts, simulations, share[:, None])
    above = binom.sf(counts - 1, simulations, share[:, None])
    tails = np.minimum(2 * np.minimum(below, above), 1.0)
    rng = np.random.default_rng(0)
    cells = np.full(draws + 1, 1 / (draws + 1))
    smallest = []
    for _ in range(SIMULATED // CHUNK):
        up_to = np.cumsum(rng.multinomial(simulations, cells, size=CHUNK), axis=1)[:, :draws]
        smallest.append(tails[np.arange(draws), up_to].min(axis=1))
    return Band(simulations, draws, tails, np.sort(np.concatenate(smallest)))


def difference(ranks: IntArray, draws: int) -> FloatArray:
    """ECDF of the ranks minus that of uniform ranks, at 0..draws - 1."""
    share = np.arange(1, draws + 1) / (draws + 1)
    return np.asarray(counts_up_to(ranks, draws) / ranks.shape[-1] - share)


def coverage(ranks: IntArray, draws: int, interval: float) -> float:
    """Share of truths within the central interval of their posterior."""
    outside = (1 - interval) / 2 * (draws + 1)
    return float(np.mean((ranks >= outside) & (ranks <= draws - outside)))
