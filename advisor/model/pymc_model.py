"""The hierarchical PyMC model: pilots in, population and run parameters out.

Task -> model -> run. All standard deviations multiply standard normals (non-centred), plateaus are
sampled as a share of the headroom above the start, and stiffness through the initial slope, which
even a short pilot identifies (theory section 8): ``log k = log slope - log headroom share``.

This is the definition; `density` is the same in machine code, which `fitting` samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from advisor.model import equations as eq
from advisor.model.fast.operation import log_likelihood
from advisor.model.fast.tables import Shape
from advisor.model.parameters import LEVELS, POPULATION, RUN_EFFECTS


def build_model(shape: Shape, data: Mapping[str, Any]) -> pm.Model:
    """Build the model of a cohort.

    Parameters
    ----------
    shape : Shape
        Numbers of tasks, groups and runs.
    data : mapping of str to ndarray
        From `structure.data_of`; replaceable by another cohort's of the same shape.

    Returns
    -------
    model : pymc.Model
        Named dims ``population_term``, ``task``, ``group`` (task, model), ``run``.
    """
    coords = {
        "population_term": list(POPULATION),
        "task": range(shape.tasks),
        "group": range(shape.groups),
        "run": range(shape.runs),
        "task_term": LEVELS[:3],
        "eval_term": LEVELS[4:],
        "group_term": ["headroom", "stiffness"],
        "run_term": list(RUN_EFFECTS),
    }
    with pm.Model(coords=coords) as model:
        seen = {name: pm.Data(name, values) for name, values in data.items()}
        mean, sd = seen["level_mean"], seen["level_sd"]
        parameters = (
            pm.Normal("population", seen["prior_mean"], seen["prior_sd"], dims="population_term"),
            pm.Normal("task_level", mean[:3, None], sd[:3, None], dims=("task_term", "task")),
            pm.Normal("start_logit", mean[3], sd[3], dims="group"),
            pm.Normal("eval_level", mean[4:, None], sd[4:, None], dims=("eval_term", "group")),
            pm.Normal("group_offset", 0.0, 1.0, dims=("group_term", "group")),
            pm.Normal("run_offset", 0.0, 1.0, dims=("run_term", "run")),
        )
        pm.Potential("anchored", _anchored(parameters[0], parameters[1], seen))
        cohort = ("run_table", "parents", "first_bin", "bin_table", "is_oscillator")
        value = log_likelihood(*parameters, *(seen[name] for name in cohort))[0]
        pm.Potential("log_likelihood", value)
    return model


def _anchored(population: Any, task_level: Any, seen: Mapping[str, Any]) -> Any:
    """Log prior of the two levels given their anchors, less that of levels without.

    See `equations.at_reference`.
    """
    names = POPULATION
    loss, hazard = names.index("plateau_loss.level"), names.index("hazard.level")
    stiffness = (task_level[1] + pt.softplus(-task_level[0])).mean()
    by_rate = population[names.index("plateau_loss.learning_rate")]
    shifts = {
        loss: by_rate * (stiffness - np.log(eq.ANCHOR_STIFFNESS)),
        hazard: eq.HAZARD_PER_LOSS * population[loss],
    }
    total = 0.0
    for index, shift in shifts.items():
        mean, sd = seen["prior_mean"][index], seen["prior_sd"][index]
        shifted = pm.logp(pm.Normal.dist(mean + shift, sd), population[index])
        total += shifted - pm.logp(pm.Normal.dist(mean, sd), population[index])
    return total
