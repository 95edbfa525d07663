"""What comes of the setting that a few quarter-long pilots name, on public sweeps.

    python case_studies/real_runs/sweeps.py FOLDER... --interim FITS [--out FILE]

A sweep is a group of runs of one model and task that differ in learning rate, group size or refresh
interval. Four of its runs, drawn at random and cut at a quarter of their length, are the pilots;
every setting of the sweep can be named. Presets and analogues are learned without the repository.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from run import Run, corpora, first_part, load, presets

from advisor.advice import Request, Search
from advisor.advice.answer import choose, prepare
from advisor.advice.candidates import place_of
from advisor.backtesting.cases import is_lora
from advisor.common import silent
from advisor.diagnosis.collapse import find_final_fall
from advisor.forecast import (
    Corpus,
    Forecaster,
    Target,
    final_rows,
    fitted_or_none,
)
from advisor.model import Priors

SEEN = 0.25
PILOTS, SUBSETS = 4, 8
LEAST_SETTINGS = 3
Key = tuple[float | None, int | None, int | None]


def key_of(run: Run) -> Key:
    """Learning rate, group size and refresh interval of a run."""
    settings = run.pilot.hyperparameters
    return settings.learning_rate, settings.group_size, settings.refresh_interval


def sweeps(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs of one repository, model, task and measure, with three settings or more."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if None in key_of(run):  # what is not known is not a setting of its own
            continue
        # Train rewards and evaluations of one run are logged at different steps.
        interval = run.pilot.hyperparameters.refresh_interval or 1
        every = f"a row every {run.pilot.logging_steps / interval:.2g} refreshes"
        name = f"{run.repository}, {run.pilot.model}, {run.pilot.task}, {every}"
        groups.setdefault(name, []).append(run)
    return {
        name: members
        for name, members in groups.items()
        if len({key_of(run) for run in members}) >= LEAST_SETTINGS
    }


def ended(run: Run) -> float:
    """Mean reward of the last tenth."""
    return float(run.pilot.reward[final_rows(run.pilot)].mean())


def died(run: Run) -> bool:
    """Whether a run collapsed, by the package's definition."""
    return find_final_fall(run.pilot.step, run.pilot.reward, run.bounds[0])[0].unstable


def named_by_advisor(
    members: Sequence[Run], pilots: Sequence[Run], priors: Priors, corpus: Corpus
) -> Key | None:
    """Setting that `advise` names; None where no curve is pooled."""
    posterior, _ = fitted_or_none([first_part(run.pilot, SEEN) for run in pilots], priors)
    if posterior is None:
        return None
    own, settings = posterior.meta.runs[0], {}
    for run in members:
        settings.setdefault(key_of(run), run.pilot.hyperparameters.completed())
    request = Request(
        steps=int(np.median([run.pilot.step[-1] for run in members])),
        task=own.task,
        model=own.model,
        parameters=own.parameters,
        choose_from=tuple(settings.values()),
        indifference=0.0,
        weigh_pilots=False,
    )
    target = Target(own.task, own.model, own.parameters)
    forecaster = Forecaster(posterior, target, corpus=corpus)
    question = replace(prepare(posterior, request, Search(), silent), forecaster=forecaster)
    named = place_of(choose(question).chosen.settings)
    return next(key for key, one in settings.items() if place_of(one) == named)


def named_by_rule(pilots: Sequence[Run]) -> Key:
    """Setting of the pilot whose last third stands highest."""

    def stands(run: Run) -> float:
        reward = first_part(run.pilot, SEEN).reward
        return float(reward[-max(1, reward.size // 3) :].mean())

    return key_of(max(pilots, key=stands))


def known_setting(members: Sequence[Run], known: float) -> Key:
    """Setting nearest to the known learning rate; the first of several."""
    return min(keys(members), key=lambda key: abs(np.log((key[0] or np.inf) / known)))


def scored(members: Sequence[Run], key: Key) -> tuple[float, float]:
    """Regret of a setting in shares of the range of all ends, and how many of its runs died."""
    ends = {k: np.mean([ended(run) for run in members if key_of(run) == k]) for k in keys(members)}
    span = np.ptp([ended(run) for run in members])
    dead = np.mean([died(run) for run in members if key_of(run) == key])
    return float((max(ends.values()) - ends[key]) / span), float(dead)


def keys(members: Sequence[Run]) -> list[Key]:
    """Settings of a sweep, in order."""
    return sorted({key_of(run) for run in members}, key=str)


def main() -> None:
    """Draw pilots, ask, score, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--interim", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    runs, _ = load(given.folders)
    corpus_of, priors_of = corpora(runs, None), presets(runs, None, given.interim)
    document: dict[str, Any] = {}
    for name, members in sweeps(runs).items():
        repository = members[0].repository
        priors = priors_of[repository, is_lora(members[0].pilot)]
        rng, rows = np.random.default_rng(0), []
        for _ in range(SUBSETS):
            pilots = [members[i] for i in rng.choice(len(members), PILOTS, replace=False)]
            by = {"best pilot": named_by_rule(pilots)}
            answer = named_by_advisor(members, pilots, priors, corpus_of[repository])
            by["advisor"] = answer or by["best pilot"]
            row: dict[str, Any] = {"curve": answer is not None}
            for method, key in by.items():
                regret, dead = scored(members, key)
                row[method] = {"setting": key, "regret": regret, "died": dead}
            rows.append(row)
        found = {"any setting": [scored(members, key) for key in keys(members)]}
        if priors.known_optimum and (known := priors.known_optimum.learning_rate):
            found["known rate"] = [scored(members, known_setting(members, known))]
        for method in ("advisor", "best pilot"):
            found[method] = [(row[method]["regret"], row[method]["died"]) for row in rows]
        document[name] = {"runs": len(members), "settings": len(keys(members)), "subsets": rows}
        for method, pairs in found.items():
            regret, dead = np.mean(pairs, axis=0).tolist()
            document[name][method] = {"regret": regret, "died": dead}
            print(f"{name}: {method}: regret {regret:.3f}, died {dead:.0%}")
    if given.out:
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
