"""The one interval: what it is central to, how probable it is, and a band of it along a run."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel

from advisor.model import INTERVAL
from advisor.theory import FloatArray

DEVIATIONS = 1.2816
"""Standard deviations of a normal distribution to either end of a central interval of 80 %."""


class Interval(BaseModel, frozen=True):
    """Mean, median and central interval of a quantity, in its own units."""

    mean: float
    median: float
    low: float
    high: float
    probability: float = INTERVAL  # that the interval from low to high holds

    def written(self, digits: int) -> str:
        """Median and interval to so many significant digits."""
        return f"{self.median:.{digits}g} [{self.low:.{digits}g}, {self.high:.{digits}g}]"


class Band(BaseModel, frozen=True):
    """Mean and central interval of the reward at each of some optimizer steps, in reward units.

    With the slow AR(1) residual of the run, without the noise of single batches, given that it
    stays stable.
    """

    step: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    probability: float = INTERVAL  # that the interval of one step holds


def central(draws: FloatArray, probability: float = INTERVAL) -> FloatArray:
    """Low end, median and high end over the first axis of draws, shape (3, ...)."""
    ends = (1 - probability) / 2, 0.5, (1 + probability) / 2
    return np.asarray(np.quantile(draws, ends, axis=0))


def interval_of(draws: FloatArray, *, mean: float | None = None) -> Interval:
    """Interval of draws of shape (draws,); ``mean`` is a point forecast in place of theirs."""
    low, median, high = central(draws).tolist()
    point = float(draws.mean()) if mean is None else mean
    return Interval(mean=point, median=median, low=low, high=high)


def band_of(steps: FloatArray, draws: FloatArray) -> Band:
    """Band along steps, from draws of shape (draws, steps)."""
    low, _, high = central(draws)
    return Band(
        step=tuple(int(step) for step in steps),
        mean=tuple(draws.mean(axis=0).tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )


def crps(draws: FloatArray, target: float) -> float:
    """Continuous ranked probability score of draws (Gneiting and Raftery 2007, eq. 20)."""
    ordered = np.sort(draws)
    size = ordered.size
    weights = 2 * np.arange(1, size + 1) - size - 1
    return float(np.abs(ordered - target).mean() - (weights * ordered).sum() / size**2)
