"""Start points from least squares: chains that start far away get stuck."""

from __future__ import annotations

import numpy as np

from advisor.model.cohort import CLOCK_EXPONENTS, Cohort
from advisor.model.equations import at_reference, task_log_stiffness
from advisor.model.fast.tables import shape_of
from advisor.model.parameters import POPULATION
from advisor.model.priors import Priors
from advisor.model.priors.loader import NormalPrior
from advisor.theory import FloatArray, overdamped_trajectory

OFF_CENTRE = 0.1
"""Prior standard deviations by which population parameters start off their prior mean."""

_NEAREST_TO_ONE = int(np.argmin(np.abs(CLOCK_EXPONENTS - 1.0)))


def start_points(cohort: Cohort, priors: Priors) -> dict[str, FloatArray]:
    """Start values of the population, group and task parameters."""
    shape = shape_of(cohort)
    shared = [getattr(priors, name.replace(".", "_")) for name in POPULATION]
    clock = cohort.clock[:, _NEAREST_TO_ONE]
    start = np.full(shape.groups, _off_centre(priors.start_logit))
    levels = np.empty((3, shape.tasks))
    for row, prior in enumerate((priors.headroom_logit, priors.log_slope, priors.log_onset)):
        levels[row] = _off_centre(prior)
    tests = np.empty((2, shape.groups))
    for row, prior in enumerate((priors.eval_start_logit, priors.log_eval_gain)):
        tests[row] = _off_centre(prior)
    for group in range(len(cohort.groups)):
        first = [
            cohort.reward[bins][0]
            for run in np.flatnonzero(cohort.group_of_run == group)
            if (bins := cohort.run_of_bin == run).any()
        ]
        level = np.clip(np.median(first), 0.01, 0.99)
        start[group] = np.log(level / (1 - level))
    for task in range(len(cohort.tasks)):
        fits = [
            fit
            for run in range(len(cohort.runs))
            if cohort.task_of_group[cohort.group_of_run[run]] == task
            and (fit := _fit_run(cohort, clock, run)) is not None
        ]
        if fits:
            headroom, log_slope = np.median(np.array(fits), axis=0)
            share = np.clip(headroom, 0.05, 0.95)
            levels[:2, task] = np.log(share / (1 - share)), log_slope
    anchored = {name: _off_centre(prior) for name, prior in zip(POPULATION, shared, strict=True)}
    stiffness = task_log_stiffness(levels[0], levels[1])
    population = np.array(list(at_reference(anchored, stiffness).values()))
    return {
        "population": population,
        "start_logit": start,
        "task_level": levels,
        "eval_level": tests,
    }


def _off_centre(prior: NormalPrior) -> float:
    # Exactly at its prior mean a parameter that the data do not touch has zero gradient, which the
    # sampler refuses as a broken start.
    return prior.mean + OFF_CENTRE * prior.sd


def _fit_run(cohort: Cohort, clock: FloatArray, run: int) -> tuple[float, float] | None:
    """Headroom share and log relative slope at the reference rate, or None for a flat run."""
    from scipy.optimize import least_squares

    bins = cohort.run_of_bin == run
    if bins.sum() < 3 or cohort.collapsed[run]:
        return None
    time, reward = clock[bins], cohort.reward[bins]
    span = max(float(time[-1]), 1.0)

    def residual(theta: FloatArray) -> FloatArray:
        return np.asarray(
            overdamped_trajectory(time, theta[0], theta[1], np.exp(theta[2])) - reward
        )

    fit = least_squares(
        residual,
        x0=np.array([reward[0], max(reward[-1], reward[0]), np.log(span / 2)]),
        bounds=([-0.2, 0.0, np.log(span / 50)], [1.0, 1.0, np.log(span * 10)]),
    )
    start, plateau, log_time = fit.x
    gain = plateau - start
    if gain < 0.02 or start > 0.98:
        return None
    headroom = gain / (1 - start)
    return headroom, float(np.log(headroom) - log_time - cohort.log_rate[run])
