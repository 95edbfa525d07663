"""What one run alone says of its end: a curve fitted to its rows, and a level that wanders."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from advisor.runs import PilotRun
from advisor.theory import FloatArray

DRAWS = 1000
BINS = 20
"""Rows of a run are averaged into at most this many before a fit."""

LEVEL_ROWS = 400
"""Rows of a run are averaged into at most this many before they are filtered."""

LOG_RATIOS = (-12.0, 2.0)
"""Ends of the log variance of a step of the level over that of the noise."""

RIDGE = 1e-3
"""Added to the information matrix: a curve that the data do not bend has no covariance else."""


class Curve(NamedTuple):
    """A family of curves on steps, with start values and bounds.

    Attributes
    ----------
    value : callable (parameters, steps) -> reward
        The first two parameters are start and plateau as shares of the reward range.
    more : tuple of (start values, lower, upper)
        Of the further parameters, with logs of steps relative to the last step seen.
    """

    value: Callable[[FloatArray, FloatArray], FloatArray]
    more: tuple[tuple[tuple[float, ...], float, float], ...]


def exponential(theta: FloatArray, time: FloatArray) -> FloatArray:
    """Saturating exponential: start, plateau and log of the time scale."""
    return np.asarray(theta[0] + (theta[1] - theta[0]) * -np.expm1(-time * np.exp(-theta[2])))


TIME = ((-1.5, 0.0, 1.5), -4.0, 5.0)
EXPONENTIAL = Curve(exponential, (TIME,))


def curve_fit(
    seen: PilotRun,
    steps: FloatArray,
    curve: Curve,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Fit a curve to one run by least squares.

    Parameters
    ----------
    seen : PilotRun
        What is seen of it, two finite rewards or more.
    steps : ndarray of shape (times,)
        Optimizer steps whose mean reward is asked.
    curve : Curve
    bounds : (float, float)
        Floor and ceiling of the reward, within which start and plateau lie.
    rng : numpy Generator

    Returns
    -------
    reward : ndarray of shape (DRAWS,)
        Draws from the normal approximation, with the noise of a mean, in reward units.
    evidence : float
        Minus half the Bayesian information criterion.
    """
    floor, ceiling = bounds
    from scipy.optimize import least_squares

    scale = ceiling - floor
    span = float(seen.step[-1])
    time, reward = _binned(seen.step / span, (seen.reward - floor) / scale)
    lower = np.array([0.0, 0.0, *(limits[1] for limits in curve.more)])
    upper = np.array([1.0, 1.0, *(limits[2] for limits in curve.more)])
    best = None
    for plateau in (0.4, 0.9):
        for rate in curve.more[0][0]:
            rest = [rate, *(limits[0][0] for limits in curve.more[1:])]
            guess = np.clip([reward[0], plateau, *rest], lower + 1e-6, upper - 1e-6)
            found = least_squares(lambda theta: curve.value(theta, time) - reward, guess,
                                  bounds=(lower, upper))  # fmt: skip
            if best is None or found.cost < best.cost:
                best = found
    assert best is not None
    freedom = max(time.size - lower.size, 1)
    noise = max(float(np.sqrt(2 * best.cost / freedom)), 1e-3)
    information = best.jac.T @ best.jac + RIDGE * np.eye(lower.size)
    root = np.linalg.cholesky(np.linalg.inv(information))
    theta = best.x + noise * rng.standard_normal((DRAWS, lower.size)) @ root.T
    theta = np.clip(theta, lower, upper)
    asked = steps / span
    values = curve.value(theta.T[:, :, None], asked).mean(axis=1)
    draws = values + noise * rng.standard_normal(DRAWS) / np.sqrt(BINS * 0.1 + 1)
    evidence = -time.size * np.log(noise) - 0.5 * lower.size * np.log(time.size)
    return floor + scale * draws, float(evidence)


def local_level(seen: PilotRun, steps: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Continue a run as a random walk seen through noise, the two variances by maximum likelihood.

    Parameters
    ----------
    seen : PilotRun
        What is seen of it, two finite rewards or more.
    steps : ndarray of shape (times,)
        Optimizer steps whose mean reward is asked.
    rng : numpy Generator

    Returns
    -------
    reward : ndarray of shape (DRAWS,)
        In reward units.
    """
    time, reward = _binned(seen.step, seen.reward, LEVEL_ROWS)
    apart = float(np.median(np.diff(time)))

    def filtered(log_ratio: float) -> tuple[float, float, float, float]:
        """-2 log likelihood profiled over the noise, level, its variance / noise, noise."""
        ratio, level, spread = float(np.exp(log_ratio)), float(reward[0]), 1.0
        squares = logs = 0.0
        for value in reward[1:].tolist():
            spread += ratio
            total = spread + 1.0
            squares += (value - level) ** 2 / total
            logs += float(np.log(total))
            level += spread / total * (value - level)
            spread -= spread**2 / total
        size = max(reward.size - 1, 1)
        noise = max(squares / size, 1e-12)
        return size * float(np.log(noise)) + logs, level, spread, noise

    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda x: filtered(x)[0], bounds=LOG_RATIOS, method="bounded")
    _, level, spread, noise = filtered(float(found.x))
    ahead = max(float(steps.mean()) - float(time[-1]), 0.0) / apart
    rows = max(float(np.ptp(steps)) / apart, 1.0)
    variance = noise * (spread + float(np.exp(found.x)) * ahead + 1.0 / rows)
    return np.asarray(level + np.sqrt(variance) * rng.standard_normal(DRAWS))


def _binned(
    time: FloatArray, reward: FloatArray, most: int = BINS
) -> tuple[FloatArray, FloatArray]:
    finite = np.isfinite(reward)
    parts = np.array_split(np.flatnonzero(finite), min(most, int(finite.sum())))
    return (
        np.array([time[part].mean() for part in parts]),
        np.array([reward[part].mean() for part in parts]),
    )
