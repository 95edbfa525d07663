"""What pooled curves and simpler methods say of the end of real runs that have begun.

    python case_studies/real_runs/run.py FOLDER... [--seen 0.1 0.25 0.5] [--preset shipped]
        [--predictions FILE] [--out FILE] [--interim FOLDER]

Every FOLDER holds logs and an INDEX.tsv. Every run with 40 and more rewards counts for every
method, all runs of a cohort cut at the same share of their length. `pool.py` pools the curves.
By default what is learned from real runs is learned again without the repository that is asked
about; ``--preset shipped`` takes what the package ships, for repositories that it has not seen.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from analogue_learning import learned_corpus, tabulated_by_odds
from cohort_fits import NOT_SAMPLED
from engine_flags import add_engine_flags, on_engine, results
from index import read_index
from interim import interim_studies, learned_preset
from manifest import manifest
from methods import RULES, Asked, curves, learned, with_spread
from pilots import cohorts, pilots
from trained_tasks import full_finetuning_of_tasks, runs_of_tasks

from advisor.backtesting.cases import Case, is_lora
from advisor.backtesting.scores import QUANTILES, crps
from advisor.common import EngineSettings, Item, digest_of
from advisor.forecast import (
    Corpus,
    curve_of_begun_run,
    final_rows,
    fitted_or_none,
)
from advisor.forecast.analogues import mark_of, shipped_corpus
from advisor.model import NO_LINE, KnownOptimum, Priors, Sampling, load_priors
from advisor.runs import PilotRun
from advisor.theory import FloatArray

LEAST_REWARDS = 40
SAME = 1e-6
"""Share of the largest reward by which rewards differ that are the same number."""

LEAST_SEEN = 3
FOLDS = 5
"""Parts of the repositories: a reach is learned on those that do not hold the one asked about."""

ADAPTER_RATE = 10.0
"""Best learning rate of adapters over that of full fine-tuning, as in ``priors/lora.toml``."""

CURVE = "advisor, curve alone"
"""What is not another method, but a part of what the advisor says."""

KEPT = 500
"""Quantiles by which a pooled curve is kept in the folder of fits."""


class Run(NamedTuple):
    """A finished run, its repository and its cohort."""

    pilot: PilotRun
    repository: str
    cohort: str
    bounds: tuple[float, float]


def load(folders: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Runs of all folders with enough rewards, and what could not be read."""
    indexed, unread = [], []
    for folder in folders:
        found, lost = read_index(folder)
        indexed += [run for run in found if run.reward.size >= LEAST_REWARDS]
        unread += lost
    members = list(zip(indexed, pilots(indexed), strict=True))
    # Errors are shares of the range: of a run that only rounding moves there is none.
    members = [one for one in members if np.ptp(one[1].reward) > SAME * abs(one[1].reward).max()]
    of = cohorts([pilot for _, pilot in members])
    return [
        Run(pilot, run.repository, *of[pilot.id]) for run, pilot in members if pilot.id in of
    ], unread


def asked(run: Run, share: float) -> Asked:
    """Question about a run of which a share is seen."""
    target = float(run.pilot.reward[final_rows(run.pilot)].mean())
    case = Case(first_part(run.pilot, share), last_tenth(run.pilot), target)
    settings = run.pilot.hyperparameters
    told = {
        "learning_rate": settings.learning_rate,
        "group_size": settings.group_size,
        "parameters": run.pilot.parameters,
    }
    return Asked(
        run=run.pilot.id,
        repository=run.repository,
        case=case,
        step=case.seen.step,
        reward=case.seen.reward,
        steps=last_tenth(run.pilot),
        target=target,
        span=float(np.ptp(run.pilot.reward)),
        bounds=run.bounds,
        told={name: float(value) for name, value in told.items() if value is not None},
    )


