"""What the theory says in closed form or step by step: oracles for what the package computes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.theory import (
    FloatArray,
    PromptDifficulty,
    cycle_map,
    group_deviation,
    lag_in_cycles,
    spectral_radius,
    temperature,
)


def _geometric(momentum: float, interval: int) -> float:
    """S1 = sum of momentum^j, j = 1..K."""
    return momentum * (1 - momentum**interval) / (1 - momentum)


def held_map(stiffness: float, momentum: float, interval: int) -> FloatArray:
    """Map of (u, v) over one refresh when the gradient is held at the snapshot.

    ``[[1 - k (K - S1), S1], [-k (1 - momentum^K), momentum^K]]``, of stiffness k per step.
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
    """Largest stable stiffness per step for a snapshot held K steps: the nearer of both limits."""
    return min(flip_limit(momentum, interval), neimark_sacker_limit(momentum, interval))


def stability_margin(
    stiffness: npt.ArrayLike,
    momentum: float,
    interval: int,
    *,
    lag: float = 0.0,
    uncorrected_share: npt.ArrayLike = 1.0,
    stiffness_ratio: npt.ArrayLike = 1.0,
) -> FloatArray:
    """One less the spectral radius of the refresh map; negative means it diverges.

    The stiffness is that of the slow mode that a reward curve shows, the ratio that of the stiffest
    mode to it, which sets stability. A lag is rounded up to whole refreshes.
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

    Checked on momentum in [0, 0.99], K <= 64 and 0 to 4 cycles of lag. If the lag is no multiple of
    K, :func:`stability_margin` rounds it up and can be negative where this is positive.
    """
    age = np.asarray(lag, dtype=float) + np.asarray(interval, dtype=float) / 2
    return np.asarray(1 - np.asarray(stiffness, dtype=float) * age)


def delay_radius(stiffness: float, momentum: float, delay: int) -> float:
    """Spectral radius when every gradient is exactly ``delay`` optimizer steps old."""
    polynomial = np.zeros(max(2, delay + 1) + 1)
    polynomial[0] = 1
    polynomial[1] -= 1 + momentum
    polynomial[2] += momentum
    polynomial[delay + 1] += (1 - momentum) * stiffness
    return float(np.abs(np.roots(polynomial)).max())


def critical_stiffness(
    radius: Callable[[float], float], *, low: float = 1e-8, high: float = 1e3, points: int = 2000
) -> float:
    """Smallest stiffness at which ``radius(stiffness)`` exceeds one; inf where none does.

    The range is scanned before bisection: a window of instability narrower than the spacing of its
    points is missed.
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


def scanned_limit(
    momentum: float, interval: int, *, share: float = 1.0, lag_cycles: int = 0
) -> float:
    """Exact limit of k K, by scanning the map."""
    radius = schedule_radius(momentum, interval, uncorrected_share=share, lag_cycles=lag_cycles)
    scan = {"low": 0.1 / interval, "high": 1000 / interval}
    return interval * critical_stiffness(radius, **scan, points=300)


def stationary_variance(
    learning_rate: Any,
    curvature: Any,
    momentum: Any,
    prompts_per_step: Any,
    group_size: Any,
    sample_variance: Any = 1.0,
) -> Any:
    """Stationary variance of the mode coordinate on policy, exact for the discrete recursion.

    ``eta s_g^2 (1 + mu) / (P G h (2 (1 + mu) - eta (1 - mu) h))``, with a variance
    of s_g^2 per sample; diverges at the on-policy limit ``k (1 - mu) = 2 (1 + mu)``.
    """
    heat = temperature(learning_rate, prompts_per_step, group_size, sample_variance)
    return (
        heat
        * (1 + momentum)
        / (curvature * (2 * (1 + momentum) - learning_rate * (1 - momentum) * curvature))
    )


def held_inflation(stiffness: Any, interval: Any) -> Any:
    """Variance relative to K = 1 when the snapshot is held K steps, without momentum.

    ``(2 - k) / (2 - K k)``: doubles half-way to the threshold ``K k = 2`` and diverges there, which
    makes rising variance (and autocorrelation) the early warning.
    """
    return (2 - stiffness) / (2 - interval * stiffness)


def mean_plateau_loss(reward_curvature: Any, variance: Any) -> Any:
    """Mean reward lost to a fluctuation: ``|R''| Var(u) / 2``."""
    return abs(reward_curvature) * variance / 2


def simulate_recursion(
    steps: int,
    stiffness: float,
    momentum: float,
    *,
    refresh_interval: int = 1,
    uncorrected_share: float = 1.0,
    lag_cycles: int = 0,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Step the raw optimizer recursion that the closed form approximates; u in units of its start.

    The uncorrected share of the gradient sees the snapshot, which is so many whole refreshes old
    (0 synchronous, 1 double buffer); the rest sees the present. Unstable ones may overflow to inf.
    """
    u, v = 1.0, 0.0
    history = [u] * (lag_cycles + 1)
    out = np.empty(steps + 1)
    out[0] = u
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(steps):
            if step % refresh_interval == 0:
                history = [*history[1:], u] if step else history
            gradient = uncorrected_share * history[0] + (1 - uncorrected_share) * u
            v = momentum * v - (1 - momentum) * stiffness * gradient
            u = u + v
            out[step + 1] = u
    return out


def _half_step(x: float) -> float:
    """Gamma(x + 1/2) / Gamma(x); a difference of two log-gammas loses its digits at large x."""
    if x < 100:
        return math.exp(math.lgamma(x + 0.5) - math.lgamma(x))
    series = 1 - 1 / (8 * x) + 1 / (128 * x**2) + 5 / (1024 * x**3) - 21 / (32768 * x**4)
    return math.sqrt(x) * series


def drift_factor(
    group_size: int,
    difficulty: float | PromptDifficulty,
    *,
    scaling: str = "group",
    bessel: bool = False,
) -> float:
    """Drift at group size G relative to an infinite group, c_G (docs/theory, T33)."""
    if group_size < 2:
        raise ValueError("a group of one has no spread: group_size must be at least 2")
    if scaling != "group":
        return (group_size - 1) / group_size
    spread = group_deviation(group_size, difficulty)
    if isinstance(difficulty, PromptDifficulty):
        a, b = difficulty.shapes
        full = _half_step(a) * _half_step(b) / (a + b)
    else:
        full = math.sqrt(difficulty * (1 - difficulty))
    correction = math.sqrt((group_size - 1) / group_size) if bessel else 1.0
    return correction * spread / full
