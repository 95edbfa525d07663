"""Where the sampler starts, and in which coordinates it moves.

Chains that start far away get stuck, so they start from least squares. A run that its own data pin
down is best sampled by its values (centred), one that they leave open by its luck (non-centred):
chosen wrongly, either makes a funnel in which chains creep. How much of either is right is read off
the curvature of the density at its mode, found in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from advisor.model import equations as eq
from advisor.model import fast as columns
from advisor.model.cohort import CLOCK_EXPONENTS, Cohort
from advisor.model.fast import Shape, data_of, shape_of, shapes_of, split
from advisor.model.fast.density import density_of, natural, pack, sampled
from advisor.model.fast.kernel import LEAST_GAP
from advisor.model.parameters import GROUP_LEVELS, LAWS, POPULATION, SCALARS, TASK_LEVELS
from advisor.model.priors import SPECTRUM, Family, Priors
from advisor.theory import FloatArray, IntArray, overdamped_trajectory

STEP = 1e-4  # Of the finite difference of the gradient; parameters are of order one

SPREADS = ("log_misfit", "log_noise_scale", *(name for name in SCALARS if "_spread" in name))
"""Held at their prior means: at the joint mode spreads shrink to nothing."""

LUCK_JITTER = 0.5
PRIOR_JITTER = 0.1
"""Half-widths by which chains start apart: in luck, and in prior standard deviations."""


class Placement(NamedTuple):
    """Data whose runs are placed, and a point to start from."""

    data: dict[str, Any]
    block: FloatArray
    point: FloatArray
    spread: FloatArray

    def start(self, seed: int) -> FloatArray:
        """Start point of a chain, shape (size,)."""
        jitter = np.random.default_rng(seed).uniform(-1.0, 1.0, self.point.size)
        return np.asarray(self.point + self.spread * jitter)


def place(cohort: Cohort, priors: Priors, family: Family = SPECTRUM) -> Placement:
    """Find the mode and choose the coordinates of every run."""
    data = data_of(cohort, priors, family)
    shape = shape_of(cohort)
    start = start_points(cohort, family.priors(priors))
    sizes = shapes_of(shape).items()
    parts = [np.broadcast_to(start.get(name, 0.0), size).ravel() for name, size in sizes]
    point = np.concatenate(parts)
    gap = float(1 - eq.sigmoid(np.median(start["start_logit"])))
    block = pack(data, shape, gap)
    density = density_of(block)
    held = [POPULATION.index(name) for name in SPREADS]
    point[held] = data["prior_mean"][held]
    point = _mode(density, sampled(point, block), held)
    bases, spreads = _bases(data, shape, natural(point, block))
    table, offsets = _placed(data, shape, density, point, bases, spreads)
    placed = data | {"run_table": table}
    at = point.size - 3 * shape.runs
    spread = np.full(point.size, PRIOR_JITTER)
    spread[: data["prior_sd"].size] *= data["prior_sd"]
    spread[at:] = LUCK_JITTER
    point[at:] = offsets.ravel()
    point[held] += PRIOR_JITTER * data["prior_sd"][held]
    return Placement(placed, pack(placed, shape, gap), point, spread)


def _mode(
    density: Callable[[FloatArray], tuple[float, FloatArray]], point: FloatArray, held: list[int]
) -> FloatArray:
    from scipy.optimize import minimize

    def downhill(point: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = density(point)
        gradient[held] = 0.0
        return -value, -gradient

    found = minimize(downhill, point, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(found.x)


def _placed(
    data: Mapping[str, Any],
    shape: Shape,
    density: Callable[[FloatArray], tuple[float, FloatArray]],
    point: FloatArray,
    bases: Mapping[str, FloatArray],
    spreads: Mapping[str, float],
) -> tuple[FloatArray, FloatArray]:
    """Table of runs with how each is placed, and the offsets of the mode in these coordinates."""
    table = np.array(data["run_table"])
    has_bins = np.diff(data["first_bin"]) > 0
    at = point.size - 3 * shape.runs
    luck = np.array(point[at:]).reshape(3, shape.runs)
    weights = np.empty((3, shape.runs))
    for kind in range(3):
        known = _curvature(density, point, at + kind * shape.runs + np.arange(shape.runs)) - 1
        known = np.where(has_bins, np.maximum(known, 0.0), 0.0)
        weights[kind] = known / (1 + known)
    plateau = columns.RUN_PLACES
    for kind, name in ((1, "rate"), (2, "shape")):
        column = columns.RUN_PLACES + 3 * kind
        table[:, column] = bases[name] + spreads[name] * luck[kind]
        table[:, column + 1] = spreads[name]
        table[:, column + 2] = weights[kind]
    # By how much the plateau falls per unit of log loss, and rises per unit of log odds and luck.
    loss = np.exp(bases["loss"] - spreads["loss"] * luck[0])
    rise = 1 - eq.shifted_share(eq.sigmoid(bases["cold_logit"]), spreads["plateau"] * luck[0])
    by_luck = rise * spreads["plateau"] + loss * spreads["loss"]
    table[:, plateau] = weights[0] * rise / by_luck
    table[:, plateau + 1] = -weights[0] * loss / by_luck
    table[:, plateau + 2] = (
        table[:, plateau] * bases["cold_logit"]
        + table[:, plateau + 1] * bases["loss"]
        + weights[0] * luck[0]
    )
    return table, (1 - weights) * luck


def _curvature(
    density: Callable[[FloatArray], tuple[float, FloatArray]], point: FloatArray, indices: IntArray
) -> FloatArray:
    """Negative second derivatives, all moved at once: runs know nothing of each other."""
    ahead, behind = point.copy(), point.copy()
    ahead[indices] += STEP
    behind[indices] -= STEP
    change = density(behind)[1] - density(ahead)[1]
    return np.asarray(change[indices] / (2 * STEP))


def _bases(
    data: Mapping[str, Any], shape: Shape, point: FloatArray
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """What the laws give each run, shape (runs,), and standard deviations of the luck of runs."""
    values = split(point, shape)
    population = dict(zip(POPULATION, values["population"], strict=True))
    laws = {
        law: np.array([population[f"{law}.{term}"] for term in terms])
        for law, terms in LAWS.items()
    }
    group, task = data["parents"].astype(int).T
    table = data["run_table"]
    level = eq.group_level(
        population,
        values["task_level"][0, task],
        values["task_level"][1, task],
        values["start_logit"][group],
        values["group_offset"][0, group],
        values["group_offset"][1, group],
        table[:, columns.RUN_LOG_PARAMETERS],
    )
    rate = table[:, columns.RUN_RATE : columns.RUN_PLATEAU_LOSS] @ laws["rate"]
    loss = table[:, columns.RUN_PLATEAU_LOSS : columns.RUN_HAZARD] @ laws["plateau_loss"]
    cold = np.clip(level.cold_plateau, LEAST_GAP, 1 - LEAST_GAP)
    bases = {
        "cold_logit": np.log(cold / (1 - cold)),
        "loss": np.clip(loss, *eq.LOG_LOSS_ENDS),
        "rate": np.asarray(level.log_stiffness + rate),
        "shape": np.full(shape.runs, population["log_dispersion"]),
    }
    spreads = {
        kind: float(np.exp(population[f"log_run_{kind}_spread"]))
        for kind in ("plateau", "loss", "rate", "shape")
    }
    return bases, spreads


def start_points(cohort: Cohort, priors: Priors) -> dict[str, FloatArray]:
    """Start values of the population, group and task parameters."""
    shape = shape_of(cohort)
    clock = cohort.clock[:, int(np.argmin(np.abs(CLOCK_EXPONENTS - 1.0)))]

    def off_centre(names: Sequence[str]) -> FloatArray:
        # Exactly at its prior mean a parameter that the data do not touch has zero gradient, which
        # the sampler refuses as a broken start.
        return np.array([prior.mean + 0.1 * prior.sd for prior in priors.of(names)])

    start = np.repeat(off_centre(["start_logit"]), shape.groups)
    levels = np.tile(off_centre(TASK_LEVELS)[:, None], shape.tasks)
    tests = np.tile(off_centre(GROUP_LEVELS[1:])[:, None], shape.groups)
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
    anchored = dict(zip(POPULATION, off_centre(POPULATION), strict=True))
    stiffness = eq.task_log_stiffness(levels[0], levels[1])
    population = np.array(list(eq.at_reference(anchored, stiffness).values()))
    own = {"start_logit": start, "task_level": levels, "eval_level": tests}
    return {"population": population, **own}


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
