"""What people use today, each with an interval: rules of one line, curves, a filter, learned trees.

Curves bring their own intervals. A rule that has none takes the spread of its errors in runs of
other repositories, in units of the range seen: the best interval that it could be given.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares, minimize_scalar
from scipy.special import expit

from advisor.theory.arrays import FloatArray

DRAWS = 500
BINS = 20
"""Rows of a run are averaged into at most this many before a curve is fitted."""

RIDGE = 1e-3
"""Added to the information matrix: a curve that the data do not bend has no covariance else."""

LEAST_SPAN = 1e-9
"""Range of rewards below which a run has none."""


class Asked(NamedTuple):
    """One question: rows seen of a run, and the steps of its last tenth.

    Attributes
    ----------
    run, repository : str
    step, reward : ndarray of shape (rows,)
        Seen; none of a run that has not begun.
    steps : ndarray of shape (times,)
        Whose mean reward is asked.
    end : float
        Last step of the run.
    target : float
    span : float
        Range logged over the whole run: the unit of errors.
    bounds : (float, float)
        Floor and ceiling of the reward, within which a forecast must lie.
    siblings : tuple of (ndarray, ndarray)
        Steps and rewards of the finished runs of the cohort; none where all are cut.
    told : dict of str to float
        Settings that are known, for the learned methods.
    """

    run: str
    repository: str
    step: FloatArray
    reward: FloatArray
    steps: FloatArray
    end: float
    target: float
    span: float
    bounds: tuple[float, float]
    siblings: tuple[tuple[FloatArray, FloatArray], ...]
    told: Mapping[str, float]

    @property
    def unit(self) -> float:
        """Range of what is seen, of the run or else of its siblings."""
        seen = [self.reward] if self.reward.size > 1 else [reward for _, reward in self.siblings]
        span = float(np.median([np.ptp(values) for values in seen])) if seen else 0.0
        return span if span > LEAST_SPAN else max(self.bounds[1] - self.bounds[0], LEAST_SPAN)


# Rules of one line ------------------------------------------------------------------------------


def last_third(asked: Asked) -> float:
    """Mean of the last third of what is seen."""
    return float(asked.reward[-max(1, asked.reward.size // 3) :].mean())


def last_value(asked: Asked) -> float:
    """Mean of the last fifth, of three rows at least: a single row is noise."""
    return float(asked.reward[-max(3, asked.reward.size // 5) :].mean())


def siblings_gain(asked: Asked) -> float:
    """Last value plus the median of what the siblings still gained after that share of a run."""
    if not asked.siblings:
        return last_third(asked)
    share = asked.step[-1] / asked.end if asked.step.size else 0.0
    gains = []
    for step, reward in asked.siblings:
        end = reward[step > 0.9 * step[-1]].mean()
        if not asked.step.size:
            gains.append(end)
            continue
        begun = reward[step <= max(share * step[-1], step[min(2, step.size - 1)])]
        gains.append(end - begun[-max(3, begun.size // 5) :].mean())
    return float(np.median(gains)) + (last_value(asked) if asked.step.size else 0.0)


RULES: dict[str, Callable[[Asked], float]] = {
    "last third": last_third,
    "last value": last_value,
    "siblings' gain": siblings_gain,
}


# Curves ------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """A family: start and end as shares of the bounds, log time scale, and perhaps a shape."""

    value: Callable[[FloatArray, FloatArray], FloatArray]
    shapes: int


def _between(theta: FloatArray, done: FloatArray) -> FloatArray:
    return np.asarray(theta[0] + (theta[1] - theta[0]) * done)


def _exponential(theta: FloatArray, time: FloatArray) -> FloatArray:
    return _between(theta, -np.expm1(-time * np.exp(-theta[2])))


def _hill(theta: FloatArray, time: FloatArray) -> FloatArray:
    return _between(theta, expit(np.exp(theta[3]) * (np.log(np.maximum(time, 1e-9)) - theta[2])))


def _logistic(theta: FloatArray, time: FloatArray) -> FloatArray:
    middle, width = np.exp(theta[2]), np.exp(theta[2] - theta[3]) / 4
    low = expit(-middle / width)
    return _between(theta, (expit((time - middle) / width) - low) / (1 - low))


def _power(theta: FloatArray, time: FloatArray) -> FloatArray:
    return _between(theta, -np.expm1(-np.exp(theta[3]) * np.log1p(time * np.exp(-theta[2]))))


CURVES = {
    "exponential": Curve(_exponential, 0),
    "hill": Curve(_hill, 1),
    "ScaleRL sigmoid": Curve(_logistic, 1),
    "power law": Curve(_power, 1),
}
"""The sigmoid in log compute of ScaleRL (arXiv:2510.13786) is the Hill curve; a logistic in steps
stands beside it under that paper's name for the shape."""


