"""The clock: training progress runs on cumulative learning rate, not on raw steps.

``S(t) = sum over the first t optimizer steps of (eta_u / eta_peak)^a``, with a the learned
exponent of the learning rate in the rate law. On raw steps a warm-up looks like a slow start and a
decay to zero looks like a plateau. At N = 2T a linear decay stops at 0.65 of the gain instead of
0.87 (recursion at momentum 0.9, T = 150; 0.63 by S alone). When S stops growing the plateau is
not identified.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from advisor.theory.arrays import FloatArray

Schedule = Literal["constant", "linear", "cosine"]


def schedule_factors(
    schedule: Schedule, steps: int, *, warmup_steps: int = 0, planned_steps: int | None = None
) -> FloatArray:
    """Learning rate of each optimizer step over its peak.

    Parameters
    ----------
    schedule : {"constant", "linear", "cosine"}
        Decay after the warm-up; linear and cosine reach zero after ``planned_steps``.
    steps : int
        Steps wanted; may be fewer than planned (a pilot stopped early).
    warmup_steps : int
        Linear warm-up from zero.
    planned_steps : int, optional
        Full length that the decay was set for; ``steps`` by default.

    Returns
    -------
    factors : ndarray of shape (steps,)
        In [0, 1]; a step beyond ``planned_steps`` of a decaying schedule is 0.
    """
    planned = steps if planned_steps is None else planned_steps
    done = np.arange(steps, dtype=float)
    warm = np.ones(steps) if warmup_steps == 0 else np.minimum(1.0, done / warmup_steps)
    if schedule == "constant":
        return warm
    left = np.clip((planned - done) / max(1, planned - warmup_steps), 0.0, 1.0)
    cooling = left if schedule == "linear" else 0.5 * (1 - np.cos(np.pi * left))
    return np.where(done < warmup_steps, warm, cooling)


def cumulative_clock(factors: npt.ArrayLike, exponent: npt.ArrayLike = 1.0) -> FloatArray:
    """S after 0, 1, ..., n optimizer steps.

    Parameters
    ----------
    factors : array_like of shape (n,)
        Learning rate over its peak, per step.
    exponent : array_like of shape (...)
        Exponent a of the learning rate in the rate law (1 for SGD and frozen-preconditioner Adam).

    Returns
    -------
    clock : ndarray of shape (n + 1, ...)
        In peak-rate steps; clock[0] = 0.
    """
    powered = np.power.outer(np.asarray(factors, dtype=float), exponent)
    return np.concatenate([np.zeros((1, *powered.shape[1:])), np.cumsum(powered, axis=0)])


def policy_steps(
    step: npt.ArrayLike, minibatches: int, epochs: int = 1, lag: float = 0.0
) -> FloatArray:
    """Optimizer steps behind the policy whose completions a row's reward scores.

    Parameters
    ----------
    step : array_like of shape (rows,)
        One-based optimizer step at which the row was logged.
    minibatches, epochs : int
        K = minibatches x epochs optimizer steps use one batch of rollouts.
    lag : float
        Age of the freshest rollout at a refresh, in optimizer steps.

    Returns
    -------
    steps : ndarray of shape (rows,)
        ``K floor((step - 1) / K) - lag``, not below 0: the logged reward lags the trained policy,
        by up to K - 1 steps, and reading it as current would look like a slow start.
    """
    interval = minibatches * epochs
    refreshed = np.floor((np.asarray(step, dtype=float) - 1) / interval) * interval
    return np.maximum(refreshed - lag, 0.0)
