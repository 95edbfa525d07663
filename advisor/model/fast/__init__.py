"""The model's log density as machine code, held to the definition in `model.pymc_model`.

Here stands what its modules share: a cohort as tables of numbers, and the shapes of the parameters.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from advisor.model import equations as eq
from advisor.model.cohort import CLOCK_EXPONENTS, Cohort, clock_polynomial
from advisor.model.likelihood import residual_persistence
from advisor.model.parameters import LAWS, LEVELS, POPULATION, RUN_EFFECTS
from advisor.model.priors import SPECTRUM, Family, Priors
from advisor.theory import FloatArray, IntArray

RUN_LOG_PARAMETERS, RUN_INTERVAL, RUN_CLIPPED, RUN_CORRECTED = range(4)
RUN_MOMENTUM, RUN_MEAN_AGE, RUN_COLLAPSED, RUN_EXPOSURE, RUN_PLACES = range(4, 9)
RUN_RATE = RUN_PLACES + 3 * len(RUN_EFFECTS)
RUN_PLATEAU_LOSS = RUN_RATE + len(LAWS["rate"])
RUN_HAZARD = RUN_PLATEAU_LOSS + len(LAWS["plateau_loss"])
RUN_COLUMNS = RUN_HAZARD + len(LAWS["hazard"])
"""Columns of the table of runs; the designs of the laws start at theirs, and so do three numbers
for each offset by which it is placed (`sampler_coordinates.place`)."""

BIN_REWARD, BIN_IS_EVALUATION, BIN_NOISE_KNOWN, BIN_NOISE_WITHIN = range(4)
BIN_NOISE_BETWEEN, BIN_PERSISTENCE, BIN_CLOCK = range(4, 7)
BIN_COLUMNS = BIN_CLOCK + CLOCK_EXPONENTS.size
"""Columns of the table of bins; the clock polynomial starts at its own."""


class Shape(NamedTuple):
    """Numbers of tasks, groups and runs of a cohort."""

    tasks: int
    groups: int
    runs: int


def shape_of(cohort: Cohort) -> Shape:
    """Numbers of tasks, groups and runs."""
    return Shape(len(cohort.tasks), len(cohort.groups), len(cohort.runs))


def shapes_of(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Shapes of all parameters, in the order in which they lie behind each other."""
    return {
        "population": (len(POPULATION),),
        "task_level": (3, shape.tasks),
        "start_logit": (shape.groups,),
        "eval_level": (2, shape.groups),
        "group_offset": (2, shape.groups),
        "run_offset": (len(RUN_EFFECTS), shape.runs),
    }


def split(values: FloatArray, shape: Shape) -> dict[str, FloatArray]:
    """Parameters by name, out of one vector."""
    shapes = shapes_of(shape)
    ends = np.cumsum([math.prod(size) for size in shapes.values()])[:-1]
    parts = zip(shapes.items(), np.split(values, ends), strict=True)
    return {name: part.reshape(size) for (name, size), part in parts}


def data_of(cohort: Cohort, priors: Priors, family: Family = SPECTRUM) -> dict[str, Any]:
    """Everything the model sees, as arrays in the shapes of the cohort's structure."""
    placed = family.priors(priors)
    shared, levels = placed.of(POPULATION), placed.of(LEVELS)
    parents = np.stack([cohort.group_of_run, cohort.task_of_group[cohort.group_of_run]], axis=1)
    bins, first = _bins(cohort)
    return {
        "prior_mean": np.array([prior.mean for prior in shared]),
        "prior_sd": np.array([prior.sd for prior in shared]),
        "level_mean": np.array([prior.mean for prior in levels]),
        "level_sd": np.array([prior.sd for prior in levels]),
        "run_table": _runs(cohort),
        "parents": parents.astype(float),
        "first_bin": first.astype(float),
        "bin_table": bins,
        "is_oscillator": np.asarray(float(family.is_oscillator)),
    }


def _runs(cohort: Cohort) -> FloatArray:
    """Table of the runs, column by column as they are named above."""
    x = cohort.covariates
    own = (cohort.clipped, cohort.corrected, cohort.momentum, cohort.mean_age)
    return np.column_stack(
        [
            *(x.log_parameters, cohort.minibatches * cohort.epochs, *own),
            *(cohort.collapsed, cohort.exposure),
            np.zeros((len(cohort.runs), RUN_RATE - RUN_PLACES)),
            *eq.designs(x).values(),
        ]
    )


def _bins(cohort: Cohort) -> tuple[FloatArray, IntArray]:
    """Table of the bins of train reward and of evaluations by run, and where each run starts."""
    none, ones = np.zeros(cohort.reward.size), np.ones(cohort.eval_reward.size)
    noise = cohort.noise_known, cohort.noise_per_completion, cohort.noise_per_prompt
    clock = clock_polynomial(cohort.clock)
    train = np.column_stack([cohort.reward, none, *noise, residual_persistence(cohort), clock])
    clock = clock_polynomial(cohort.eval_clock)
    tested = np.column_stack([cohort.eval_reward, ones, *np.zeros((4, ones.size)), clock])
    owner = np.concatenate([cohort.run_of_bin, cohort.run_of_eval])
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], np.arange(len(cohort.runs) + 1))
    return np.concatenate([train, tested])[order], first
