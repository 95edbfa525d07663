"""Whether what `advise` says of a new run's end holds, from pilots a part as long.

    python case_studies/real_runs/advise.py FOLDER... [--seen 0.1 0.25 0.5] [--preset shipped]
        [--predictions FILE] [--out FILE] [--interim FOLDER] [--only FOLDER]

Runs of a cohort are cut at a share and fitted as pilots are. The mean of the last tenth of each is
then forecast as that of a new run of its settings, which is what `advise` and `what-if` say; beside
it stand the pilot's last rows and its own exponential, carried on. By default what is learned from
real runs is learned again without the repository that is asked about; ``--preset shipped`` takes
what the package ships, for repositories that it has not seen. ``--only`` asks of the runs of one
folder, what is learned being learned from all.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from engine_flags import on_engine, results  # noqa: E402
from run import (  # noqa: E402
    Run,
    asked_for,
    by_cohort,
    corpora,
    first_part,
    how_asked,
    load,
    marks_of,
    of_folder,
    presets,
    settings_vary,
    write,
)

from advisor.backtesting.cases import is_lora  # noqa: E402
from advisor.backtesting.scores import crps  # noqa: E402
from advisor.common import Item  # noqa: E402
from advisor.forecast import (  # noqa: E402
    EXPONENTIAL,
    Corpus,
    Forecaster,
    Target,
    curve_fit,
    final_rows,
    final_steps,
    final_train_reward,
    fitted_or_none,
)
from advisor.model import Priors, Sampling  # noqa: E402

MOST_RUNS = 6
"""Of a cohort: as many pilots as a team has."""

LEVELS = (np.arange(100) + 0.5) / 100
"""Quantiles by which a forecast is kept."""

BINS = (1.0, 3.0, 6.0, 12.0)
"""Edges of how many times longer than its pilots a run is."""

METHODS = ("advisor", "last rows", "own exponential")


def study(task: tuple[Sequence[Run], float, Priors, Corpus, bool]) -> list[dict[str, Any]]:
    """Forecasts of the runs of one cohort from their beginnings, as shares of floor to ceiling."""
    cohort, share, priors, corpus, fast = task
    sampling = Sampling.first_look() if fast else None
    warnings.simplefilter("ignore")
    parts = {run.pilot.id: first_part(run.pilot, share) for run in cohort}
    posterior, _ = fitted_or_none(list(parts.values()), priors, sampling)
    if posterior is None:
        return []
    meta, found = posterior.meta, []
    low, high = meta.floor, meta.ceiling
    fitted = {run.id: run for run in meta.runs}
    for run in cohort:
        if run.pilot.id not in fitted:
            continue
        own, steps = fitted[run.pilot.id], int(run.pilot.step[-1])
        target = Target(own.task, own.model, own.parameters)
        forecaster = Forecaster(posterior, target, corpus=corpus)
        said = final_train_reward(forecaster, own.settings.or_planned_over(steps), steps)
        draws = {METHODS[0]: said} | carried_on(parts[run.pilot.id], steps, (low, high))
        came = float(run.pilot.reward[final_rows(run.pilot)].mean())
        found.append(
            {
                "repository": run.repository,
                "cohort": run.cohort,
                "run": run.pilot.id,
                "seen": share,
                "in_sweep": settings_vary(cohort),
                "times": steps / meta.longest,
                "died": own.collapse_step is not None,
                "came": float(np.clip((came - low) / (high - low), 0, 1)),
                "said": {
                    name: np.clip((np.quantile(values, LEVELS) - low) / (high - low), 0, 1)
                    .round(5)
                    .tolist()
                    for name, values in draws.items()
                },
            }
        )
    return found


def carried_on(pilot: Any, steps: int, bounds: tuple[float, float]) -> dict[str, Any]:
    """The pilot's last rows with their spread, and its own exponential, at the run's end."""
    rng = np.random.default_rng(0)
    reward = pilot.reward[np.isfinite(pilot.reward)]
    last = reward[-max(3, reward.size // 5) :]
    level = last.mean() + last.std(ddof=1) * rng.standard_normal(1000)
    curve, _ = curve_fit(pilot, final_steps(steps).astype(float), EXPONENTIAL, bounds, rng)
    return {"last rows": level, "own exponential": curve}


def scores(part: Sequence[dict[str, Any]], method: str) -> dict[str, Any]:
    """Error of the median, bias, CRPS and what 80 % intervals hold; a repository counts once."""
    rows = []
    for one in part:
        said, came = np.array(one["said"][method]), one["came"]
        low, middle, high = np.quantile(said, [0.1, 0.5, 0.9])
        rows.append((abs(came - middle), came - middle, crps(said, came), low <= came <= high))
    names = np.array([one["repository"] for one in part])
    by_name = np.array([np.mean(np.array(rows)[names == name], 0) for name in np.unique(names)])
    error, bias, score, holds = by_name.mean(0)
    several = len(by_name) > 1
    spread = by_name[:, 2].std(ddof=1) / len(by_name) ** 0.5 if several else None
    return {
        "n": len(part),
        "repositories": len(by_name),
        "mae": round(error, 4),
        "bias": round(bias, 4),
        "crps": round(score, 4),
        "crps_standard_error": None if spread is None else round(spread, 4),
        "coverage": {"0.8": round(holds, 4)},
        "holds of runs": round(float(np.mean([row[3] for row in rows])), 4),
    }


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Scores by how many times longer than its pilots a run is, and of all that were piloted."""
    told: dict[str, Any] = {}
    for low, high in pairwise(BINS):
        part = [one for one in found if low < one["times"] <= high]
        if part:
            told[f"{low:g}-{high:g}"] = {method: scores(part, method) for method in METHODS}
            told[f"{low:g}-{high:g}"] |= told[f"{low:g}-{high:g}"][METHODS[0]]
    told["piloted"] = {method: scores(found, method) for method in METHODS}
    told["piloted"] |= told["piloted"][METHODS[0]]
    sweeps = {one["repository"] for one in found if one["in_sweep"]}
    told["sweeps"] = {
        name: scores([one for one in found if one["repository"] == name], METHODS[0])
        for name in sorted(sweeps)
    }
    return told


def main() -> None:
    """Read, fit, forecast, score."""
    given = asked_for(__doc__)
    runs, unread = load(given.folders)
    corpus, priors = corpora(runs, given.preset), presets(runs, given.preset, given.interim)
    runs = of_folder(runs, given.only)
    items = []
    for share in given.seen:
        for name, cohort in by_cohort(runs).items():
            taken, repository = cohort[:MOST_RUNS], cohort[0].repository
            preset = priors[repository, is_lora(cohort[0].pilot)]
            task = (taken, share, preset, corpus[repository], given.fast)
            marks = marks_of(taken, share, preset, given.fast)
            items.append(Item(f"{name} at {share:g}", task, marks))
    found = [one for part in results(study, items, "Advising", on_engine(given)) for one in part]
    document = {
        **summary(found),
        "runs": len({one["run"] for one in found}),
        "repositories": len({one["repository"] for one in found}),
        "runs read": len(runs),
        "unread": unread,
        **how_asked(given, Path(__file__)),
    }
    write(given, document, found)
    if not given.out:
        print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
