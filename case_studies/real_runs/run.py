"""How right forecasts of real language-model runs are, beside what people use today.

    python case_studies/real_runs/run.py FOLDER... [--seen 0.1 0.25 0.5] [--preset shipped]
        [--predictions FILE] [--out FILE] [--interim FOLDER]

Every FOLDER holds logs and an INDEX.tsv. Every run with 40 and more rewards counts for every
method. Two scenes: all runs of a cohort cut at the same share of their length, and one run cut with
its siblings whole. By default what is learned from real runs is learned
again without the repository that is asked about; ``--preset shipped`` takes what the package ships,
for repositories that it has not seen.
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
from advisor.errors import InputError
from advisor.forecast import (
    Corpus,
    curve_of_begun_run,
    end_of_begun_run,
    final_rows,
    fitted_or_none,
)
from advisor.forecast.analogues import mark_of, shipped_corpus
from advisor.forecast.run_in_progress import EndOfRun, rows_of
from advisor.model import NO_LINE, KnownOptimum, Priors, Sampling, load_priors
from advisor.runs import PilotRun
from advisor.theory import FloatArray

LEAST_REWARDS = 40
SAME = 1e-6
"""Share of the largest reward by which rewards differ that are the same number."""

LEAST_SEEN = 3
LARGE = 5
"""Runs of a repository from which it is judged by itself."""

FOLDS = 5
"""Parts of the repositories: a reach is learned on those that do not hold the one asked about."""

ADAPTER_RATE = 10.0
"""Best learning rate of adapters over that of full fine-tuning, as in ``priors/lora.toml``."""

ADVISOR = "advisor"
PARTS = ("advisor, curve alone", "advisor, analogues alone")
"""Two of the parts that the advisor's answer is pooled of: no other method."""

KEPT = 500
"""Quantiles by which a pooled curve is kept in the folder of fits."""

BOOTSTRAPS = 1000
SCENES = ("all_cut", "siblings_whole")


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


def asked(run: Run, share: float, siblings: Sequence[Run]) -> Asked:
    """Question about a run of which a share is seen, beside siblings that are whole."""
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
        end=float(run.pilot.step[-1]),
        target=target,
        span=float(np.ptp(run.pilot.reward)),
        bounds=run.bounds,
        siblings=tuple((other.pilot.step, other.pilot.reward) for other in siblings),
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
    """What the curve pooled over a cohort says of the end of its runs.

    Beside whole siblings the curve is that of all runs cut alike, too little by what is cut: a fit
    for each run would take hours, and what the siblings came to is told by themselves.
    """
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


