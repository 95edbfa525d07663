"""Whether forecasts of public runs hold far beyond their beginnings.

    python case_studies/real_runs/extrapolation.py FOLDER... [--seen 0.1] [--out extrapolation.json]

Runs of a cohort are cut at a share and fitted under the shipped preset, as pilots are; the mean of
the last tenth of each is forecast as that of a new run of its settings, which is what `advise`
says: by the curve alone, and with the correction that was learned on the other repositories.
Presets were learned from these runs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from engine_flags import add_engine_flags, on_engine, results  # noqa: E402
from extrapolating import LEVELS, Forecasts, summary, tell  # noqa: E402
from run import Run, by_cohort, first_part, load, marks_of, presets  # noqa: E402

from advisor.common import Item  # noqa: E402
from advisor.forecast.fitting import fitted_or_none  # noqa: E402
from advisor.forecast.forecaster import Forecaster, Target  # noqa: E402
from advisor.forecast.predictive import final_reward, final_rows  # noqa: E402
from advisor.model.priors import AS_THE_CURVE, Priors  # noqa: E402

MOST_RUNS = 6
"""Of a cohort: as many pilots as a team has."""


def study(task: tuple[Sequence[Run], float, Priors]) -> list[dict[str, Any]]:
    """Forecasts of the runs of one cohort from their beginnings."""
    cohort, share, priors = task
    warnings.simplefilter("ignore")
    parts = [first_part(run.pilot, share) for run in cohort]
    posterior, _ = fitted_or_none(parts, priors.model_copy(update={"extrapolation": AS_THE_CURVE}))
    if posterior is None:
        return []
    meta, found = posterior.meta, []
    fitted = {run.id: run for run in meta.runs}
    for run in cohort:
        if run.pilot.id not in fitted:
            continue
        own, steps = fitted[run.pilot.id], int(run.pilot.step[-1])
        forecaster = Forecaster(posterior, Target(own.task, own.model, own.parameters))
        draws = final_reward(forecaster, own.settings.or_planned_over(steps), steps)
        came, (low, high) = (
            run.pilot.reward[final_rows(run.pilot)].mean(),
            (meta.floor, meta.ceiling),
        )
        found.append(
            {
                "world": run.repository,
                "task": run.repository,
                "start": float(np.median(forecaster.group.start)),
                "times": steps / meta.longest,
                "run": run.pilot.id,
                "is_piloted": True,
                "came": float(np.clip((came - low) / (high - low), 0, 1)),
                "quantiles": np.quantile((draws - low) / (high - low), LEVELS).round(5).tolist(),
            }
        )
    return found


def main() -> None:
    """Read, forecast, score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seen", type=float, default=0.1)
    add_engine_flags(parser)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    runs, _ = load(given.folders)
    of = presets(runs, "shipped", HERE)
    items = []
    for name, cohort in by_cohort(runs).items():
        is_lora = cohort[0].pilot.hyperparameters.adapter == "lora"
        taken, priors = cohort[:MOST_RUNS], of[cohort[0].repository, is_lora]
        items.append(Item(name, (taken, given.seen, priors), marks_of(taken, given.seen, priors)))
    found = results(study, items, "Extrapolating", on_engine(given))
    told = summary(Forecasts.of([record for part in found for record in part]))
    told |= {"cohorts": len(items), "without a fit": sum(not part for part in found)}
    tell(Path(__file__), told, given.out)


if __name__ == "__main__":
    main()
