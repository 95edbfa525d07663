"""How right forecasts were, whether their intervals cover, and what is shown of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.common import Words, counted
from advisor.forecast import crps
from advisor.theory import FloatArray

ADVISOR, NEW_RUN, SIMPLEST = "advisor", "advisor, as a new run", "last value"
"""What `watch` would predict of a run that has begun if its pilots were fitted with it, what
`advise` predicts of another run of its settings, and the rule that both are compared with."""

FEWEST = 5  # Runs below which no verdict is given on forecasts

RARE = 0.05
"""Chance of so few intervals that hold, or fewer, below which they are called too narrow."""

INTERVALS = (0.5, 0.8, 0.95)
QUANTILES = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)


class Prediction(NamedTuple):
    """One method's forecast of one run."""

    method: str
    cohort: str
    run: str
    seen: float
    bounds: tuple[float, float]
    target: float
    quantiles: tuple[float, ...]
    crps: float

    @classmethod
    def of_json(cls, saved: Sequence[Any]) -> Prediction:
        """Prediction whose tuples JSON made lists."""
        found = cls(*saved)
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

    def ends(self, interval: float) -> tuple[float, float]:
        """Ends of a central interval."""
        low = QUANTILES.index(round((1 - interval) / 2, 3))
        return self.quantiles[low], self.quantiles[-1 - low]

    def covers(self, interval: float) -> bool:
        """Whether the central interval holds the target."""
        low, high = self.ends(interval)
        return low <= self.target <= high


class ForecastTask(NamedTuple):
    """What all methods are asked: the first attributes of a prediction."""

    cohort: str
    run: str
    seen: float
    bounds: tuple[float, float]
    target: float


def predict(method: str, question: ForecastTask, draws: FloatArray) -> Prediction:
    """Summarise predictive draws of shape (draws,)."""
    quantiles = tuple(np.quantile(draws, QUANTILES).tolist())
    return Prediction(method, *question, quantiles, crps(draws, question.target))


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
    """Scores of all methods, and what could not be asked or forecast."""

    predictions: tuple[Prediction, ...]  # one for each method, run and share seen
    left_out: tuple[str, ...]  # runs that could not be asked about, and why
    failed: tuple[str, ...]  # cohorts whose sampler did not converge; they count for no method
    uncurved: tuple[str, ...] = ()  # cohorts without a pooled curve, and why: analogues alone
    broken: tuple[str, ...] = ()  # cohorts whose forecast ended in another error, and which

    def __repr__(self) -> str:
        """How much was asked; ``methods()`` has the scores."""
        runs = len({p.run for p in self.predictions})
        return (
            f"Backtest({counted(len(self.predictions), 'prediction')} of {counted(runs, 'run')}; "
            f"{len(self.left_out)} left out, {counted(len(self.failed), 'cohort')} not converged)"
        )

    def parts(self) -> dict[str, list[Prediction]]:
        """Predictions by the share of a run that was seen."""
        parts: dict[str, list[Prediction]] = {}
        for p in self.predictions:
            parts.setdefault(f"{p.seen:g}", []).append(p)
        return parts

    def methods(self, part: str | None = None) -> dict[str, dict[str, Any]]:
        """Scores by method of one part [default: the first], pooled and of each cohort."""
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

    def verdicts(self) -> list[str]:
        """Whether to use what `watch` and `advise` say of such runs, a sentence each."""
        found = []
        for part, asked in self.parts().items():
            for method, of in ((ADVISOR, "of runs that go on"), (NEW_RUN, "of new runs")):
                mine = [p for p in asked if p.method == method]
                same = {(p.cohort, p.run) for p in mine}
                own = [p for p in asked if p.method == SIMPLEST and (p.cohort, p.run) in same]
                if own and mine:
                    seen = f"{float(part):.0%} seen: " if len(self.parts()) > 1 else ""
                    found.append(f"{seen}{_verdict(mine, own, of)}")
        return found

    def lines(self) -> str:
        """Every forecast as one line of JSON: method, run, target and quantiles by their level."""
        return "".join(json.dumps(_line(p), allow_nan=False) + "\n" for p in self.predictions)

    def to_json(self) -> str:
        """Scores of the first part, of each where there are several, and what was left out."""
        document: dict[str, Any] = {"methods": self.methods(), "verdicts": self.verdicts()}
        parts = list(self.parts())
        if len(parts) > 1:
            document["by_share"] = {part: self.methods(part) for part in parts}
        for name in ("left_out", "failed", "uncurved", *(["broken"] if self.broken else [])):
            document[name] = list(getattr(self, name))
        return json.dumps(document, indent=1, allow_nan=False)


def _verdict(mine: Sequence[Prediction], simplest: Sequence[Prediction], of: str) -> str:
    """One sentence on forecasts: how far they miss, beside the last value, and what holds."""
    from scipy.special import bdtr

    errors = [score(one)["mae"] for one in (mine, simplest)]
    held, runs = sum(p.covers(0.8) for p in mine), len(mine)
    return _say("verdict", runs, of, *errors, held, runs < FEWEST, bdtr(held, runs, 0.8) < RARE)


_say = Words("advisor.backtesting", "backtest.txt.j2", counted=counted)


def _line(p: Prediction) -> dict[str, Any]:
    quantiles = {f"{q:g}": value for q, value in zip(QUANTILES, p.quantiles, strict=True)}
    return p._asdict() | {"bounds": list(p.bounds), "quantiles": quantiles}


def show(found: Backtest, console: Console) -> None:
    """Print the scores of all methods, and what was left out."""
    parts, unit = found.parts(), ""
    if parts:
        table = _table(found)
        for part in parts:
            methods = found.methods(part)
            for method, scores in methods.items():
                shares = [f"{share:.0%}" for share in scores["coverage"].values()]
                row = [method, f"{scores['mae']:.3f}", f"{scores['crps']:.3f}", *shares]
                if len(parts) > 1:
                    row.insert(0, f"{float(part):.0%}" if method == next(iter(methods)) else "")
                table.add_row(*row)
            table.add_section()
        console.print(table)
        is_shared = {p.bounds for p in found.predictions} != {(0.0, 1.0)}
        unit = "as shares of the reward's range" if is_shared else "in reward units"
    reasons = _by_reason(found.uncurved, " cohorts"), _by_reason(found.left_out)
    if text := _say("below", found, unit, *map(list, reasons)):
        console.print(Text(text))


def _by_reason(lines: tuple[str, ...], unit: str = "") -> Iterator[tuple[str, str]]:
    """Each reason with what it concerns, the most common first."""
    reasons: dict[str, list[str]] = {}
    for line in lines:
        name, _, why = line.partition(": ")
        reasons.setdefault(why, []).append(name)
    for why, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        first = names[0]
        yield why, first if len(names) == 1 else f"{len(names)}{unit}, for example {first}"


def _table(found: Backtest) -> Table:
    runs = len({(p.cohort, p.run) for p in found.predictions})
    cohorts = len({p.cohort for p in found.predictions})
    what = f"{counted(runs, 'run')} in {counted(cohorts, 'cohort')}"
    table = Table(
        title=f"Final reward: {what}", title_justify="left", header_style="bold", box=SIMPLE
    )
    names = ["method", "mean error", "CRPS", "50 % holds", "80 % holds", "95 % holds"]
    if len(found.parts()) > 1:
        names.insert(0, "seen")
    for name in names:
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    return table
