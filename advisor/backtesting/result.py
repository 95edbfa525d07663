"""Forecasts of all methods, and their scores."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from advisor.backtesting.scores import QUANTILES, Prediction, score
from advisor.common import counted


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
    """

    predictions: tuple[Prediction, ...]
    left_out: tuple[str, ...]
    failed: tuple[str, ...]
    uncurved: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

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
        return json.dumps(document, indent=1, allow_nan=False)


def _line(p: Prediction) -> dict[str, Any]:
    line = p._asdict() | {
        "bounds": list(p.bounds),
        "quantiles": {f"{q:g}": value for q, value in zip(QUANTILES, p.quantiles, strict=True)},
    }
    if p.pilots is None:
        del line["pilots"]
    return line
