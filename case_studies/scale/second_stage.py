"""The second stage alone, on cohorts that are drawn from a population that is known.

A few simulated cohorts are fitted, for what ten runs tell and how it is correlated; then any number
of cohorts are drawn from a team's population, each with the normal likelihood of one of those fits.
What all of them share, such as the plateau loss, lies off what the preset believes. Beside the
second stage stands the wrong formula, entry by entry, with each prior divided out of its marginal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from cohort_fits import read_history
from cohorts import TEAM, made_cohort
from history import BASE
from learned_priors import (
    MODEL_SPREADS,
    Evidence,
    PastStudy,
    believed_of,
    evidence_of,
    new_study,
    without_prior,
)

from advisor.common import EngineSettings, progress_of
from advisor.model import NormalPrior, Priors, load_priors, prior_entries
from advisor.theory import FloatArray

FITTED = 4
"""Cohorts whose likelihoods the others have."""

OFF = 0.8
"""Prior sds by which what all cohorts share lies off the preset."""


def second_stage(cohorts: int, on: EngineSettings) -> dict[str, Any]:
    """Learn from so many cohorts by both ways."""
    base = load_priors(BASE)
    made = [(f"team {number}", made_cohort(number)) for number in range(FITTED)]
    found = read_history(made, base, progress=progress_of(True), on=on)
    entries = {
        entry: prior
        for entry, prior in prior_entries(base).items()
        if isinstance(prior, NormalPrior)
    }
    patterns = [_pattern(study, base, list(entries)) for study in found.told]
    rng = np.random.default_rng(cohorts)
    mean, spread = _truth(entries, rng)
    together, alone = [], []
    for _ in range(cohorts):
        one = _drawn(patterns[rng.integers(len(patterns))], mean, spread, rng)
        together.append(one)
        alone.append(_entry_by_entry(one, entries))
    told: dict[str, Any] = {"cohorts": cohorts, "fitted": len(patterns), "off_in_prior_sds": OFF}
    for way, evidence in (("together", together), ("entry_by_entry", alone)):
        started = time.perf_counter()
        learned = dict(zip(entries, new_study(evidence, believed_of(entries)), strict=True))
        told[way] = {
            "seconds": round(time.perf_counter() - started, 1),
            "entries": {
                entry: _compared(entry, learned, mean, spread, list(entries), cohorts)
                for entry in TEAM._fields
            },
        }
    return told


def _pattern(study: PastStudy, base: Priors, names: Sequence[str]) -> Evidence:
    return evidence_of(study, base, {name: {} for name in names}, 0)


def _truth(
    entries: dict[str, NormalPrior], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Means and spreads of all entries; offsets of models spread as the preset expects."""
    mean, spread = np.zeros(len(entries)), np.zeros(len(entries))
    for place, (entry, prior) in enumerate(entries.items()):
        if entry in TEAM._fields:
            mean[place], spread[place] = getattr(TEAM, entry)
        elif entry in MODEL_SPREADS.values():
            spread[place] = np.exp(prior.mean)
        else:
            mean[place] = prior.mean + OFF * prior.sd * rng.choice([-1, 1])
    return mean, spread


def _drawn(
    pattern: Evidence, mean: FloatArray, spread: FloatArray, rng: np.random.Generator
) -> Evidence:
    """A cohort of the population with such a likelihood."""
    noise = rng.standard_normal(pattern.entry.size)
    effects = mean[pattern.entry] + spread[pattern.entry] * noise
    values, turned = np.linalg.eigh(pattern.information)
    noise = rng.standard_normal(pattern.entry.size)
    error = turned @ (np.sqrt(np.maximum(values, 0)) * noise)
    return pattern._replace(score=pattern.information @ effects + error)


def _entry_by_entry(one: Evidence, entries: dict[str, NormalPrior]) -> Evidence:
    """What entries say each by itself, their priors divided out of marginals: the wrong formula."""
    names = list(entries)
    mean, variance = np.zeros(one.entry.size), np.zeros(one.entry.size)
    for place, entry in enumerate(one.entry):
        prior = entries[names[entry]]
        mean[place], variance[place] = prior.mean, prior.sd**2
        if names[entry] in MODEL_SPREADS.values():
            mean[place], variance[place] = 0, np.exp(2 * (prior.mean + prior.sd**2))
    covariance = np.linalg.inv(one.information + np.diag(1 / variance))
    center = covariance @ (one.score + mean / variance)
    values, errors = np.zeros(mean.size), np.full(mean.size, np.inf)
    for place, entry in enumerate(one.entry):
        if names[entry] not in MODEL_SPREADS.values():
            value, error = without_prior(
                center[place], covariance[place, place], entries[names[entry]], 2000
            )
            if np.isfinite(value):
                values[place], errors[place] = value, error
    return one._replace(information=np.diag(errors**-2), score=values / errors**2)


def _compared(
    entry: str,
    learned: dict[str, Any],
    mean: FloatArray,
    spread: FloatArray,
    names: Sequence[str],
    cohorts: int,
) -> dict[str, Any]:
    """What was learned beside the truth; ``in_errors`` are those of a mean of so many cohorts."""
    found, place = learned[entry], names.index(entry)
    error = np.sqrt(found.sd**2 - found.between**2)
    told = {
        "made_from": [round(float(mean[place]), 3), round(float(spread[place]), 3)],
        "learned": [round(float(found.mean), 3), round(float(found.between), 3)],
        "error": round(float(error), 4),
        "in_errors": round(float((found.mean - mean[place]) / error), 1),
        "in_sampling_errors": round(
            float((found.mean - mean[place]) / (spread[place] / np.sqrt(cohorts))), 1
        ),
        "spread_over_true": round(float(found.between / spread[place]), 2),
        "error_of_log_spread": round(float(found.log_spread_sd), 2),
    }
    if entry in MODEL_SPREADS:
        # One model a task tells the two spreads together.
        own, other = found.between, learned[MODEL_SPREADS[entry]].between
        true = np.hypot(spread[place], spread[names.index(MODEL_SPREADS[entry])])
        told["with_models_over_true"] = round(float(np.hypot(own, other) / true), 2)
    return told
