"""The end of one run by its own rows alone: a curve fitted to them, and a random walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from advisor.runs import PilotRun
from advisor.theory import FloatArray

DRAWS = 1000  # Draws of an answer
BINS = 20  # Rows of a run are averaged into at most this many before a fit

TIME = ((-1.5, 0.0, 1.5), -4.0, 5.0)
"""Starts of a log time scale, in lengths of what is seen, and its bounds."""


class Curve(NamedTuple):
    """A family of curves on steps, with start values and bounds."""

    value: Callable[[FloatArray, FloatArray], FloatArray]
    more: tuple[tuple[tuple[float, ...], float, float], ...]


def exponential(theta: FloatArray, time: FloatArray) -> FloatArray:
    """Saturating exponential: start, plateau and log of the time scale."""
    return np.asarray(theta[0] + (theta[1] - theta[0]) * -np.expm1(-time * np.exp(-theta[2])))


EXPONENTIAL = Curve(exponential, (TIME,))


def curve_fit(
    seen: PilotRun,
    steps: FloatArray,
    curve: Curve,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Fit a curve to one run by least squares."""
    from scipy.optimize import least_squares

    floor, ceiling = bounds
    scale, span = ceiling - floor, float(seen.step[-1])
    time, reward = _binned(seen.step / span, (seen.reward - floor) / scale)
    lower = np.array([0.0, 0.0, *(limits[1] for limits in curve.more)])
    upper = np.array([1.0, 1.0, *(limits[2] for limits in curve.more)])
    fits = []

    def misses(theta: FloatArray) -> FloatArray:
        return curve.value(theta, time) - reward

    for plateau in (0.4, 0.9):
        for rate in curve.more[0][0]:
            rest = [rate, *(limits[0][0] for limits in curve.more[1:])]
            guess = np.clip([reward[0], plateau, *rest], lower + 1e-6, upper - 1e-6)
            fits.append(least_squares(misses, guess, bounds=(lower, upper)))
    best = min(fits, key=lambda found: found.cost)
    freedom = max(time.size - lower.size, 1)
    noise = max(float(np.sqrt(2 * best.cost / freedom)), 1e-3)
    # Added to the information matrix: a curve that the data do not bend has no covariance else.
    information = best.jac.T @ best.jac + 1e-3 * np.eye(lower.size)
    root = np.linalg.cholesky(np.linalg.inv(information))
    theta = best.x + noise * rng.standard_normal((DRAWS, lower.size)) @ root.T
    theta = np.clip(theta, lower, upper)
    values = curve.value(theta.T[:, :, None], steps / span).mean(axis=1)
    draws = values + noise * rng.standard_normal(DRAWS) / np.sqrt(BINS * 0.1 + 1)
    evidence = -time.size * np.log(noise) - 0.5 * lower.size * np.log(time.size)
    return floor + scale * draws, float(evidence)


def local_level(seen: PilotRun, steps: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Continue a run as a random walk seen through noise, both variances by maximum likelihood."""
    time, reward = _binned(seen.step, seen.reward, 400)
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

    found = minimize_scalar(lambda x: filtered(x)[0], bounds=(-12.0, 2.0), method="bounded")
    _, level, spread, noise = filtered(float(found.x))
    ahead = max(float(steps.mean()) - float(time[-1]), 0.0) / apart
    rows = max(float(np.ptp(steps)) / apart, 1.0)
    variance = noise * (spread + float(np.exp(found.x)) * ahead + 1.0 / rows)
    return np.asarray(level + np.sqrt(variance) * rng.standard_normal(DRAWS))


def _binned(
    time: FloatArray, reward: FloatArray, most: int = BINS
) -> tuple[FloatArray, FloatArray]:
    """Means of time and reward over at most so many parts of the finite rows."""
    finite = np.flatnonzero(np.isfinite(reward))
    parts = np.array_split(finite, min(most, finite.size))
    time, reward = (np.array([of[part].mean() for part in parts]) for of in (time, reward))
    return time, reward
