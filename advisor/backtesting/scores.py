"""How right a forecast was, and whether its intervals mean what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from advisor.common import counted
from advisor.theory import FloatArray

INTERVALS = (0.5, 0.8, 0.95)
QUANTILES = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)


class Prediction(NamedTuple):
    """One method's forecast of one run."""

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
    """Continuous ranked probability score of draws (Gneiting and Raftery 2007, eq. 20)."""
    ordered = np.sort(draws)
    size = ordered.size
    weights = 2 * np.arange(1, size + 1) - size - 1
    return float(np.abs(ordered - target).mean() - (weights * ordered).sum() / size**2)


def score(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Mean absolute error, CRPS and coverage of forecasts of one method."""
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


@dataclass(frozen=True)
class Backtest:
    """Scores of all methods.

    Attributes
    ----------
    predictions : tuple of Prediction
        One for each method, run and share seen.
    left_out : tuple of str
        Runs that could not be asked about, and why.
    failed : tuple of str
        Cohorts on which the sampler did not converge; they count for no method.
    uncurved : tuple of str
        Cohorts over which no curve could be pooled, and why; analogues alone forecast their runs.
    broken : tuple of str
        Cohorts whose forecast ended in another error, and which.
    waiting : int
        Cohorts that other shards have yet to forecast.
    """

    predictions: tuple[Prediction, ...]
    left_out: tuple[str, ...]
    failed: tuple[str, ...]
    uncurved: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    waiting: int = 0

    def __repr__(self) -> str:
        """How much was asked; ``methods()`` has the scores."""
        runs = len({p.run for p in self.predictions})
        return (
            f"Backtest({counted(len(self.predictions), 'prediction')} of {counted(runs, 'run')}; "
            f"{len(self.left_out)} left out, {counted(len(self.failed), 'cohort')} not converged)"
        )

    @property
    def is_transfer(self) -> bool:
        """Whether runs were forecast from those of other models."""
        return any(p.pilots is not None for p in self.predictions)

    def parts(self) -> dict[str, list[Prediction]]:
        """Predictions by the share of a run that was seen, or by pilots of its own model."""
        parts: dict[str, list[Prediction]] = {}
        for p in self.predictions:
            parts.setdefault(f"{p.seen:g}" if p.pilots is None else str(p.pilots), []).append(p)
        return parts

    def methods(self, part: str | None = None) -> dict[str, dict[str, Any]]:
        """Scores by method, pooled over cohorts, with those of each cohort.

        Parameters
        ----------
        part : str, optional
            Of :meth:`parts` [default: the first].
        """
        parts = self.parts()
        asked = parts[part or next(iter(parts))] if parts else []
        scores: dict[str, dict[str, Any]] = {}
        for method in dict.fromkeys(p.method for p in asked):
            own = [p for p in asked if p.method == method]
            cohorts = dict.fromkeys(p.cohort for p in own)
            scores[method] = score(own) | {
                "cohorts": {name: score([p for p in own if p.cohort == name]) for name in cohorts}
            }
        return scores

    def lines(self) -> str:
        """Every forecast as one line of JSON: method, run, target and quantiles by their level."""
        return "".join(json.dumps(_line(p), allow_nan=False) + "\n" for p in self.predictions)

    def to_json(self) -> str:
        """Scores, and what was left out, as JSON.

        Returns
        -------
        text : str
            ``methods`` holds the scores of the first part; where there are several, ``by_share``
            or ``by_pilots`` holds those of each, the first among them.
        """
        document: dict[str, Any] = {"methods": self.methods()}
        parts = list(self.parts())
        if len(parts) > 1:
            name = "by_pilots" if self.is_transfer else "by_share"
            document[name] = {part: self.methods(part) for part in parts}
        document |= {
            "left_out": list(self.left_out),
            "failed": list(self.failed),
            "uncurved": list(self.uncurved),
        }
        if self.broken:
            document["broken"] = list(self.broken)
        if self.waiting:
            document["waiting"] = self.waiting
        return json.dumps(document, indent=1, allow_nan=False)


def _line(p: Prediction) -> dict[str, Any]:
    line = p._asdict() | {
        "bounds": list(p.bounds),
        "quantiles": {f"{q:g}": value for q, value in zip(QUANTILES, p.quantiles, strict=True)},
    }
    if p.pilots is None:
        del line["pilots"]
    return line