def peers(questions: Sequence[Asked]) -> dict[str, dict[str, FloatArray]]:
    """Draws of every other method, by method and run."""
    found: dict[str, dict[str, FloatArray]] = defaultdict(dict)
    points: dict[str, dict[str, float]] = defaultdict(dict)
    for one in questions:
        for name, rule in RULES.items():
            points[name][one.run] = rule(one)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = curves(one)
        for name, draws in drawn.items():
            found[name][one.run] = draws
    for repository in {one.repository for one in questions}:
        test = [one for one in questions if one.repository == repository]
        train = [one for one in questions if one.repository != repository]
        if not train:
            continue
        for name, values in learned(train, test).items():
            points[name].update(zip((one.run for one in test), values, strict=True))
    for name, by_run in points.items():
        errors = np.array([(one.target - by_run[one.run]) / one.unit for one in questions])
        for one in questions:
            others = np.array([other.repository != one.repository for other in questions])
            chosen = errors[others] if others.any() else errors
            found[name][one.run] = with_spread(by_run[one.run], chosen, one.unit)
    return dict(found)


def pooled_curves(task: tuple[Sequence[Run], float, Priors, bool]) -> dict[str, list[float]]:
    """Quantiles of what the curve pooled over a cohort says of the end of its runs."""
    cohort, share, priors, fast = task
    sampling = Sampling.first_look() if fast else None
    warnings.simplefilter("ignore")
    found: dict[str, FloatArray | None] = {}
    parts = [first_part(run.pilot, share) for run in cohort]
    posterior, _ = fitted_or_none(parts, priors, sampling)
    for run, part in zip(cohort, parts, strict=True):
        if posterior is not None:
            found[run.pilot.id] = curve_of_begun_run(posterior, part, last_tenth(run.pilot))
    levels = (np.arange(KEPT) + 0.5) / KEPT
    return {
        name: np.quantile(draws, levels).tolist()
        for name, draws in found.items()
        if draws is not None
    }


def marks_of(
    cohort: Sequence[Run], share: float, priors: Priors, fast: bool = False
) -> tuple[str, ...]:
    """What a fit turns on: rows and settings of the runs, the cut, the priors, the sampling."""
    return (
        digest_of([run.pilot.digest for run in cohort], share),
        digest_of(priors.model_dump(mode="json", exclude=NOT_SAMPLED)),
        *(["first look"] if fast else []),
    )


def last_tenth(run: PilotRun) -> FloatArray:
    """Steps of the rows whose mean is asked."""
    return np.asarray(run.step[final_rows(run)])


def first_part(run: PilotRun, share: float) -> PilotRun:
    """Rows seen of a run: its share, and three at least."""
    part = run.first_part(share)
    if part.step.size >= LEAST_SEEN:
        return part
    return run.first_part(float(run.step[LEAST_SEEN - 1] / run.step[-1]))


def settings_vary(cohort: Sequence[Run]) -> bool:
    """Whether the learning rate or the refresh interval differs between the runs of a cohort."""
    settings = [run.pilot.hyperparameters for run in cohort]
    return len({(one.learning_rate, one.refresh_interval) for one in settings}) > 1


# What is learned without the repository that is asked about ---------------------------------------


def corpora(runs: Sequence[Run], preset: str | None) -> dict[str, Corpus]:
    """Corpus for each repository: the shipped one without its runs, or one learned without it."""
    names = sorted({run.repository for run in runs})
    if preset:
        marks = {name: [mark_of(r.pilot) for r in runs if r.repository == name] for name in names}
        return {name: shipped_corpus().without(own) for name, own in marks.items()}
    found = {}
    for fold in range(FOLDS):
        out = set(names[fold::FOLDS])
        reached = learned_corpus(by_repository(runs, out) | runs_of_tasks())
        for name in out:
            others = by_repository(runs, {name}) | runs_of_tasks()
            found[name] = tabulated_by_odds(others, reached)
    return found


def of_folder(runs: list[Run], folder: Path | None) -> list[Run]:
    """Those of one folder, or all."""
    if folder is None:
        return runs
    names = {run.pilot.id for run in load([folder])[0]}
    return [run for run in runs if run.pilot.id in names]


