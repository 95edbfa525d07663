"""Forecasts of runs longer than their pilots: by the curve alone, and with a learned correction.

Shared by the studies that make such forecasts in trained worlds and of public runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from manifest import manifest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from advisor.backtesting.scores import crps
from advisor.theory import BoolArray, FloatArray

LEVELS = (np.arange(100) + 0.5) / 100
"""Quantiles by which a forecast is kept."""

BINS = (1.0, 3.0, 6.0, 12.0, 100.0)
"""Edges of how many times longer than its pilots a run is."""

TAIL = 0.1
"""Beyond each end of the intervals by which the correction is chosen."""

GAINS = (-1.0, 4.0)
"""Among which the correction is looked for."""

LEAST = 1e-3
"""Share of the range by which a forecast stays clear of its ends, in log-odds."""


class Forecasts(NamedTuple):
    """What was said of the ends of runs, and what came, one entry each.

    Attributes
    ----------
    world, task, run : ndarray of str, shape (forecasts,)
    start : ndarray of shape (forecasts,)
        Level before training, by the fit.
    times : ndarray of shape (forecasts,)
        Length of the run over that of its pilots.
    beyond : ndarray of shape (forecasts,)
        E-folds that it goes beyond what they show, as `Forecaster.beyond` has it.
    is_piloted : ndarray of bool, shape (forecasts,)
    came : ndarray of shape (forecasts,)
    said : ndarray of shape (forecasts, quantiles)
    """

    world: Any
    task: Any
    run: Any
    start: FloatArray
    times: FloatArray
    beyond: FloatArray
    is_piloted: BoolArray
    came: FloatArray
    said: FloatArray

    @classmethod
    def of(cls, records: list[dict[str, Any]]) -> Forecasts:
        """Forecasts of all worlds."""
        columns = {
            name: np.array([one[name] for one in records])
            for name in ("world", "task", "start", "times", "beyond", "is_piloted", "came")
        }
        run = np.array([f"{one['world']} {one['run']}" for one in records])
        return cls(run=run, said=np.array([one["quantiles"] for one in records]), **columns)

    def where(self, chosen: BoolArray) -> Forecasts:
        """Some of them."""
        return Forecasts(*(column[chosen] for column in self))

    def corrected(self, gain: float) -> Forecasts:
        """The same as `Forecaster.scaled_reward` corrects what is beyond the pilots' support."""
        beyond = self.beyond[:, None]
        share, start = np.clip(self.said, LEAST, 1 - LEAST), self.start[:, None]
        gained = np.clip((share - start) / (1 - start), 0.0, 1.0)
        moved = expit(logit(share) + gain * beyond * gained)
        return self._replace(said=np.where(beyond > 0, moved, self.said))

    def by_world(self, values: FloatArray) -> float:
        """Mean over worlds of the mean in each."""
        _, index = np.unique(self.world, return_inverse=True)
        return float(np.mean(np.bincount(index, values) / np.bincount(index)))

    def interval_score(self) -> float:
        """Width of 80 % intervals and what lies outside of them, as a proper score."""
        low, high = np.quantile(self.said, [TAIL, 1 - TAIL], axis=1)
        missed = np.maximum(low - self.came, 0) + np.maximum(self.came - high, 0)
        return self.by_world(high - low + missed / TAIL)

    def holds(self, tail: float = TAIL) -> float:
        """Share of intervals that hold what came."""
        low, high = np.quantile(self.said, [tail, 1 - tail], axis=1)
        return self.by_world((low <= self.came) & (self.came <= high))


def learned(known: Forecasts) -> float:
    """Gain whose 80 % intervals score best beyond what pilots show."""
    far = known.where(known.beyond > 0)
    found = minimize_scalar(
        lambda gain: far.corrected(gain).interval_score(), bounds=GAINS, method="bounded"
    )
    return float(found.x)


def left_out(known: Forecasts) -> tuple[Forecasts, list[float]]:
    """Forecasts by the gain of all other tasks, and those gains."""
    said, gains = known.said.copy(), []
    for task in np.unique(known.task):
        own = known.task == task
        gains.append(learned(known.where(~own)))
        said[own] = known.where(own).corrected(gains[-1]).said
    return known._replace(said=said), gains


def summary(known: Forecasts) -> dict[str, Any]:
    """What intervals hold, by how much longer a run is; a world counts once."""
    corrected, gains = left_out(known)
    methods = {"curve": known, "corrected by other tasks": corrected}
    told: dict[str, Any] = {
        "worlds": int(np.unique(known.world).size),
        "tasks": int(np.unique(known.task).size),
        "runs": int(np.unique(known.run).size),
        "gain": round(learned(known), 3),
        "gain without a task": [round(end(gains), 3) for end in (min, max)],
    }
    for name, method in methods.items():
        for who, own in (("piloted", known.is_piloted), ("others", ~known.is_piloted)):
            for low, high in pairwise(BINS):
                part = method.where(own & (known.times > low) & (known.times <= high))
                if part.came.size:
                    told.setdefault(name, {})[f"{who}, {low:g} to {high:g} times"] = _scores(part)
    return told


def tell(script: Path, told: dict[str, Any], out: Path | None, inputs: Sequence[Path] = ()) -> None:
    """Print what a study found, with what made it, and keep it where a file is named."""
    made = manifest(script, seeds=1, checks={}, inputs=inputs)
    text = json.dumps({**told, "manifest": made}, indent=1)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    print(text)


def _scores(own: Forecasts) -> dict[str, Any]:
    middle = np.quantile(own.said, 0.5, axis=1)
    scored = np.array([crps(said, came) for said, came in zip(own.said, own.came, strict=True)])
    numbers = {
        "error": own.by_world(np.abs(own.came - middle)),
        "bias": own.by_world(own.came - middle),
        "crps": own.by_world(scored),
        "holds 0.5": own.holds(0.25),
        "holds 0.8": own.holds(),
        "holds 0.9": own.holds(0.05),
        "above": own.by_world(own.came > np.quantile(own.said, 1 - TAIL, axis=1)),
    }
    return {
        "worlds": int(np.unique(own.world).size),
        "runs": int(np.unique(own.run).size),
        **{name: round(value, 4) for name, value in numbers.items()},
    }
