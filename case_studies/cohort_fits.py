"""A team's history: every cohort of finished runs is fitted by itself, then learned from.

A joint fit would couple cohorts through the population alone, which `learned_priors` does at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from learned_priors import PastStudy, learn_from_studies, past_study

from advisor.common import EngineSettings, Item, Progress, digest_of, mapped, silent
from advisor.errors import InputError, NotConvergedError
from advisor.model import SPECTRUM, Posterior, Priors, Sampling, cohort_of, sampled
from advisor.runs import PilotRun

ATTEMPTS = (
    Sampling(draws=1000, tune=500, target_accept=0.9),
    Sampling(draws=1500, tune=1000, target_accept=0.97, seed=2),
)
"""The first costs what 500 draws of a target acceptance of 0.95 cost and has twice their effective
draws, so fewer cohorts need the second; at 0.8 divergences near the gate (six simulated cohorts of
ten runs)."""

RHAT, ESS, DIVERGENT = 1.05, 100.0, 0.02
"""Gate of the first stage: moments of draws are wanted, not their tails."""

NOT_SAMPLED = {
    *("stability_line", "extrapolation", "discrepancy", "pool", "growth", "elsewhere", "decision"),
    *("known_optimum", "domain"),
}
"""Entries of a preset on which no draw turns: fits are kept across their changes."""

Cohorts = Sequence[tuple[str, Sequence[PilotRun]]]


class CohortFit(NamedTuple):
    """Runs that are fitted together, and the preset under which they are."""

    runs: tuple[PilotRun, ...]
    preset: Priors

    @property
    def marks(self) -> tuple[str, ...]:
        """Digests of data, priors, how it is sampled and which draws are taken."""
        return (
            digest_of([run.digest for run in self.runs]),
            digest_of(self.preset.model_dump(mode="json", exclude=NOT_SAMPLED)),
            digest_of([one.model_dump(mode="json") for one in ATTEMPTS], RHAT, ESS, DIVERGENT),
        )


@dataclass(frozen=True)
class History:
    """What cohorts said, one by one."""

    studies: tuple[PastStudy | None, ...]
    left_out: tuple[str, ...]

    @property
    def told(self) -> list[PastStudy]:
        """Studies that say something, each data and each run once: copies count as one."""
        own, marks = list[PastStudy](), set[str]()
        for study in filter(None, self.studies):
            known = {study.data, *(run.fingerprint for run in study.runs if run.fingerprint)}
            if not known & marks:
                own.append(study)
            marks |= known
        return own

    def learned(self, base: Priors, name: str) -> Priors:
        """Preset for the next study."""
        if not self.told:
            why = f" (for example {self.left_out[0]})" if self.left_out else ""
            raise InputError(
                f"no cohort says anything{why}",
                advice="Give finished runs with settings, four or more of a task and model",
            )
        return learn_from_studies(self.told, base=base, name=name)


def read_history(
    cohorts: Cohorts,
    preset: Priors,
    *,
    progress: Progress = silent,
    on: EngineSettings | None = None,
) -> History:
    """Fit every cohort by itself under one preset."""
    fits = [CohortFit(tuple(runs), preset) for _, runs in cohorts]
    items = [Item(name, fit, fit.marks) for (name, _), fit in zip(cohorts, fits, strict=True)]
    found = mapped(fitted, items, task="Fitting cohorts", progress=progress, **(on or {}))
    return History(
        tuple(
            PastStudy.model_validate(one.result) if one.result else None for one in found.outcomes
        ),
        tuple(one.text for one in found.failed),
    )


def read_posteriors(files: Sequence[Path], *, progress: Progress = silent) -> list[PastStudy]:
    """Sum up saved posteriors, one after the other: no more than one is in memory."""
    found = []
    for done, file in enumerate(files):
        progress("Reading posteriors", done / len(files), str(file))
        found.append(past_study(Posterior.load(file)))
    return found


def fitted(task: CohortFit) -> dict[str, Any]:
    """What a cohort says, as JSON holds it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cohort = cohort_of(task.runs)
        for attempt in ATTEMPTS:
            posterior = sampled(cohort, task.preset, SPECTRUM, attempt, silent)
            why = posterior.convergence.complaint(RHAT, ESS, DIVERGENT)
            if why is None:
                return past_study(posterior).model_dump(mode="json")
    raise NotConvergedError(str(why))
