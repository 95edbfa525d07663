"""The hierarchical PyMC model: pilots in, population and run parameters out.

Task -> model -> run. All standard deviations multiply standard normals (non-centred), plateaus are
sampled as a share of the headroom above the start, and stiffness through the initial slope, which
even a short pilot identifies (theory section 8): ``log k = log slope - log headroom share``.

Parameters are few vectors rather than many scalars, and nothing is derived inside the graph:
compilation is most of the cost of a fit, and it grows with the number of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from advisor.posterior import equations as eq
from advisor.priors import Priors
from advisor.priors.loader import NormalPrior
from advisor.runs.cohort import Cohort

STUDENT_T_DEGREES = 5.0
"""Degrees of freedom of a binned reward: an odd bin must not drag a curve."""


def population_priors(priors: Priors) -> list[NormalPrior]:
    """Priors in the order of :func:`equations.population_names`."""
    return [getattr(priors, name.replace(".", "_")) for name in eq.population_names()]


def build_model(cohort: Cohort, priors: Priors) -> pm.Model:
    """Build the model for a cohort.

    Parameters
    ----------
    cohort : Cohort
        Pilot runs as arrays.
    priors : Priors
        A preset.

    Returns
    -------
    model : pymc.Model
        Named dims ``population_term``, ``task``, ``group`` (task, model), ``run``, ``bin``.
    """
    coords = {
        "population_term": list(eq.population_names()),
        "task": list(cohort.tasks),
        "group": [f"{task} / {model}" for task, model in cohort.groups],
        "run": [run.id for run in cohort.runs],
        "bin": np.arange(cohort.reward.size),
        "task_term": ["headroom_logit", "log_slope"],
        "group_term": ["headroom", "stiffness"],
        "run_term": ["plateau", "stiffness"],
    }
    shared = population_priors(priors)
    levels = [priors.headroom_logit, priors.log_slope]
    with pm.Model(coords=coords) as model:
        vector = pm.Normal("population", _means(shared), _sds(shared), dims="population_term")
        task = pm.Normal(
            "task_level", _means(levels)[:, None], _sds(levels)[:, None], dims=("task_term", "task")
        )
        start = pm.Normal(
            "start_logit", priors.start_logit.mean, priors.start_logit.sd, dims="group"
        )
        group = pm.Normal("group_offset", 0.0, 1.0, dims=("group_term", "group"))
        run = pm.Normal("run_offset", 0.0, 1.0, dims=("run_term", "run"))
        laws, population = _named(vector)
        mean = _curve(cohort, laws, population, task, start, group, run)
        _observe_rewards(cohort, population, mean)
        _observe_survival(cohort, laws["hazard"])
    return model


def _named(vector: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Cut the population vector into its laws and its scalars (each of shape (1,))."""
    sizes = [len(terms) for terms in eq.LAWS.values()] + [1] * len(eq.SCALARS)
    pieces = pt.split(vector, sizes, n_splits=len(sizes))
    return (
        dict(zip(eq.LAWS, pieces[: len(eq.LAWS)], strict=True)),
        dict(zip(eq.SCALARS, pieces[len(eq.LAWS) :], strict=True)),
    )


def _product(design: Any, coefficients: Any) -> Any:
    """``design @ coefficients`` as multiply and sum.

    PyTensor's matrix product calls BLAS through numba, which takes up to half a minute to compile;
    these matrices have a few hundred entries.
    """
    return (design * coefficients[None, :]).sum(axis=1)


def _means(priors: Sequence[NormalPrior]) -> Any:
    return np.array([prior.mean for prior in priors])


def _sds(priors: Sequence[NormalPrior]) -> Any:
    return np.array([prior.sd for prior in priors])


def _curve(
    cohort: Cohort,
    laws: dict[str, Any],
    population: dict[str, Any],
    task: Any,
    start: Any,
    group: Any,
    run: Any,
) -> Any:
    """Expected scaled reward of every bin.

    Group parameters are copied to runs and the results to bins: one shape at each level lets the
    compiler fuse a level into few loops, and compile time is most of the cost of a fit.
    """
    of_group = cohort.group_of_run
    x = cohort.covariates
    task_of = task[:, cohort.task_of_group[of_group]]
    group_of = group[:, of_group]
    at_run = eq.run_level(
        population,
        eq.group_level(
            population,
            task_of[0],
            task_of[1],
            start[of_group],
            group_of[0],
            group_of[1],
            x.log_parameters,
        ),
        _product(eq.rate_design(x), laws["rate"]),
        _product(eq.depression_design(x), laws["depression"]),
        run[0],
        run[1],
        cohort.minibatches * cohort.epochs,
        cohort.clipped,
    )
    share = eq.uncorrected(population, cohort.corrected)
    per_bin = pt.stack([*at_run, share])[:, cohort.run_of_bin]
    exponent = laws["rate"][:1]
    c0, c1, c2, c3 = eq.clock_polynomial(cohort.clock).T
    return eq.expected_reward(
        c0 + exponent * (c1 + exponent * (c2 + exponent * c3)),
        eq.RunLevel(per_bin[0], per_bin[1], per_bin[2]),
        cohort.momentum[cohort.run_of_bin],
        cohort.mean_age[cohort.run_of_bin],
        per_bin[3],
        pt.exp(population["log_dispersion"]),
    )


def _observe_rewards(cohort: Cohort, population: dict[str, Any], mean: Any) -> None:
    # Var(y) = (E[p(1-p)]/G + Var_prompt(p))/P: p(1-p) is split into both parts (theory section 6).
    within = eq.sigmoid(population["within_log_odds"])
    sampling = within * cohort.noise_per_completion + (1 - within) * cohort.noise_per_prompt
    variance = pt.exp(2 * population["log_noise_scale"]) * sampling
    pm.StudentT(
        "reward",
        nu=STUDENT_T_DEGREES,
        mu=mean,
        sigma=pt.sqrt(variance + pt.exp(2 * population["log_misfit"])),
        observed=cohort.reward,
        dims="bin",
    )


def _observe_survival(cohort: Cohort, hazard: Any) -> None:
    """Right-censored collapse times: surviving 40 steps counts for 40."""
    log_hazard = _product(eq.hazard_design(cohort.covariates), hazard)
    pm.Potential(
        "survival", (cohort.collapsed * log_hazard - pt.exp(log_hazard) * cohort.exposure).sum()
    )
