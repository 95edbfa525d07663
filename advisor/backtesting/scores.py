"""How right a forecast was, and whether its intervals mean what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from advisor.theory import FloatArray

INTERVALS = (0.5, 0.8, 0.95)
QUANTILES = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)


class Prediction(NamedTuple):
    """One method's forecast of one run.

    Attributes
    ----------
    method, cohort, run : str
    seen : float
        Share of the run that was seen; of a run that has not begun, share of its pilots.
    pilots : int or None
        Pilots of the run's own model, where those of another one were seen in place of the run.
    bounds : (float, float)
        Floor and ceiling of the reward.
    target : float
        What the run came to.
    quantiles : tuple of float
        At ``QUANTILES``.
    crps : float
        Continuous ranked probability score of the draws, in reward units.
    """

    method: str
    cohort: str
    run: str
    seen: float
    pilots: int | None
    bounds: tuple[float, float]
    target: float
    quantiles: tuple[float, ...]
    crps: float

    @classmethod
    def of_json(cls, told: Sequence[Any]) -> Prediction:
        """Prediction whose tuples JSON made lists."""
        found = cls(*told)
        low, high = found.bounds
        return found._replace(bounds=(low, high), quantiles=tuple(found.quantiles))

    @property
    def median(self) -> float:
        """The forecast, where a single number is wanted."""
        return self.quantiles[QUANTILES.index(0.5)]

    @property
    def error(self) -> float:
        """Absolute error of the median, in reward units."""
        return abs(self.median - self.target)

    def scaled(self, reward: float) -> float:
        """Reward as a share of its range."""
        floor, ceiling = self.bounds
        return (reward - floor) / (ceiling - floor)

    def covers(self, interval: float) -> bool:
        """Whether the central interval holds the target."""
        low = QUANTILES.index(round((1 - interval) / 2, 3))
        return self.quantiles[low] <= self.target <= self.quantiles[-1 - low]


class Question(NamedTuple):
    """What all methods are asked: the first attributes of a prediction."""

    cohort: str
    run: str
    seen: float
    pilots: int | None
    bounds: tuple[float, float]
    target: float


def predict(method: str, question: Question, draws: FloatArray) -> Prediction:
    """Summarise predictive draws of shape (draws,)."""
    quantiles = tuple(np.quantile(draws, QUANTILES).tolist())
    return Prediction(method, *question, quantiles, crps(draws, question.target))


def crps(draws: FloatArray, target: float) -> float:
    """Continuous ranked probability score of draws (Gneiting and Raftery 2007, eq. 20).

    ``E|X - y| - E|X - X'| / 2``, in the draws' units; smaller is better.
    """
    ordered = np.sort(draws)
    size = ordered.size
    weights = 2 * np.arange(1, size + 1) - size - 1
    return float(np.abs(ordered - target).mean() - (weights * ordered).sum() / size**2)


def score(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Mean absolute error, CRPS and coverage of forecasts of one method.

    Errors are shares of the reward's range, so that rewards on different scales can be pooled; of a
    reward between 0 and 1 that is its own unit.
    """
    width = np.array([ceiling - floor for floor, ceiling in (p.bounds for p in predictions)])
    return {
        "runs": len(predictions),
        "mae": float(np.mean([p.error for p in predictions] / width)),
        "crps": float(np.mean([p.crps for p in predictions] / width)),
        "coverage": {
            f"{interval:g}": float(np.mean([p.covers(interval) for p in predictions]))
            for interval in INTERVALS
        },
    }
