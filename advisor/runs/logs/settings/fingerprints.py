"""What the values of one series give away: their precision, a smallest step, a shared ratio."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from advisor.runs.logfiles import limits
from advisor.theory import BoolArray, FloatArray

CHANCE = 1e-3
"""Probability below which a smallest step is not taken for chance."""

SINGLE = 2e-7
"""Absolute error of a mean taken in single precision."""

CHANCE_OF_RATIO = 1e-6
"""Probability below which a ratio is not taken for chance; there are many to choose from."""

CLEAR = 0.02
"""Largest relative error, from the digits printed, of a ratio that is judged by itself."""

VAGUE = 0.25
"""The same for rows that are judged together, where few are clear."""

SCATTER = 0.03
"""Relative scatter of a ratio that is still one constant."""

SHARING_SHARE = 0.95
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


def print_error(values: FloatArray) -> FloatArray:
    """Half of the last digit printed, in fixed decimals or significant digits: the larger."""
    if not values.size:
        return values
    printed = [Decimal(repr(float(value))).normalize().as_tuple() for value in values]
    decimals = max(0, *(-int(number.exponent) for number in printed), 0)
    digits = max(len(number.digits) for number in printed)
    with np.errstate(divide="ignore"):
        leading = np.floor(np.log10(np.abs(values)))
    leading = np.where(np.isfinite(leading), leading, -np.inf)
    return np.maximum(0.5 * 10.0**-decimals, 0.5 * 10.0 ** (leading + 1 - digits))


def least_count(values: FloatArray) -> int | None:
    """Least n of which all values (shares) are multiples of 1/n."""
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
    if inside.size < 20:
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


class Shared(NamedTuple):
    """A ratio of one or two digits, the rows that have it, and how many were looked at."""

    value: float
    rows: int
    of: int


def shared_ratio(loss: FloatArray, kl: FloatArray) -> Shared | None:
    """Ratio of loss to KL that rows share beyond chance.

    Where enough rows print it with enough digits it must be that of nearly all, or of some far
    more sharply than ratios near it are dense. Where fewer do, all rows must agree with one round
    number to the last digit printed.
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
    if near.mean() >= SHARING_SHARE:
        return near
    ordered = np.sort(ratio)
    widest = error.max()
    ends = np.searchsorted(ordered, (ordered * (1 - widest), ordered * (1 + widest)))
    likely = ordered[np.argsort(ends[0] - ends[1], kind="stable")[:50]]
    sharing = [np.abs(ratio / candidate - 1) <= error for candidate in likely]
    best = int(np.argmax([rows.sum() for rows in sharing]))
    rows = sharing[best]
    distance = np.abs(ratio / likely[best] - 1) / error
    near_misses = np.sum((distance > 1) & (distance <= NEAR))
    chance = ratio.size * _poisson_tail(int(rows.sum()), (near_misses + 1) / (NEAR - 1))
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
    off = loss.sum() / kl.sum() / value - 1
    is_it = abs(off) <= SCATTER and bool(np.all(np.abs(loss - value * kl) <= error))
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
    is_sharp = float(np.mean(off <= error)) >= SHARING_SHARE and np.median(error) <= PRECISE
    for digits in (1, 2) if is_sharp else (1,):
        written = float(f"{value:.{digits - 1}e}")
        step = 10.0 ** (math.floor(math.log10(written)) + 1 - digits)
        if abs(written / value - 1) <= allowed < step / written / 2:
            return written
    return None
