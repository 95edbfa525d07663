"""How far do short pilots reach? Intervals of a run's end, by how much longer it is than a pilot.

    python case_studies/economics/reach.py TABLE.jsonl[.gz]... [--records FILE] [--out reach.json]

The advisor is fitted to the ladders of pilots of ``run.py``, and forecasts the mean of the last
tenth of every run of the world that has not collapsed by then, at 2, 4 and 8 times the pilots'
length and at the length that the purse has left.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import numpy as np  # noqa: E402
from run import (  # noqa: E402
    Item,
    Purse,
    add_engine_flags,
    all_runs,
    digest_of,
    fit_runs,
    ladder,
    launched,
    manifest,
    on_engine,
    read_all,
    results,
    run_digest,
)

from advisor.backtesting.scores import crps  # noqa: E402
from advisor.forecast.forecaster import Forecaster  # noqa: E402
from advisor.forecast.predictive import final_reward, final_steps  # noqa: E402

COUNTS = (3, 5, 8)
TIMES = (2, 4, 8)
LEVELS = np.arange(1, 20) / 20
BINS = (1.0, 3.0, 6.0, 10.0, 18.0, 100.0)
"""Edges of how many times longer than its pilots a run is."""


def study(task: tuple[list[Purse], int]) -> list[dict[str, Any]]:
    """Forecasts of every run of one world from each ladder."""
    purses, number = task
    warnings.simplefilter("ignore")
    purse = purses[number]
    others = [p for p in purses if p.world.target.task != purse.world.target.task]
    base, found = launched(purse, others), []
    for count in COUNTS:
        pilots = ladder(purse, base, count, np.random.default_rng(0))
        posterior = fit_runs([purse.world.pilot(i, pilots.steps) for i in pilots.runs], None, 0)
        if isinstance(posterior, str):
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
                came = float(np.mean(purse.world.rows[index]["reward"][rows[0] - 1 : steps]))
                found.append(
                    {
                        "world": purse.world.name,
                        "task": purse.world.target.task,
                        "pilots": count,
                        "pilot_steps": pilots.steps,
                        "steps": steps,
                        "run": index,
                        "is_piloted": index in pilots.runs,
                        "came": came,
                        "pit": float(np.mean(draws < came)),
                        "crps": float(crps(draws, came)),
                        "quantiles": np.quantile(draws, LEVELS).round(4).tolist(),
                    }
                )
    return found


def main() -> None:
    """Read, forecast, score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="+", type=Path)
    add_engine_flags(parser)
    parser.add_argument("--records", type=Path, help="write them here, as JSON lines")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    purses = [Purse(world) for world in read_all(given.tables)]
    data = digest_of([[run_digest(run) for run in purse.world.runs] for purse in purses])
    items = [
        Item(purse.world.name, (purses, number), (data, digest_of(number)))
        for number, purse in enumerate(purses)
    ]
    found = results(study, items, "Reaching", on_engine(given))
    records = [record for part in found for record in part]
    if given.records is not None:
        lines = (json.dumps(one) + "\n" for one in records)
        given.records.write_text("".join(lines), encoding="utf-8")
    told = summary(records)
    told["manifest"] = manifest(Path(__file__), seeds=1, checks={}, inputs=given.tables)
    text = json.dumps(told, indent=1)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What intervals hold, by how much longer a run is; a world counts once."""
    told: dict[str, Any] = {"worlds": len({one["world"] for one in records})}
    for is_piloted in (True, False):
        for low, high in pairwise(BINS):
            own = [
                one
                for one in records
                if one["is_piloted"] == is_piloted
                and low < one["steps"] / one["pilot_steps"] <= high
            ]
            if own:
                who = "piloted settings" if is_piloted else "others"
                told[f"{who}, {low:g} to {high:g} times"] = _score(own)
    return told


def _score(records: list[dict[str, Any]]) -> dict[str, Any]:
    worlds = sorted({one["world"] for one in records})
    parts = [[one for one in records if one["world"] == world] for world in worlds]

    def mean(value: Any) -> float:
        return round(float(np.mean([np.mean([value(one) for one in part]) for part in parts])), 4)

    return {
        "worlds": len(worlds),
        "forecasts": len(records),
        "runs": len({(one["world"], one["run"]) for one in records}),
        "holds": {
            "0.5": mean(lambda one: 0.25 <= one["pit"] <= 0.75),
            "0.8": mean(lambda one: 0.1 <= one["pit"] <= 0.9),
            "0.9": mean(lambda one: 0.05 <= one["pit"] <= 0.95),
        },
        "above the median": mean(lambda one: one["pit"] > 0.5),
        "error": mean(lambda one: abs(one["came"] - one["quantiles"][9])),
        "crps": mean(lambda one: one["crps"]),
        "width of 0.8": mean(lambda one: one["quantiles"][17] - one["quantiles"][1]),
    }


if __name__ == "__main__":
    main()
