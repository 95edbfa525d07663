"""Whether the runs of a project are missed together, as far as their forecasts go together.

    python case_studies/real_runs/siblings.py FOLDER... [--fast] [--interim FOLDER]
        [--out siblings.json]

Runs of a cohort with different settings are cut at a share and forecast as new runs, as in
`advise.py`, from one posterior. Scored are the mean of their ends and the differences between
them: as drawn; each drawn by itself; and with one level more that all runs of a project share,
under which the forecast of a single run stays the same. Presets leave out the repository that is
predicted, analogues its runs; how far analogues reach is in sample.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from advise import BINS, MOST_RUNS  # noqa: E402
from engine_flags import on_engine, results  # noqa: E402
from run import (  # noqa: E402
    Run,
    asked_for,
    by_cohort,
    first_part,
    how_asked,
    load,
    marks_of,
    presets,
    write,
)

from advisor.backtesting.cases import is_lora  # noqa: E402
from advisor.common import Item  # noqa: E402
from advisor.forecast import (  # noqa: E402
    Forecaster,
    Target,
    crps,
    final_rows,
    final_train_reward,
    fitted_or_none,
)
from advisor.model import Priors, Sampling  # noqa: E402

LEVELS = {"as drawn": 0.0, "level of 0.2": 0.2, "level of 0.4": 0.4, "level of 0.8": 0.8}
"""Share of a forecast's variance, in normal scores, that a level more makes common."""

ALONE = "each by itself"


def settings_of(run: Run) -> tuple[Any, ...]:
    """What a forecast of a run turns on."""
    own, of = run.pilot.hyperparameters, (run.pilot.task, run.pilot.model)
    return *of, own.learning_rate, own.group_size, own.prompts_per_step, own.refresh_interval


def study(task: tuple[Sequence[Run], float, Priors, bool]) -> list[dict[str, Any]]:
    """Draws of the ends of a cohort's runs, one of each settings, as shares of the range."""
    cohort, share, priors, fast = task
    warnings.simplefilter("ignore")
    parts = [first_part(run.pilot, share) for run in cohort]
    posterior, _ = fitted_or_none(parts, priors, Sampling.first_look() if fast else None)
    if posterior is None:
        return []
    meta, draws, came = posterior.meta, [], []
    fitted = {run.id: run for run in meta.runs}
    for place, run in enumerate({settings_of(run): run for run in reversed(cohort)}.values()):
        steps = int(run.pilot.step[-1])
        own = fitted.get(run.pilot.id)
        if own is None or not BINS[0] < steps / meta.longest <= BINS[-1]:
            continue
        # Each run has a seed of its own.
        known = Forecaster(posterior, Target(own.task, own.model, own.parameters), seed=place)
        ends = final_train_reward(known, own.settings.or_planned_over(steps), steps)
        draws.append(meta.as_share(ends[::4]).round(5).tolist())
        came.append(float(meta.as_share(run.pilot.reward[final_rows(run.pilot)].mean())))
    kept = {"repository": cohort[0].repository, "draws": draws, "came": came}
    return [kept] if len(draws) > 1 else []


def with_level(draws: np.ndarray, shared: float, rng: np.random.Generator) -> np.ndarray:
    """The same forecasts, shape (runs, draws), with ranks that go together further."""
    from scipy.special import ndtri

    level, found = rng.standard_normal(draws.shape[1]), []
    for own in draws:
        scores = ndtri((own.argsort(kind="stable").argsort() + 0.5) / own.size)
        ranks = np.sqrt(shared) * level + np.sqrt(1 - shared) * scores
        found.append(np.sort(own)[ranks.argsort().argsort()])
    return np.array(found)


def scores(draws: np.ndarray, came: np.ndarray) -> list[float]:
    """Correlation of draws, and of misses over their squares; cover and CRPS of mean, of pairs."""
    from scipy.special import ndtri

    pairs = list(combinations(range(len(came)), 2))
    both = np.column_stack([came, draws])
    rows = [both.mean(axis=0), *(both[one] - both[other] for one, other in pairs)]
    of = []
    for end, *said in rows:
        low, high = np.quantile(said, [0.1, 0.9])
        of.append((low <= end <= high, crps(np.array(said), end)))
    missed = ndtri(np.clip((draws < came[:, None]).mean(axis=1), 0.005, 0.995))
    together = np.mean([missed[one] * missed[other] for one, other in pairs])
    alike = np.mean([np.corrcoef(draws[one], draws[other])[0, 1] for one, other in pairs])
    return [alike, together, np.mean(missed**2), *of[0], *np.mean(of[1:], axis=0)]


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Scores of each way to draw; a repository counts by the root of its cohorts."""
    names = np.array([one["repository"] for one in found])
    weight = np.array([(names == name).sum() ** -0.5 for name in names])
    told: dict[str, Any] = {}
    for name, shared in {ALONE: None, **LEVELS}.items():
        rng, rows = np.random.default_rng(0), []
        for one in found:
            draws = np.array(one["draws"])
            moved = (
                rng.permuted(draws, axis=1) if shared is None else with_level(draws, shared, rng)
            )
            # An end beyond the bounds counts as one at them, as forecasts do.
            rows.append(scores(moved, np.clip(one["came"], 0.0, 1.0)))
        alike, together, squares, *rest = np.average(rows, axis=0, weights=weight)
        values = [alike, together / squares, *rest]
        keys = ("draws", "misses", "mean held", "mean crps", "pairs held", "pairs crps")
        told[name] = {key: round(float(of), 4) for key, of in zip(keys, values, strict=True)}
    return told


def main() -> None:
    """Read, fit, score."""
    given = asked_for(__doc__)
    runs, unread = load(given.folders)
    priors, items = presets(runs, given.preset, given.interim), []
    for share in given.seen:
        for name, cohort in by_cohort(runs).items():
            taken = cohort[:MOST_RUNS]
            if len({settings_of(run) for run in taken}) > 1:
                preset = priors[cohort[0].repository, is_lora(cohort[0].pilot)]
                marks = marks_of(taken, share, preset, given.fast)
                items.append(
                    Item(f"{name} at {share:g}", (taken, share, preset, given.fast), marks)
                )
    found = [one for part in results(study, items, "Forecasting", on_engine(given)) for one in part]
    document = {
        "cohorts": len(found),
        "repositories": len({one["repository"] for one in found}),
        "runs": sum(len(one["came"]) for one in found),
        **summary(found),
        "unread": unread,
        **how_asked(given, Path(__file__)),
    }
    write(given, document, [])


if __name__ == "__main__":
    main()
