"""One joint fit of many groups beside a fit of each task by itself and then the population."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import cohort_fits
import numpy as np
from groups import CURVATURE, Group, made_groups
from learned_priors import PastStudy, learn_from_studies, past_study, without_prior

from advisor.backtesting.scores import crps
from advisor.common import EngineSettings, Item, digest_of, silent
from advisor.forecast import Forecaster, Target, final_reward
from advisor.model import (
    POPULATION,
    SPECTRUM,
    Posterior,
    Priors,
    Sampling,
    cohort_of,
    load_priors,
    sampled,
)

BASE = "small_models"
GROUPS, RUNS = 4, 6
"""Small enough that a joint fit converges in a minute."""

JOINT = ((1.01, 300.0, 0.01), (Sampling(), Sampling(draws=3000, tune=1000, seed=2)))
OF_A_TASK = ((cohort_fits.RHAT, cohort_fits.ESS, cohort_fits.DIVERGENT), cohort_fits.ATTEMPTS)
"""Gate (R-hat, effective draws, share of divergences) and attempts; of a task those of `learn`."""

ENTRIES = {
    "log_slope": "log_slope",
    "headroom_logit": "headroom_logit",
    "rate_learning_rate": "rate.learning_rate",
    "rate_group_size": "rate.group_size",
    "plateau_loss_level": "plateau_loss.level",
    "curvature_exponent": "curvature_exponent",
}
"""Entries of a preset that are compared, and what their draws are called."""


class Fitted(NamedTuple):
    """A posterior and what it cost."""

    posterior: Posterior
    cpu_seconds: float
    wall_seconds: float


def fitted(runs: Sequence[Any], preset: Priors, how: Any = OF_A_TASK) -> Fitted:
    """Fit until the gate is passed, twice at most."""
    gate, attempts = how
    wall, cpu = time.perf_counter(), time.process_time()
    cohort = cohort_of(runs)
    for attempt in attempts:
        posterior = sampled(cohort, preset, SPECTRUM, attempt, silent)
        if posterior.convergence.complaint(*gate) is None:
            break
    return Fitted(posterior, time.process_time() - cpu, time.perf_counter() - wall)


def agreement(names: Sequence[str], where: EngineSettings) -> dict[str, Any]:
    """Both ways on the same groups, of cases such as ``one law, seed 0``."""
    from engine_flags import results

    how = digest_of(
        [
            (*gate, *(one.model_dump(mode="json") for one in ways))
            for gate, ways in (JOINT, OF_A_TASK)
        ]
    )
    items = []
    for name in names:
        world, _, seed = name.partition(", seed ")
        items.append(Item(name, (world, int(seed)), (world, seed, f"{GROUPS}x{RUNS}", how)))
    worlds = list(dict.fromkeys(item.payload[0] for item in items))
    cases = results(compared, items, "Comparing both ways", where)
    return {
        "groups": GROUPS,
        "runs_of_a_group": RUNS,
        "base": BASE,
        "summary": {
            world: summary([case for case in cases if case["world"] == world]) for world in worlds
        },
        "cases": cases,
    }


def compared(case: tuple[str, int]) -> dict[str, Any]:
    """Both ways on the groups of one world and seed."""
    world, seed = case
    base = load_priors(BASE)
    groups = made_groups(world, seed, GROUPS, RUNS)
    tasks = {group.task: [one for one in groups if one.task == group.task] for group in groups}
    joint = fitted(_runs(groups), base, JOINT)
    alone = {task: fitted(_runs(own), base) for task, own in tasks.items()}
    studies = {task: past_study(one.posterior) for task, one in alone.items()}
    # What a task learns from the others must not hold its own runs.
    again = {
        task: fitted(
            _runs(own),
            learn_from_studies([s for t, s in studies.items() if t != task], base=base),
        )
        for task, own in tasks.items()
    }
    rng = np.random.default_rng([seed, 1])
    return {
        "world": world,
        "seed": seed,
        "joint": _cost([joint]),
        "alone": _cost(list(alone.values())),
        "second_stage": _cost(list(again.values())),
        "population": _population(
            joint.posterior,
            [one.posterior for one in alone.values()],
            list(studies.values()),
            groups,
            base,
        ),
        "forecasts": [
            _forecast(
                group,
                number,
                {
                    "joint": joint.posterior,
                    "alone": alone[group.task].posterior,
                    "two_stage": again[group.task].posterior,
                },
                rng,
            )
            for group in groups
            for number in range(len(group.asked()))
        ],
    }


def _runs(groups: Sequence[Group]) -> list[Any]:
    return [run for group in groups for run in group.runs]


def _cost(fits: Sequence[Fitted]) -> dict[str, float]:
    return {
        "cpu_seconds": round(sum(one.cpu_seconds for one in fits), 2),
        "wall_seconds": round(sum(one.wall_seconds for one in fits), 2),
        "largest_rhat": round(max(one.posterior.convergence.rhat for one in fits), 4),
    }


def _population(
    joint: Posterior,
    alone: Sequence[Posterior],
    studies: list[PastStudy],
    groups: Sequence[Group],
    base: Priors,
) -> dict[str, Any]:
    """Mean and sd of every entry by both ways, beside the truth.

    ``two_stage`` has the sums of the second stage without a spread between studies, which is what
    a joint fit supposes; ``weak_ones_too`` the same with estimates that are hardly narrower than
    their prior; ``correlated`` with the correlations of what tasks share. ``learned`` is what
    `learn_from_studies` says of a new study. Levels of tasks, which the joint fit keeps apart, are
    averaged over them.
    """
    learned = learn_from_studies(studies, base=base)
    shared = _with_correlations(alone, base)
    told = {}
    for entry, name in ENTRIES.items():
        draws = joint.as_in_priors(name)
        draws = draws.reshape(len(draws), -1).mean(axis=1)
        prior = getattr(base.at(joint.meta.reference), entry)
        said = [pair for study in studies for pair in zip(*study.said[entry], strict=True)]
        weak = [
            pair
            for one in alone
            for pair in zip(*_said(one.as_in_priors(name), one, entry), strict=True)
        ]
        told[entry] = {
            "joint": [float(draws.mean()), float(draws.std())],
            "two_stage": _pooled(said, prior.mean, prior.sd, per_task=entry in LEVELS),
            "weak_ones_too": _pooled(weak, prior.mean, prior.sd, per_task=entry in LEVELS),
            "correlated": shared.get(entry),
            "learned": [getattr(learned, entry).mean, getattr(learned, entry).sd],
            "base": [prior.mean, prior.sd],
            "true": _true(entry, groups),
            "said_something": sum(value is not None for value, _ in said),
        }
    return told


LEVELS = ("log_slope", "headroom_logit")


def _pooled(
    said: Sequence[tuple[float | None, float | None]], mean: float, sd: float, *, per_task: bool
) -> list[float]:
    """Mean and sd of what all studies share; or of the mean over tasks of what each has."""
    tells = [(value, error) for value, error in said if value is not None and error is not None]
    values, errors = (np.array([one[place] for one in tells]) for place in (0, 1))
    if per_task:
        precision = 1 / sd**2 + np.append(1 / errors**2, np.zeros(len(said) - len(tells)))
        told = np.append(values / errors**2, np.zeros(len(said) - len(tells)))
        centers = (mean / sd**2 + told) / precision
        return [float(centers.mean()), float(np.sqrt((1 / precision).sum()) / len(said))]
    precision = 1 / sd**2 + float((1 / errors**2).sum())
    center = (mean / sd**2 + float((values / errors**2).sum())) / precision
    return [center, float(precision**-0.5)]


def _said(draws: Any, one: Posterior, entry: str) -> tuple[list[Any], list[Any]]:
    """Estimates and errors, also of draws that are hardly narrower than their prior."""
    draws = draws.reshape(len(draws), -1)
    found = without_prior(
        draws.mean(axis=0),
        draws.var(axis=0),
        getattr(one.meta.placed_priors, entry),
        effective_draws=np.inf,
    )
    values, errors = ([x if np.isfinite(x) else None for x in each.tolist()] for each in found)
    return values, errors


def _with_correlations(alone: Sequence[Posterior], base: Priors) -> dict[str, list[float]]:
    """Mean and sd of what tasks share, from the product of normal posteriors over one prior."""
    entries = [name.replace(".", "_") for name in POPULATION]
    priors = [getattr(base, entry) for entry in entries]
    before = np.diag([prior.sd**-2.0 for prior in priors])
    mean = np.array([prior.mean for prior in priors])
    precision, told = before.copy(), before @ mean
    for one in alone:
        draws = np.stack([one.as_in_priors(name) for name in POPULATION], axis=1)
        own = np.linalg.inv(np.cov(draws.T))
        precision += own - before
        told += own @ draws.mean(axis=0) - before @ mean
    covariance = np.linalg.inv(precision)
    sds = np.sqrt(np.clip(np.diag(covariance), 0, None))
    return {
        entry: [float(center), float(sd)]
        for entry, center, sd in zip(entries, covariance @ told, sds, strict=True)
    }


def _true(entry: str, groups: Sequence[Group]) -> float | None:
    """What the groups were made from; an exponent that tasks draw by the mean that was drawn."""
    truths = {group.task: group.truth for group in groups}.values()
    if entry in LEVELS:
        return float(np.mean([getattr(truth, entry) for truth in truths]))
    if entry == "plateau_loss_level":
        return None  # at an anchor that follows from the others
    if entry == "curvature_exponent" and len({group.parameters for group in groups}) == 1:
        return None
    found = float(np.mean([truth.population[ENTRIES[entry]] for truth in truths]))
    assert entry != "curvature_exponent" or found == CURVATURE
    return found


def _forecast(
    group: Group, number: int, posteriors: dict[str, Posterior], rng: np.random.Generator
) -> dict[str, Any]:
    """Forecasts of the end of one configuration, beside the ends of new runs."""
    plan = group.asked()[number]
    ends = group.ends(plan, rng)
    told: dict[str, Any] = {
        "group": f"{group.task}, {group.model}",
        "learning_rate": plan.learning_rate,
        "true_mean": float(ends.mean()),
    }
    for way, posterior in posteriors.items():
        target = Target(group.task, group.model, group.parameters)
        draws = final_reward(Forecaster(posterior, target), plan.completed, plan.steps)
        low, high = np.quantile(draws, (0.1, 0.9))
        told[way] = {
            "mean": float(draws.mean()),
            "sd": float(draws.std()),
            "crps": float(np.mean([crps(draws, end) for end in ends])),
            "held_by_80": float(np.mean((ends >= low) & (ends <= high))),
        }
    return told


def summary(cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Differences in units of the joint fit's sd, scores, and seconds."""
    told: dict[str, Any] = {"population": {}, "forecasts": {}}
    for entry in ENTRIES:
        found = [case["population"][entry] for case in cases]
        told["population"][entry] = {
            way: {
                "difference_in_sd": _spread(
                    np.array([(one[way][0] - one["joint"][0]) / one["joint"][1] for one in found])
                ),
                "sd_over_joint_sd": round(
                    float(np.mean([one[way][1] / one["joint"][1] for one in found])), 3
                ),
            }
            for way in ("two_stage", "weak_ones_too", "correlated", "learned", "base")
            if found[0][way] is not None
        }
        if found[0]["true"] is not None:
            told["population"][entry]["errors_in_own_sd"] = {
                way: _spread(np.array([(one[way][0] - one["true"]) / one[way][1] for one in found]))
                for way in ("joint", "two_stage", "weak_ones_too", "correlated", "learned")
                if found[0][way] is not None
            }
    forecasts = [one for case in cases for one in case["forecasts"]]
    for way in ("alone", "two_stage"):
        apart = np.array(
            [(one[way]["mean"] - one["joint"]["mean"]) / one["joint"]["sd"] for one in forecasts]
        )
        told["forecasts"][way] = {
            "difference_in_sd": _spread(apart),
            "sd_over_joint_sd": round(
                float(np.mean([one[way]["sd"] / one["joint"]["sd"] for one in forecasts])), 3
            ),
            "crps_less_that_of_joint": _by_case(cases, way),
        }
    for way in ("joint", "alone", "two_stage"):
        told["forecasts"].setdefault(way, {}).update(
            crps=round(float(np.mean([one[way]["crps"] for one in forecasts])), 5),
            held_by_80=round(float(np.mean([one[way]["held_by_80"] for one in forecasts])), 3),
        )
    told["cpu_seconds"] = {
        "joint": round(float(np.mean([case["joint"]["cpu_seconds"] for case in cases])), 1),
        "first_stage": round(float(np.mean([case["alone"]["cpu_seconds"] for case in cases])), 1),
        "fits_again": round(
            float(np.mean([case["second_stage"]["cpu_seconds"] for case in cases])), 1
        ),
    }
    told["largest_rhat"] = {
        way: max(case[way]["largest_rhat"] for case in cases)
        for way in ("joint", "alone", "second_stage")
    }
    return told


def _spread(apart: Any) -> dict[str, float]:
    return {
        "mean": round(float(apart.mean()), 3),
        "mean_size": round(float(np.abs(apart).mean()), 3),
        "largest_size": round(float(np.abs(apart).max()), 3),
    }


def _by_case(cases: Sequence[dict[str, Any]], way: str) -> dict[str, float]:
    """Mean of a paired difference, and its standard error over cases: groups of one share a fit."""
    gains = np.array(
        [
            np.mean([one[way]["crps"] - one["joint"]["crps"] for one in case["forecasts"]])
            for case in cases
        ]
    )
    told = {"mean": round(float(gains.mean()), 5)}
    if gains.size > 1:
        told["standard_error"] = round(float(gains.std(ddof=1) / np.sqrt(gains.size)), 5)
    return told


def peak_mb() -> int:
    """Of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
