"""What the model sees of a cohort, as arrays with named dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.model import equations as eq
from advisor.model.cohort import CLOCK_EXPONENTS, MAX_BINS, Cohort
from advisor.model.parameters import GROUP_EFFECTS, LAWS, RUN_EFFECTS, SCALARS
from advisor.theory import FloatArray, IntArray


@dataclass(frozen=True)
class Observations:
    """Rewards of a cohort and what explains them."""

    coords: dict[str, list[Any]]  # labels of the dimensions: task, group (task / model), run, bin
    train_reward: FloatArray  # (runs, bins): share of the reward range; 0 where a run has none
    held_out_reward: FloatArray  # (evaluations,)
    exposure: FloatArray  # of each run: steps survived, weighted by (rate / peak)^2
    collapsed: FloatArray  # of each run: 1 for a collapse
    task_of_group: IntArray
    group_of_run: IntArray
    run_of_evaluation: IntArray
    group_log_parameters: FloatArray  # log(N / N_ref)
    floor: float  # bounds of the reward, in reward units
    ceiling: float
    constant: dict[str, FloatArray]  # what is known of runs, bins and evaluations, by name
    dims: dict[str, tuple[str, ...]]  # dimensions of `constant`

    @property
    def clock_powers(self) -> int:
        """Coefficients of the clock's polynomial in the learning-rate exponent."""
        return int(self.constant["clock"].shape[-1])

    @property
    def is_logged(self) -> FloatArray:
        """1 where a run has the bin, else 0, shape (runs, bins)."""
        return self.constant["is_logged"]


def observations(cohort: Cohort) -> Observations:
    """Lay the bins of a cohort out by run."""
    runs = len(cohort.runs)
    first = np.searchsorted(cohort.run_of_bin, np.arange(runs))
    place = (cohort.run_of_bin, np.arange(cohort.reward.size) - first[cohort.run_of_bin])

    def by_run(values: FloatArray) -> FloatArray:
        table = np.zeros((runs, MAX_BINS, *values.shape[1:]))
        table[place] = values
        return table

    x = cohort.covariates
    constant = {
        "rate_design": (eq.rate_design(x), ("run", "rate_column")),
        "plateau_loss_design": (eq.plateau_loss_design(x), ("run", "plateau_loss_column")),
        "hazard_design": (eq.hazard_design(x), ("run", "hazard_column")),
        "refresh_interval": (cohort.minibatches * cohort.epochs, ("run",)),
        "clipped": (cohort.clipped, ("run",)),
        "corrected": (cohort.corrected, ("run",)),
        "momentum": (cohort.momentum, ("run",)),
        "mean_age": (cohort.mean_age, ("run",)),
        "is_logged": (by_run(np.ones(cohort.reward.size)), ("run", "bin")),
        "step": (by_run(cohort.step), ("run", "bin")),
        "clock": (by_run(eq.clock_polynomial(cohort.clock)), ("run", "bin", "clock_power")),
        "correlation": (_correlation(cohort, place), ("run", "bin", "bin_before")),
        "noise_known": (by_run(cohort.noise_known), ("run", "bin")),
        "noise_within": (by_run(cohort.noise_per_completion), ("run", "bin")),
        "noise_between": (by_run(cohort.noise_per_prompt), ("run", "bin")),
        "eval_clock": (eq.clock_polynomial(cohort.eval_clock), ("evaluation", "clock_power")),
    }
    return Observations(
        coords={
            "task": list(cohort.tasks),
            "group": [f"{task} / {model}" for task, model in cohort.groups],
            "run": [run.id for run in cohort.runs],
            "bin": list(range(MAX_BINS)),
            "bin_before": list(range(MAX_BINS)),
            "clock_power": list(range(CLOCK_EXPONENTS.size)),
            **{f"{law}_column": list(terms) for law, terms in LAWS.items()},
            **{f"{law}_term": [t for t in terms if t != "level"] for law, terms in LAWS.items()},
            "shared_term": list(SCALARS),
            "group_effect": [name.split(".")[1] for name in GROUP_EFFECTS],
            "run_effect": [name.split(".")[1] for name in RUN_EFFECTS],
            "evaluation": [
                f"{cohort.runs[run].id} {index}" for index, run in enumerate(cohort.run_of_eval)
            ],
        },
        train_reward=by_run(cohort.reward),
        held_out_reward=cohort.eval_reward,
        exposure=cohort.exposure,
        collapsed=cohort.collapsed,
        task_of_group=cohort.task_of_group,
        group_of_run=cohort.group_of_run,
        run_of_evaluation=cohort.run_of_eval,
        group_log_parameters=cohort.group_log_parameters,
        floor=cohort.floor,
        ceiling=cohort.ceiling,
        constant={name: values for name, (values, _) in constant.items()},
        dims={name: dims for name, (_, dims) in constant.items()},
    )


def residual_persistence(cohort: Cohort) -> FloatArray:
    """Correlation of the residual of a bin with the one before: ``exp(-(t - t') / tau)``."""
    persistence = np.zeros(cohort.reward.size)
    for run in np.unique(cohort.run_of_bin):
        bins = np.flatnonzero(cohort.run_of_bin == run)
        step = cohort.step[bins]
        tau = eq.WANDER_SHARE * max(float(step[-1]), 1.0)
        persistence[bins[1:]] = np.exp(-np.diff(step) / tau)
    return persistence


def _correlation(cohort: Cohort, place: tuple[IntArray, IntArray]) -> FloatArray:
    """Correlation of the residual between the bins of each run, (runs, bins, bins)."""
    kept = np.zeros((len(cohort.runs), MAX_BINS))
    kept[place] = residual_persistence(cohort)
    table = np.zeros((len(cohort.runs), MAX_BINS, MAX_BINS))
    for late in range(MAX_BINS):
        table[:, late, late] = 1.0
        for early in range(late):
            between = kept[:, early + 1 : late + 1].prod(axis=1)
            table[:, late, early] = table[:, early, late] = between
    return table