def answer(
    run: Run,
    cohort: Sequence[Run],
    scene: str,
    share: float,
    corpus: Corpus,
    curve: FloatArray | None,
) -> EndOfRun:
    """What the advisor says of one run."""
    siblings = [other.pilot for other in cohort if other is not run]
    if scene == "all_cut":
        siblings = [first_part(one, share) for one in siblings]
    return end_of_begun_run(
        first_part(run.pilot, share),
        last_tenth(run.pilot),
        corpus=corpus,
        bounds=run.bounds,
        curve=curve,
        siblings=[rows_of(one, run.bounds) for one in siblings],
        priors=load_priors("theory"),
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

    scene: str
    share: float
    method: str
    run: str
    repository: str
    error: float
    crps: float
    holds: bool
    target: float
    quantiles: tuple[float, ...]


def scored(scene: str, share: float, method: str, one: Asked, draws: FloatArray) -> Scored:
    """Score draws in shares of the range logged; a forecast beyond the bounds is moved to them."""
    draws = np.clip(draws, *one.bounds)
    quantiles = np.quantile(draws, QUANTILES)
    low, middle, high = (quantiles[QUANTILES.index(level)] for level in (0.1, 0.5, 0.9))
    return Scored(
        scene,
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
    """Scores of every method, pooled, by repository, and the advisor against the best other."""
    methods = {}
    for name in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == name]
        by = _by_repository(own)
        methods[name] = {
            "mae": float(np.mean([row.error for row in own])),
            "crps": float(np.mean([row.crps for row in own])),
            "coverage": {"0.8": float(np.mean([row.holds for row in own]))},
            "n": len(own),
            "mae_over_repositories": float(np.mean([part["mae"] for part in by.values()])),
            "crps_over_repositories": float(np.mean([part["crps"] for part in by.values()])),
            "by_repository": by,
        }
    return {
        "methods": methods,
        "repositories": len({row.repository for row in rows}),
        "against_best": against_best(rows, methods),
    }


def _by_repository(rows: Sequence[Scored]) -> dict[str, dict[str, float]]:
    names = dict.fromkeys(row.repository for row in rows)
    parts = {name: [row for row in rows if row.repository == name] for name in names}
    return {
        name: {
            "mae": float(np.mean([row.error for row in part])),
            "crps": float(np.mean([row.crps for row in part])),
            "n": len(part),
        }
        for name, part in parts.items()
    }


def against_best(rows: Sequence[Scored], methods: dict[str, Any]) -> dict[str, Any]:
    """Ratio of the advisor to the best other method, with a bootstrap over repositories."""
    found = {}
    rng = np.random.default_rng(0)
    names = sorted({row.repository for row in rows})
    for score in ("mae", "crps"):
        field = "error" if score == "mae" else "crps"
        best = min(_others(methods), key=lambda m: methods[m][score])
        sums = {}
        for method in (ADVISOR, best):
            own = [row for row in rows if row.method == method]
            sums[method] = np.array(
                [sum(getattr(row, field) for row in own if row.repository == n) for n in names]
            )
        drawn = rng.integers(0, len(names), (BOOTSTRAPS, len(names)))
        ratios = sums[ADVISOR][drawn].sum(axis=1) / sums[best][drawn].sum(axis=1)
        found[score] = {
            "best": best,
            "ratio": methods[ADVISOR][score] / methods[best][score],
            "interval_0.8": np.quantile(ratios, [0.1, 0.9]).tolist(),
        }
    large = {
        name: part["mae"]
        / min(methods[other]["by_repository"][name]["mae"] for other in _others(methods))
        for name, part in methods[ADVISOR]["by_repository"].items()
        if part["n"] >= LARGE
    }
    found["worst_repository"] = max(large.items(), key=lambda item: item[1]) if large else None
    return found


def _others(methods: dict[str, Any]) -> list[str]:
    return [name for name in methods if name != ADVISOR and name not in PARTS]


def ask(
    where: EngineSettings,
    scene: str,
    share: float,
    cohorts_asked: Sequence[Sequence[Run]],
    learned_for: tuple[dict[str, Corpus], dict[tuple[str, bool], Priors]],
    fast: bool = False,
) -> tuple[list[Scored], dict[str, Any]]:
    """Ask every method about every run of the cohorts: single scores, and their summary."""
    corpus, priors = learned_for
    whole = scene != "all_cut"
    questions = {
        run.pilot.id: asked(run, share, [o for o in part if o is not run and whole])
        for part in cohorts_asked
        for run in part
    }
    rows = []
    others = peers(list(questions.values()))
    for name, by_run in others.items():
        rows += [scored(scene, share, name, questions[run], d) for run, d in by_run.items()]
    items = []
    for part in cohorts_asked:
        preset = priors[part[0].repository, is_lora(part[0].pilot)]
        task = (part, share, preset, fast)
        items.append(Item(part[0].cohort, task, marks_of(*task)))
    curved_parts = results(pooled_curves, items, "Pooling curves", where)
    unanswered = curved = 0
    for part, curves_of in zip(cohorts_asked, curved_parts, strict=True):
        for run in part:
            name = run.pilot.id
            curve = np.array(curves_of[name]) if name in curves_of else None
            try:
                found = answer(run, part, scene, share, corpus[run.repository], curve)
            except InputError:  # one without an answer scores as the simplest rule does
                unanswered += 1
                simplest = others["last third"][name]
                rows.append(scored(scene, share, ADVISOR, questions[name], simplest))
                continue
            rows.append(scored(scene, share, ADVISOR, questions[name], found.draws))
            if not {"curve", "analogues"} <= found.parts.keys():
                continue
            curved += 1
            for method, part in zip(PARTS, ("curve", "analogues"), strict=True):
                rows.append(scored(scene, share, method, questions[name], found.parts[part]))
    told = {"unanswered": unanswered, "with_pooled_curve": curved}
    return rows, summary(rows) | told


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
    """Ask, score, print."""
    given = asked_for(__doc__)
    runs, unread = load(given.folders)
    folder = given.interim
    learned_for = corpora(runs, given.preset), presets(runs, given.preset, folder)
    runs = of_folder(runs, given.only)
    members = list(by_cohort(runs).values())
    rows: list[Scored] = []
    document: dict[str, Any] = {scene: {} for scene in SCENES} | {
        "runs": len(runs),
        "repositories": len({run.repository for run in runs}),
        "unread": unread,
        **how_asked(given, Path(__file__)),
    }
    where: EngineSettings = {**on_engine(given), "keep": given.keep or folder}
    for scene in SCENES:
        parts = [part for part in members if scene == "all_cut" or len(part) > 1]
        for share in given.seen:
            if parts:
                own, told = ask(where, scene, share, parts, learned_for, given.fast)
                rows += own
                document[scene][f"{share:g}"] = told
                _say(scene, share, told)
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


def _say(scene: str, share: float, told: dict[str, Any]) -> None:
    print(f"{scene}, {share:.0%} seen, {told['repositories']} repositories", file=sys.stderr)
    for name, found in sorted(told["methods"].items(), key=lambda item: item[1]["mae"]):
        print(
            f"  {name:20} error {found['mae']:.3f} (mean over repositories "
            f"{found['mae_over_repositories']:.3f}) CRPS {found['crps']:.3f} "
            f"80 % holds {found['coverage']['0.8']:.0%} of {found['n']}",
            file=sys.stderr,
        )
    for name in ("mae", "crps"):
        one = told["against_best"][name]
        low, high = one["interval_0.8"]
        print(
            f"  {name}: {one['ratio']:.3f} [{low:.3f}, {high:.3f}] of {one['best']}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
