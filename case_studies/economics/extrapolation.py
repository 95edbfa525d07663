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
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from extrapolating import LEVELS, Forecasts, summary, tell  # noqa: E402
from run import (  # noqa: E402
    Item,
    Purse,
    add_engine_flags,
    all_runs,
    digest_of,
    fit_runs,
    launched,
    on_engine,
    read_all,
    results,
    varied,
)

from advisor.forecast import Forecaster, final_reward, final_steps  # noqa: E402
from advisor.model import load_priors  # noqa: E402
from advisor.model.priors import AS_THE_CURVE  # noqa: E402

# Workers look up `run` here first, not in the folder of the replays.
sys.path.insert(0, str(HERE))

COUNTS = (3, 5, 8)
TIMES = (2, 4, 8)


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
        posterior = fit_runs([purse.world.pilot(i, pilots.steps) for i in pilots.runs], priors, 0)
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
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    purses = [Purse(world) for world in read_all(given.tables)]
    data = digest_of([[run.digest for run in purse.world.runs] for purse in purses])
    items = [
        Item(purse.world.name, (purses, number), (data, digest_of(number)))
        for number, purse in enumerate(purses)
    ]
    found = results(study, items, "Extrapolating", on_engine(given))
    told = summary(Forecasts.of([record for part in found for record in part]))
    tell(Path(__file__), told, given.out, given.tables)


if __name__ == "__main__":
    main()