def by_cohort(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs by the name of their cohort."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.cohort].append(run)
    return dict(found)


def by_repository(runs: Sequence[Run], without: set[str]) -> dict[str, list[PilotRun]]:
    """Pilots by repository, some left out."""
    found: dict[str, list[PilotRun]] = defaultdict(list)
    for run in runs:
        if run.repository not in without:
            found[run.repository].append(run.pilot)
    return dict(found)


def presets(
    runs: Sequence[Run], preset: str | None, folder: Path
) -> dict[tuple[str, bool], Priors]:
    """Preset for each repository and kind of training: learned without it, or shipped."""
    names = sorted({run.repository for run in runs})
    if preset:
        return {
            (name, lora): load_priors("lora" if lora else "full_finetuning")
            for name in names
            for lora in (False, True)
        }
    cohort_runs, tasks = list(by_cohort(runs).values()), full_finetuning_of_tasks()
    repositories = [part[0].repository for part in cohort_runs] + list(tasks)
    cohorts_fitted = [[run.pilot for run in part] for part in cohort_runs] + list(tasks.values())
    fits = interim_studies(cohorts_fitted, folder)
    # What is asked is what a line is learned from: none is there yet.
    line = NO_LINE.model_copy(update={"counts_fluctuation": False})
    without_line = {"stability_line": line}
    found = {}
    for name in names:
        kept = [fitted for i, fitted in fits if repositories[i] != name]
        known = known_optimum([run for run in runs if run.repository != name]) | without_line
        learned = learned_preset(kept, f"without {name}").model_copy(update=known)
        full = known["known_optimum"]
        adapters = full.model_copy(update={"learning_rate": ADAPTER_RATE * full.learning_rate})
        found[name, False] = learned
        found[name, True] = learned.model_copy(update={"known_optimum": adapters})
    return found


def known_optimum(runs: Sequence[Run]) -> dict[str, KnownOptimum]:
    """Entry of a preset: the mean log learning rate of repositories, by what their runs gained."""
    places: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        rate, reward = run.pilot.hyperparameters.learning_rate, run.pilot.reward
        if rate is None:
            continue
        end = float(reward[final_rows(run.pilot)].mean())
        gain = end - float(reward[: max(1, reward.size // 10)].mean())
        share = float(np.clip(gain / (run.bounds[1] - run.bounds[0]), 0, 1))
        places.setdefault(run.repository, []).append((math.log(rate), share))
    gained = {name: np.array(own) for name, own in places.items() if any(g > 0 for _, g in own)}
    means = [np.average(own[:, 0], weights=own[:, 1]) for own in gained.values()]
    rate = math.exp(np.average(means, weights=[own[:, 1].max() for own in gained.values()]))
    source = (
        "Geometric mean of the learning rates of public repositories, each by the share of the "
        "reward's range that its runs gained; repositories spread by 0.47 decades round it."
    )
    entry = KnownOptimum(learning_rate=float(f"{rate:.2g}"), projects=len(gained), source=source)
    return {"known_optimum": entry}


# Scores -------------------------------------------------------------------------------------------


class Scored(NamedTuple):
    """One forecast of one method."""

    share: float
    method: str
    run: str
    repository: str
    error: float
    crps: float
    holds: bool
    target: float
    quantiles: tuple[float, ...]


def scored(share: float, method: str, one: Asked, draws: FloatArray) -> Scored:
    """Score draws in shares of the range logged; a forecast beyond the bounds is moved to them."""
    draws = np.clip(draws, *one.bounds)
    quantiles = np.quantile(draws, QUANTILES)
    low, middle, high = (quantiles[QUANTILES.index(level)] for level in (0.1, 0.5, 0.9))
    return Scored(
        share,
        method,
        one.run,
        one.repository,
        abs(float(middle) - one.target) / one.span,
        crps(draws, one.target) / one.span,
        bool(low <= one.target <= high),
        one.target,
        tuple(float(f"{value:.6g}") for value in quantiles),
    )


def summary(rows: Sequence[Scored]) -> dict[str, Any]:
    """Scores of every method by share, over runs and over repositories."""
    found: dict[str, Any] = defaultdict(dict)
    for share, method in dict.fromkeys((row.share, row.method) for row in rows):
        own = [row for row in rows if (row.share, row.method) == (share, method)]
        names = np.array([row.repository for row in own])
        crps_of = np.array([row.crps for row in own])
        found[f"{share:g}"][method] = {
            "n": len(own),
            "mae": float(np.mean([row.error for row in own])),
            "crps": float(crps_of.mean()),
            "crps_over_repositories": float(
                np.mean([crps_of[names == name].mean() for name in np.unique(names)])
            ),
            "coverage": {"0.8": float(np.mean([row.holds for row in own]))},
        }
    return dict(found)


def ask(
    where: EngineSettings,
    share: float,
    cohorts_asked: Sequence[Sequence[Run]],
    priors: dict[tuple[str, bool], Priors],
    fast: bool = False,
) -> list[Scored]:
    """Ask every method about every run of the cohorts."""
    questions = {run.pilot.id: asked(run, share) for part in cohorts_asked for run in part}
    rows = []
    for name, by_run in peers(list(questions.values())).items():
        rows += [scored(share, name, questions[run], drawn) for run, drawn in by_run.items()]
    items = []
    for part in cohorts_asked:
        preset = priors[part[0].repository, is_lora(part[0].pilot)]
        task = (part, share, preset, fast)
        items.append(Item(part[0].cohort, task, marks_of(*task)))
    for curves_of in results(pooled_curves, items, "Pooling curves", where):
        rows += [
            scored(share, CURVE, questions[run], np.array(drawn))
            for run, drawn in curves_of.items()
        ]
    return rows


def asked_for(about: str | None) -> argparse.Namespace:
    """Flags of a study of these folders, its folder of interim fits made where none is named."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0] if about else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seen", nargs="+", type=float, default=[0.1, 0.25, 0.5])
    parser.add_argument("--preset", choices=["shipped"])
    parser.add_argument("--fast", action="store_true", help="sample as a first look does")
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--interim", type=Path, help="folder in which fits are kept")
    parser.add_argument("--only", type=Path, help="one of the folders: others are learned from")
    add_engine_flags(parser)
    given = parser.parse_args()
    given.interim = given.interim or Path(tempfile.mkdtemp())
    given.interim.mkdir(parents=True, exist_ok=True)
    return given


def main() -> None:
    """Ask, score, keep."""
    given = asked_for(__doc__)
    runs, unread = load(given.folders)
    priors = presets(runs, given.preset, given.interim)
    runs = of_folder(runs, given.only)
    members = list(by_cohort(runs).values())
    where: EngineSettings = {**on_engine(given), "keep": given.keep or given.interim}
    rows: list[Scored] = []
    for share in given.seen:
        rows += ask(where, share, members, priors, given.fast)
        document = {
            "scores": summary(rows),
            "runs": len(runs),
            "repositories": len({run.repository for run in runs}),
            "unread": unread,
            **how_asked(given, Path(__file__)),
        }
        write(given, document, [row._asdict() for row in rows])


def how_asked(given: argparse.Namespace, script: Path) -> dict[str, Any]:
    """Under what a study was asked, and by which code."""
    return {
        "preset": given.preset or "learned without the repository asked about",
        "sampling": "first look" if given.fast else "as shipped",
        "manifest": manifest(script, seeds=1, checks={}),
    }


def write(
    given: argparse.Namespace, document: dict[str, Any], rows: Sequence[dict[str, Any]]
) -> None:
    """Write what is done: a run that is broken off leaves it."""
    if given.out:
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if given.predictions:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        given.predictions.write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
