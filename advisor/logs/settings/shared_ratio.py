"""One ratio that many rows of two series share, told from a scatter of ratios."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from advisor.logfiles import limits
from advisor.logfiles.printed import print_error
from advisor.theory.arrays import BoolArray, FloatArray

CHANCE_OF_RATIO = 1e-6
"""Probability below which a ratio is not taken for chance; there are many to choose from."""

CLEAR = 0.02
"""Largest relative error, from the digits printed, of a ratio that is judged by itself."""

VAGUE = 0.25
"""The same for rows that are judged together, where few are clear."""

SCATTER = 0.03
"""Relative scatter of a ratio that is still one constant."""

MOST_RATIOS = 0.95
"""Share of rows that must have it."""

SLACK = 1e-3
"""Relative difference between rows that share a constant exactly: sums in single precision."""

NEAR = 20.0
"""Width, in errors of a row, of the neighbourhood that tells how dense ratios lie by chance."""

LEAST_RANGE = 1.5
"""Largest over smallest KL: one loss over one KL is a ratio too, and tells nothing."""

LARGEST = 1e12
"""Losses and KLs beyond it, or below its inverse, are no values to learn from."""

PRECISE = 0.004
"""Relative error within which a coefficient is matched to a round number."""


class Shared(NamedTuple):
    """A ratio of one or two digits, the rows that have it, and how many were looked at."""

    value: float
    rows: int
    of: int


def shared_ratio(loss: FloatArray, kl: FloatArray) -> Shared | None:
    """Ratio that rows share beyond chance.

    Parameters
    ----------
    loss, kl : ndarray of shape (rows,)
        Numerator and denominator; NaN where a cell is missing.

    Returns
    -------
    shared : Shared or None
        Where at least five rows print it with enough digits it must be that of nearly all, or of
        some far more sharply than ratios near it are dense. Where fewer do, all rows must agree
        with one round number to the last digit printed.
    """
    there = (np.abs(loss) < LARGEST) & (kl > 1 / LARGEST) & (kl < LARGEST)
    loss, kl = loss[there], kl[there]
    error_of_loss, error_of_kl = print_error(loss), print_error(kl)
    clear = (loss > 1 / LARGEST) & (error_of_loss * kl + error_of_kl * loss <= CLEAR * loss * kl)
    if clear.sum() >= limits.LEAST_CLEAR_ROWS:
        loss, kl = loss[clear], kl[clear]
        error = error_of_loss[clear] / loss + error_of_kl[clear] / kl + SLACK
        shares = _share_sharply(loss / kl, error)
        value = None if shares is None else _as_written(loss[shares], kl[shares], error[shares])
    else:
        value, shares = _share_vaguely(loss, kl, error_of_loss, error_of_kl)
        loss, kl = loss[shares], kl[shares]
        shares = np.ones(kl.size, dtype=bool)
    if value is None or shares is None or kl[shares].max() < LEAST_RANGE * kl[shares].min():
        return None
    return Shared(value, int(shares.sum()), kl.size)


def _share_sharply(ratio: FloatArray, error: FloatArray) -> BoolArray | None:
    """Rows of a ratio that nearly all share, or that some share more sharply than by chance."""
    near = np.abs(ratio / np.median(ratio) - 1) <= error + SCATTER
    if near.mean() >= MOST_RATIOS:
        return near
    ordered = np.sort(ratio)
    widest = error.max()
    ends = np.searchsorted(ordered, (ordered * (1 - widest), ordered * (1 + widest)))
    likely = ordered[np.argsort(ends[0] - ends[1], kind="stable")[: limits.MOST_RATIOS_TRIED]]
    sharing = [np.abs(ratio / candidate - 1) <= error for candidate in likely]
    best = int(np.argmax([rows.sum() for rows in sharing]))
    rows = sharing[best]
    distance = np.abs(ratio / likely[best] - 1) / error
    beside = np.sum((distance > 1) & (distance <= NEAR))
    chance = ratio.size * _poisson_tail(int(rows.sum()), (beside + 1) / (NEAR - 1))
    return rows if rows.sum() >= limits.LEAST_CLEAR_ROWS and chance < CHANCE_OF_RATIO else None


def _share_vaguely(
    loss: FloatArray, kl: FloatArray, error_of_loss: FloatArray, error_of_kl: FloatArray
) -> tuple[float | None, BoolArray]:
    """Round number that all rows agree with to the last digit printed, and those that tell it."""
    value = float(f"{loss.sum() / kl.sum():.0e}") if kl.sum() > 0 else 0.0
    # Chosen by their KL, for a choice by their loss would prefer losses that were rounded up.
    error = error_of_loss + value * error_of_kl
    tell = error <= VAGUE * value * kl
    if value < 1 / LARGEST or tell.sum() < limits.LEAST_CLEAR_ROWS:
        return None, tell
    loss, kl, error = loss[tell], kl[tell], error[tell] + SLACK * value * kl[tell]
    told = loss.sum() / kl.sum() / value - 1
    is_it = abs(told) <= SCATTER and bool(np.all(np.abs(loss - value * kl) <= error))
    chance = float(np.prod(2 * error / (value * kl)))
    return (value if is_it and chance < CHANCE_OF_RATIO else None), tell


def _poisson_tail(least: int, mean: float) -> float:
    """Probability that a Poisson number reaches ``least``; an upper bound for a small mean."""
    if mean >= least:
        return 1.0
    log = least * math.log(mean) - mean - math.lgamma(least + 1)
    return math.exp(log) / (1 - mean / (least + 1))


def _as_written(loss: FloatArray, kl: FloatArray, error: FloatArray) -> float | None:
    """Number of one digit, or two, that a ratio can only be: coefficients are chosen by people."""
    value = float(loss.sum() / kl.sum())
    off = np.abs(loss / kl / value - 1)
    spread = 2 * float(np.sqrt(np.mean(off**2) / off.size))
    allowed = max(PRECISE, spread)
    is_sharp = float(np.mean(off <= error)) >= MOST_RATIOS and np.median(error) <= PRECISE
    for digits in (1, 2) if is_sharp else (1,):
        written = float(f"{value:.{digits - 1}e}")
        step = 10.0 ** (math.floor(math.log10(written)) + 1 - digits)
        if abs(written / value - 1) <= allowed < step / written / 2:
            return written
    return None
