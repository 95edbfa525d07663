"""Groups of runs that a joint fit and a fit of each by itself are both asked about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from cohorts import GROUPS, RATES, STEPS, TEAM
from simulated_runs import Plan, Truth, prior_means, simulate_run

from advisor.forecast import final_rows
from advisor.model import Reference
from advisor.runs import PilotRun
from advisor.theory import FloatArray

WORLDS = ("one law", "laws of their own", "two sizes")
"""Exponents that all tasks share; that each task draws; and shared ones with two models per task.
In the first and the last a joint fit is the model that the runs come from."""

SIZES = (1e5, 8e5)
MODELS = ("tiny-s", "tiny-l")
CURVATURE = 0.45
ASKED_RATES = (3e-4, 1e-3)
ASKED_STEPS = 2 * STEPS
ENDS = 20
"""Runs of each asked configuration whose ends are what forecasts are held to."""


class Group(NamedTuple):
    """Runs of one task on one model, and what they came from."""

    task: str
    model: str
    parameters: float
    runs: tuple[PilotRun, ...]
    truth: Truth

    def asked(self) -> list[Plan]:
        """Configurations whose end is forecast."""
        return [
            Plan(
                learning_rate=rate,
                group_size=8,
                task=self.task,
                model=self.model,
                parameters=self.parameters,
                steps=ASKED_STEPS,
            )
            for rate in ASKED_RATES
        ]

    def ends(self, plan: Plan, rng: np.random.Generator) -> FloatArray:
        """Mean reward over the last tenth of new runs, shape (ENDS,)."""
        runs = [simulate_run(self.truth, plan, rng) for _ in range(ENDS)]
        return np.array([float(run.reward[final_rows(run)].mean()) for run in runs])


def made_groups(world: str, seed: int, groups: int, runs: int) -> list[Group]:
    """Groups of one world, with one design for all, so that they share their reference.

    Parameters
    ----------
    world : str
        One of ``WORLDS``.
    seed : int
    groups : int
        In the world of two sizes, two to a task.
    runs : int
        Of each group.

    Returns
    -------
    groups : list of Group
    """
    models = 2 if world == "two sizes" else 1
    rng = np.random.default_rng([seed, WORLDS.index(world), groups, runs])
    rates = np.geomspace(*RATES, runs)
    completions = np.resize(GROUPS, runs)
    made = []
    for task in range(groups // models):
        truth = _truth(world, rng, rates, completions)
        for model, size in list(zip(MODELS, SIZES, strict=True))[:models]:
            name, sizes = f"task {task}", rng.permutation(completions)
            plans = [
                Plan(
                    learning_rate=float(rate),
                    group_size=int(count),
                    task=name,
                    model=model,
                    parameters=size,
                    steps=STEPS,
                )
                for rate, count in zip(rates, sizes, strict=True)
            ]
            own = tuple(
                simulate_run(truth, plan, rng, f"{name} {model} {number}")
                for number, plan in enumerate(plans)
            )
            made.append(Group(name, model, size, own, truth))
    return made


def _truth(
    world: str, rng: np.random.Generator, rates: FloatArray, completions: FloatArray
) -> Truth:
    """What the runs of one task come from."""
    levels = {
        entry: mean + spread * rng.standard_normal()
        for entry, (mean, spread) in TEAM._asdict().items()
    }
    shared = {entry: mean for entry, (mean, _) in TEAM._asdict().items()}
    laws = levels if world == "laws of their own" else shared
    means = prior_means(laws["headroom_logit"], laws["log_slope"])
    means |= {
        "rate.learning_rate": laws["rate_learning_rate"],
        "rate.group_size": laws["rate_group_size"],
    }
    parameters = SIZES[0]
    if world == "two sizes":
        means["curvature_exponent"] = CURVATURE
        parameters = float(np.sqrt(np.prod(SIZES)))
    reference = Reference(
        float(np.exp(np.mean(np.log(rates)))),
        float(np.exp(np.mean(np.log(completions)))),
        Plan().prompts,
        parameters,
    )
    starts = dict.fromkeys(MODELS, -1.4)
    return Truth(reference, means, levels["headroom_logit"], levels["log_slope"], 0.0, starts)
