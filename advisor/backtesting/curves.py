"""Curve fits to one run at a time: what people use today, each with its own uncertainty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.backtesting.cases import Case
from advisor.forecast import DRAWS, EXPONENTIAL, TIME, Curve, curve_fit
from advisor.theory import FloatArray


def _hill(theta: FloatArray, time: FloatArray) -> FloatArray:
    odds = (np.maximum(time, 1e-9) * np.exp(-theta[2])) ** np.exp(theta[3])
    return np.asarray(theta[0] + (theta[1] - theta[0]) * odds / (1 + odds))


def _stretched(theta: FloatArray, time: FloatArray) -> FloatArray:
    x = (np.maximum(time, 1e-9) * np.exp(-theta[2])) ** np.exp(theta[3])
    return np.asarray(theta[0] + (theta[1] - theta[0]) * -np.expm1(-x))


def _power(theta: FloatArray, time: FloatArray) -> FloatArray:
    left = np.exp(-np.exp(theta[3]) * np.log1p(time * np.exp(-theta[2])))
    return np.asarray(theta[0] + (theta[1] - theta[0]) * (1 - left))


SHAPE = ((0.0,), -1.5, 1.5)
CURVES = {
    "exponential": EXPONENTIAL,
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


def ensemble(case: Case, floor: float, ceiling: float, rng: np.random.Generator) -> FloatArray:
    """Families weighted by their Bayesian information criterion."""
    bounds = (floor, ceiling)
    fits = [curve_fit(case.seen, case.steps, curve, bounds, rng) for curve in ENSEMBLE.values()]
    return mixed(fits, rng)


def mixed(fits: Sequence[tuple[FloatArray, float]], rng: np.random.Generator) -> FloatArray:
    """Draws of several curves, each by its weight; from draws and -BIC / 2 of each."""
    evidence = np.array([fit[1] for fit in fits])
    weight = np.exp(evidence - evidence.max())
    choice = rng.choice(len(fits), size=DRAWS, p=weight / weight.sum())
    return np.stack([fit[0] for fit in fits])[choice, np.arange(DRAWS)]
