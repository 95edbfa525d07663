"""Smallest step between shares: how many trials each is a share of."""

from __future__ import annotations

import numpy as np

from advisor.logfiles import limits
from advisor.logfiles.printed import print_error
from advisor.theory.arrays import FloatArray

CHANCE = 1e-3
"""Probability below which a smallest step is not taken for chance."""

SINGLE = 2e-7
"""Absolute error of a mean taken in single precision."""


def least_count(values: FloatArray) -> int | None:
    """Least n of which all values are multiples of 1/n.

    Parameters
    ----------
    values : ndarray
        Shares; NaN where a cell is missing.

    Returns
    -------
    count : int or None
        None where values leave [0, 1], where no n up to 4096 fits, and where chance, or a multiple
        of n that did not show, is not excluded.
    """
    values = values[np.isfinite(values)]
    if not values.size or values.min() < 0 or values.max() > 1:
        return None
    error = print_error(values) + SINGLE
    distinct, first = np.unique(values, return_index=True)
    if distinct.size > limits.MOST_TRIALS_PER_ROW + 1:
        return None
    inside = (distinct > 0) & (distinct < 1)
    share, tolerance = distinct[inside], error[first][inside]
    fitting = np.arange(2, limits.MOST_TRIALS_PER_ROW + 1)
    for value, width in zip(share, tolerance, strict=True):
        fitting = fitting[np.abs(value * fitting - np.rint(value * fitting)) <= fitting * width]
    if not share.size or not fitting.size:
        return None
    count = int(fitting[0])
    # Values without a step would all hit a multiple of 1/n as often as this, for some n so far.
    chance = count * float(np.prod(np.minimum(1.0, 2 * count * tolerance)))
    return count if chance < CHANCE and _is_whole(values, count) else None


def _is_whole(values: FloatArray, count: int) -> bool:
    """Whether rows of twice or three times as many would have shown it.

    Completions of one prompt are alike, so most groups may be all right or all wrong, and steps
    finer than a group are rare. Those that were seen, the rows which are no multiple of a coarser
    step, must be so many that none finer among them is no chance.
    """
    inside = values[(values > 0) & (values < 1)]
    if inside.size < limits.LEAST_SHARES:
        return False
    numerator = np.rint(inside * count).astype(int)
    coarser = next(factor for factor in range(2, count + 1) if not count % factor)
    if 0.5 ** np.sum(numerator % coarser != 0) >= CHANCE:
        return False
    for times in (2, 3):
        # Probability that a binomial number of times x count trials is a multiple of `times`.
        roots = np.exp(2j * np.pi * np.arange(times) / times)
        powers = (1 - inside[:, None] + inside[:, None] * roots) ** (times * count)
        if float(np.prod(np.real(powers.mean(axis=1)))) >= CHANCE:
            return False
    return True
