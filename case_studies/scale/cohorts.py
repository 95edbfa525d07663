"""Cohorts of a made-up team: tasks of its own, drawn from a population that is written down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Workers of a cluster import this file without the command that set the path.
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from simulated_runs import Plan, Truth, prior_means, simulate_run

from advisor.model import Reference
from advisor.runs import PilotRun

RUNS = 10
STEPS = 200
RATES = (1e-4, 3e-3)
GROUPS = (4, 8, 16, 32)


class Population(NamedTuple):
    """Mean and spread over tasks of what the cohorts of a team differ in, by entry of a preset."""

    log_slope: tuple[float, float]
    headroom_logit: tuple[float, float]
    rate_learning_rate: tuple[float, float]
    rate_group_size: tuple[float, float]


TEAM = Population((-3.4, 0.30), (0.3, 0.40), (0.80, 0.06), (0.30, 0.06))
STRANGERS = Population((-1.8, 0.30), (2.0, 0.40), (1.15, 0.06), (-0.05, 0.06))
"""Another team: its tasks are learned five times as fast and nearly to the end."""


def chance_of(number: int, population: Population) -> np.random.Generator:
    """All the chance of a cohort, from its start."""
    return np.random.default_rng([number, *(int(1000 * abs(mean)) for mean, _ in population)])


def levels_of(rng: np.random.Generator, population: Population) -> dict[str, float]:
    """What is true of a cohort: the first that is drawn of its chance."""
    return {
        entry: mean + spread * rng.standard_normal()
        for entry, (mean, spread) in population._asdict().items()
    }


def made_cohort(number: int, population: Population = TEAM, steps: int = STEPS) -> list[PilotRun]:
    """Finished runs of one task on one model.

    Parameters
    ----------
    number : int
        Which cohort; all its chance follows from it and the population.
    population : Population
    steps : int
        Of each run.

    Returns
    -------
    runs : list of PilotRun
        ``RUNS`` of them.
    """
    rng = chance_of(number, population)
    drawn = levels_of(rng, population)
    plans = [
        Plan(
            learning_rate=float(10 ** rng.uniform(*np.log10(RATES))),
            group_size=int(rng.choice(GROUPS)),
            task=f"task {number}",
            steps=steps,
        )
        for _ in range(RUNS)
    ]
    reference = Reference(
        *(
            float(np.exp(np.mean(np.log([getattr(plan, name) for plan in plans]))))
            for name in ("learning_rate", "group_size", "prompts", "parameters")
        )
    )
    means = prior_means(drawn["headroom_logit"], drawn["log_slope"])
    means |= {
        "rate.learning_rate": drawn["rate_learning_rate"],
        "rate.group_size": drawn["rate_group_size"],
    }
    truth = Truth(
        reference, means, drawn["headroom_logit"], drawn["log_slope"], 0.0, {"tiny-s": -1.4}
    )
    return [
        simulate_run(truth, plan, rng, f"cohort-{number}-run-{index}")
        for index, plan in enumerate(plans)
    ]
