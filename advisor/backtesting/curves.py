"""Curve fits to one run at a time: what people use today, each with its own uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from advisor.backtesting.cases import Case
from advisor.theory.arrays import FloatArray

DRAWS = 1000
BINS = 20
"""Rows of a run are averaged into at most this many before a fit."""

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


def _exponential(theta: FloatArray, time: FloatArray) -> FloatArray:
    return np.asarray(theta[0] + (theta[1] - theta[0]) * -np.expm1(-time * np.exp(-theta[2])))


def _hill(theta: FloatArray, time: FloatArray) -> FloatArray:
    odds = (np.maximum(time, 1e-9) * np.exp(-theta[2])) ** np.exp(theta[3])
    return np.asarray(theta[0] + (theta[1] - theta[0]) * odds / (1 + odds))


def _stretched(theta: FloatArray, time: FloatArray) -> FloatArray:
    x = (np.maximum(time, 1e-9) * np.exp(-theta[2])) ** np.exp(theta[3])
    return np.asarray(theta[0] + (theta[1] - theta[0]) * -np.expm1(-x))


def _power(theta: FloatArray, time: FloatArray) -> FloatArray:
    left = np.exp(-np.exp(theta[3]) * np.log1p(time * np.exp(-theta[2])))
    return np.asarray(theta[0] + (theta[1] - theta[0]) * (1 - left))


TIME = ((-1.5, 0.0, 1.5), -4.0, 5.0)
SHAPE = ((0.0,), -1.5, 1.5)
CURVES = {
    "exponential": Curve(_exponential, (TIME,)),
    "hill": Curve(_hill, (TIME, SHAPE)),
    "stretched": Curve(_stretched, (TIME, SHAPE)),
}
"""Families by name; ``hill`` is ScaleRL's form (arXiv:2510.13786)."""

ENSEMBLE = {**CURVES, "power": Curve(_power, (TIME, SHAPE))}
"""Families that are weighted by fit, after Domhan et al. (IJCAI 2015)."""


def last_value(case: Case, rng: np.random.Generator) -> FloatArray:
    """Mean of the last fifth of what is seen, with its standard error and the noise of a mean."""
    reward = case.seen.reward[np.isfinite(case.seen.reward)]
    tail = reward[-max(3, reward.size // 5) :]
    return np.asarray(tail.mean() + tail.std(ddof=1) * rng.standard_normal(DRAWS))


def curve_fit(
    case: Case, curve: Curve, floor: float, ceiling: float, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Least squares: draws of the mean asked for from its normal approximation, and -BIC / 2."""
    scale = ceiling - floor
    span = float(case.seen.step[-1])
    time, reward = _binned(case.seen.step / span, (case.seen.reward - floor) / scale)
    lower = np.array([0.0, 0.0, *(bounds[1] for bounds in curve.more)])
    upper = np.array([1.0, 1.0, *(bounds[2] for bounds in curve.more)])
    best = None
    for plateau in (0.4, 0.9):
        for rate in curve.more[0][0]:
            rest = [rate, *(bounds[0][0] for bounds in curve.more[1:])]
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
    asked = case.steps / span
    values = curve.value(theta.T[:, :, None], asked).mean(axis=1)
    draws = values + noise * rng.standard_normal(DRAWS) / np.sqrt(BINS * 0.1 + 1)
    evidence = -time.size * np.log(noise) - 0.5 * lower.size * np.log(time.size)
    return floor + scale * draws, float(evidence)


def ensemble(case: Case, floor: float, ceiling: float, rng: np.random.Generator) -> FloatArray:
    """Families weighted by their Bayesian information criterion."""
    fits = [curve_fit(case, curve, floor, ceiling, rng) for curve in ENSEMBLE.values()]
    return mixed(fits, rng)


def mixed(fits: Sequence[tuple[FloatArray, float]], rng: np.random.Generator) -> FloatArray:
    """Draws of several curves, each by its weight; from draws and -BIC / 2 of each."""
    evidence = np.array([fit[1] for fit in fits])
    weight = np.exp(evidence - evidence.max())
    choice = rng.choice(len(fits), size=DRAWS, p=weight / weight.sum())
    return np.stack([fit[0] for fit in fits])[choice, np.arange(DRAWS)]


def _binned(time: FloatArray, reward: FloatArray) -> tuple[FloatArray, FloatArray]:
    finite = np.isfinite(reward)
    parts = np.array_split(np.flatnonzero(finite), min(BINS, int(finite.sum())))
    return (
        np.array([time[part].mean() for part in parts]),
        np.array([reward[part].mean() for part in parts]),
    )
