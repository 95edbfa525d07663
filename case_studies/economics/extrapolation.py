"""Do forecasts hold beyond short pilots? By how much longer a run is than its pilots.

    python case_studies/economics/extrapolation.py TABLE.jsonl[.gz]... [--out extrapolation.json]

The advisor is fitted to the varied pilots of ``run.py``, and forecasts the mean of the last
tenth of every run of the world that has not collapsed by then, at 2, 4 and 8 times the pilots'
length and at the length that the purse has left: by the curve alone, and with the correction that
was learned on the worlds of other tasks. That of all of them is what the preset ships.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from engine_flags import add_engine_flags  # noqa: E402
from manifest import write_result  # noqa: E402
from run import Purse, all_runs, fit_runs, launched, records_of, varied  # noqa: E402
from scipy.optimize import minimize_scalar  # noqa: E402
from scipy.special import expit, logit  # noqa: E402

from advisor.forecast import Forecaster, final_reward, final_steps  # noqa: E402
from advisor.model import load_priors  # noqa: E402
from advisor.model.priors import AS_THE_CURVE  # noqa: E402
from advisor.theory import BoolArray, FloatArray  # noqa: E402

COUNTS = (3, 5, 8)
TIMES = (2, 4, 8)
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

    def holds(self) -> float:
        """Share of 80 % intervals that hold what came."""
        low, high = np.quantile(self.said, [TAIL, 1 - TAIL], axis=1)
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
        for low, high in pairwise(BINS):
            part = method.where(~known.is_piloted & (known.times > low) & (known.times <= high))
            told.setdefault(name, {})[f"others, {low:g} to {high:g} times"] = {
                "runs": int(np.unique(part.run).size),
                "error": round(part.by_world(np.abs(part.came - np.median(part.said, axis=1))), 4),
                "holds 0.8": round(part.holds(), 4),
            }
    return told


def study(task: tuple[list[Purse], int]) -> list[dict[str, Any]]:
    """Forecasts of every run of one world from so many pilots."""
    purses, number = task
    warnings.simplefilter("ignore")
    purse = purses[number]
    priors = load_priors("small_models").model_copy(update={"extrapolation": AS_THE_CURVE})
    others = [p for p in purses if p.world.target.task != purse.world.target.task]
    base, found = launched(purse, others), []
    for count in COUNTS:
        pilots = varied(purse, base, count)
        posterior = fit_runs([purse.world.pilot(i, pilots.steps) for i in pilots.runs], priors)
        if posterior is None:
            continue
        forecaster = Forecaster(posterior, purse.world.target)
        left = purse.total - pilots.cost
        for steps in (*(k * pilots.steps for k in TIMES if k * pilots.steps < left), left):
            rows = final_steps(steps)
            for index in all_runs(purse):
                if purse.world.has_collapsed(index, steps):
                    continue
                settings = purse.world.settings(index).planned_over(steps)
                draws = final_reward(forecaster, settings, steps)
                beyond = forecaster.beyond(settings, [steps])
                rewards = purse.world.rows[index]["reward"][rows[0] - 1 : steps]
                found.append(
                    {
                        "world": purse.world.name,
                        "task": purse.world.target.task,
                        "pilots": count,
                        "start": float(np.median(forecaster.group.start)),
                        "times": steps / pilots.steps,
                        "beyond": beyond.item(),
                        "run": index,
                        "is_piloted": index in pilots.runs,
                        "came": float(np.mean(rewards)),
                        "quantiles": np.quantile(draws, LEVELS).round(5).tolist(),
                    }
                )
    return found


def main() -> None:
    """Read, forecast, score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="+", type=Path)
    add_engine_flags(parser)
    parser.add_argument("--out", type=Path, default=HERE / "extrapolation.json")
    given = parser.parse_args()
    told = summary(Forecasts.of(records_of(study, "Extrapolating", given)))
    write_result(given.out, told, Path(__file__), given.tables)


if __name__ == "__main__":
    main()
