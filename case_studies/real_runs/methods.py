"""What people use today, each with an interval: rules of one line, curves, a filter, learned trees.

Curves bring their own intervals. A rule that has none takes the spread of its errors in runs of
other repositories, in units of the range seen: the best interval that it could be given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from advisor.backtesting.backtests import ENSEMBLE, SHAPE, mixed
from advisor.backtesting.cases import Case
from advisor.forecast import DRAWS, TIME, Curve, curve_fit
from advisor.forecast.run_in_progress import local_level
from advisor.theory import FloatArray

LEAST_SPAN = 1e-9
"""Range of rewards below which a run has none."""


class Asked(NamedTuple):
    """One question: rows seen of a run, and the steps of its last tenth."""

    run: str
    repository: str
    case: Case  # what is seen, what is asked and what it came to
    step: FloatArray  # (rows,), seen
    reward: FloatArray  # (rows,), seen
    steps: FloatArray  # (times,), whose mean reward is asked
    target: float
    span: float  # range logged over the whole run: the unit of errors
    bounds: tuple[float, float]  # floor and ceiling, within which a forecast must lie
    told: Mapping[str, float]  # settings that are known, for the learned methods

    @property
    def unit(self) -> float:
        """Range of what is seen."""
        span = float(np.ptp(self.reward))
        return span if span > LEAST_SPAN else max(self.bounds[1] - self.bounds[0], LEAST_SPAN)


# Rules of one line ------------------------------------------------------------------------------


def last_third(asked: Asked) -> float:
    """Mean of the last third of what is seen."""
    return float(asked.reward[-max(1, asked.reward.size // 3) :].mean())


def last_value(asked: Asked) -> float:
    """Mean of the last fifth, of three rows at least: a single row is noise."""
    return float(asked.reward[-max(3, asked.reward.size // 5) :].mean())


RULES: dict[str, Callable[[Asked], float]] = {
    "last third": last_third,
    "last value": last_value,
}


# Curves ------------------------------------------------------------------------------------------


def _logistic(theta: FloatArray, time: FloatArray) -> FloatArray:
    middle, width = np.exp(theta[2]), np.exp(theta[2] - theta[3]) / 4
    low = expit(-middle / width)
    risen = (expit((time - middle) / width) - low) / (1 - low)
    return np.asarray(theta[0] + (theta[1] - theta[0]) * risen)


CURVES = {
    "exponential": ENSEMBLE["exponential"],
    "hill": ENSEMBLE["hill"],
    "ScaleRL sigmoid": Curve(_logistic, (TIME, SHAPE)),
    "power law": ENSEMBLE["power"],
}
"""The sigmoid in log compute of ScaleRL (arXiv:2510.13786) is the Hill curve; a logistic in steps
stands beside it under that paper's name for the shape."""


def curves(asked: Asked) -> dict[str, FloatArray]:
    """Draws of every family, of all by their information criterion, and of a wandering level."""
    seen, steps = asked.case.seen, asked.case.steps
    rng = np.random.default_rng(0)
    fits = {
        name: curve_fit(seen, steps, curve, asked.bounds, rng) for name, curve in CURVES.items()
    }
    return {name: fit[0] for name, fit in fits.items()} | {
        "ensemble of curves": mixed(list(fits.values()), rng),
        "local level": local_level(seen, steps, rng),
    }


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
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

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