def fitted_curve(asked: Asked, curve: Curve, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """Least squares within bounds: draws from its normal approximation, and -BIC / 2."""
    floor, scale = asked.bounds[0], asked.bounds[1] - asked.bounds[0]
    span = float(asked.step[-1])
    time, reward = _binned(asked.step / span, (asked.reward - floor) / scale)
    lower = np.array([0.0, 0.0, -4.0, *[-1.5] * curve.shapes])
    upper = np.array([1.0, 1.0, 5.0, *[1.5] * curve.shapes])
    best = None
    for plateau in (0.4, 0.9):
        for rate in (-1.5, 0.0, 1.5):
            guess = np.array([reward[0], plateau, rate, *[0.0] * curve.shapes])
            found = least_squares(
                lambda theta: curve.value(theta, time) - reward,
                np.clip(guess, lower + 1e-6, upper - 1e-6),
                bounds=(lower, upper),
            )
            if best is None or found.cost < best.cost:
                best = found
    assert best is not None
    freedom = max(time.size - lower.size, 1)
    noise = max(float(np.sqrt(2 * best.cost / freedom)), 1e-3)
    root = np.linalg.cholesky(np.linalg.inv(best.jac.T @ best.jac + RIDGE * np.eye(lower.size)))
    theta = best.x + noise * rng.standard_normal((DRAWS, lower.size)) @ root.T
    theta = np.clip(theta, lower, upper)
    values = curve.value(theta.T[:, :, None], asked.steps / span).mean(axis=1)
    draws = values + noise * rng.standard_normal(DRAWS) / np.sqrt(BINS * 0.1 + 1)
    evidence = -time.size * np.log(noise) - 0.5 * lower.size * np.log(time.size)
    return floor + scale * draws, float(evidence)


def curves(asked: Asked) -> dict[str, FloatArray]:
    """Draws of every family, and of the families weighted by their information criterion."""
    rng = np.random.default_rng(0)
    fits = {name: fitted_curve(asked, curve, rng) for name, curve in CURVES.items()}
    evidence = np.array([fit[1] for fit in fits.values()])
    weight = np.exp(evidence - evidence.max())
    choice = rng.choice(len(fits), size=DRAWS, p=weight / weight.sum())
    table = np.stack([fit[0] for fit in fits.values()])
    return {name: fit[0] for name, fit in fits.items()} | {
        "ensemble of curves": table[choice, np.arange(DRAWS)]
    }


def _binned(time: FloatArray, reward: FloatArray) -> tuple[FloatArray, FloatArray]:
    parts = np.array_split(np.arange(time.size), min(BINS, time.size))
    return (
        np.array([time[part].mean() for part in parts]),
        np.array([reward[part].mean() for part in parts]),
    )


# Local level -------------------------------------------------------------------------------------


def local_level(asked: Asked) -> FloatArray:
    """Draws of a random walk seen through noise, its two variances by maximum likelihood."""
    reward, rng = asked.reward, np.random.default_rng(0)
    rows = float(np.median(np.diff(asked.step))) if asked.step.size > 1 else 1.0

    def filtered(log_ratio: float) -> tuple[float, float, float, float]:
        """-2 log likelihood profiled over the noise, level, its variance / noise, noise."""
        ratio, level, spread = float(np.exp(log_ratio)), float(reward[0]), 1.0
        squares = logs = 0.0
        for value in reward[1:]:
            spread += ratio
            total = spread + 1.0
            squares += (value - level) ** 2 / total
            logs += float(np.log(total))
            level += spread / total * (value - level)
            spread -= spread**2 / total
        size = max(reward.size - 1, 1)
        noise = max(squares / size, 1e-12)
        return size * float(np.log(noise)) + logs, level, spread, noise

    found = minimize_scalar(lambda x: filtered(x)[0], bounds=(-12.0, 2.0), method="bounded")
    _, level, spread, noise = filtered(float(found.x))
    ahead = max(float(asked.steps.mean()) - float(asked.step[-1]), 0.0) / rows
    count = max(asked.steps.size, 1)
    variance = noise * (spread + float(np.exp(found.x)) * ahead + 1.0 / count)
    return np.asarray(level + np.sqrt(variance) * rng.standard_normal(DRAWS))


# Learned in other repositories -------------------------------------------------------------------


def features(asked: Asked) -> FloatArray:
    """What the ridge and the trees see of a run, in units of its range seen."""
    reward, unit = asked.reward, asked.unit
    end, size = last_third(asked), reward.size
    parts = [float(part.mean()) if part.size else end for part in np.array_split(reward, 5)]
    noise = float(np.std(np.diff(reward))) / np.sqrt(2) if size > 2 else unit
    is_share = float(asked.bounds == (0.0, 1.0))
    return np.array(
        [
            *((np.array(parts) - end) / unit),
            (last_value(asked) - end) / unit,
            noise / unit,
            np.log(size),
            is_share,
            is_share * end,
            is_share * min((asked.bounds[1] - end) / unit, 6.0),
            np.log10(asked.told.get("learning_rate", 5e-6)),
            np.log10(asked.told.get("parameters", 3e9)),
            np.log2(asked.told.get("group_size", 8)),
        ]
    )


def learned(train: Sequence[Asked], test: Sequence[Asked]) -> dict[str, FloatArray]:
    """Ends by a ridge and by boosted trees, shape (test,), in reward units."""
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        warnings.warn("no ridge, no trees: pip install scikit-learn", stacklevel=2)
        return {}

    seen = np.clip(np.array([features(one) for one in train]), -50, 50)
    asked = np.clip(np.array([features(one) for one in test]), -50, 50)
    gain = np.array([(one.target - last_third(one)) / one.unit for one in train])
    gain = np.clip(gain, -3, 3)
    # So that what is made small is the error in shares of the range logged.
    weight = np.array([one.unit / one.span for one in train])
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 4, 9)))
    trees = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=60, learning_rate=0.05, max_leaf_nodes=6, random_state=0
    )
    here = np.array([last_third(one) for one in test])
    unit = np.array([one.unit for one in test])
    return {
        "ridge": here + unit * ridge.fit(seen, gain, ridgecv__sample_weight=weight).predict(asked),
        "boosted trees": here + unit * trees.fit(seen, gain, weight).predict(asked),
    }


def with_spread(point: float, errors: FloatArray, unit: float) -> FloatArray:
    """Draws round a point, from errors in runs of other repositories in their units."""
    levels = (np.arange(DRAWS) + 0.5) / DRAWS
    return np.asarray(point + unit * (np.quantile(errors, levels) - np.median(errors)))
