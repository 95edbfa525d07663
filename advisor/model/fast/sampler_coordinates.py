"""Where the sampler starts, and in which coordinates it moves.

A run that its own data pin down is best sampled by its values (centred), one that they leave open
by its luck (non-centred): chosen wrongly, either makes a funnel in which chains creep. How much of
either is right is read off the curvature of the density at its mode, found in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from advisor.model import equations as eq
from advisor.model.cohort import Cohort
from advisor.model.families import SPECTRUM, Family
from advisor.model.fast import tables as columns
from advisor.model.fast.density import density_of, natural, pack, sampled
from advisor.model.fast.kernel import LEAST_GAP
from advisor.model.fast.start import start_points
from advisor.model.fast.tables import Shape, data_of, shape_of, shapes_of
from advisor.model.parameters import LAWS, POPULATION, SCALARS
from advisor.model.priors import Priors
from advisor.theory import FloatArray, IntArray

STEP = 1e-4
"""Of the finite difference of the gradient; parameters are of order one."""

ITERATIONS = 500

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
    point = np.concatenate(
        [
            np.broadcast_to(start.get(name, 0.0), size).ravel()
            for name, size in shapes_of(shape).items()
        ]
    )
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

    options = {"maxiter": ITERATIONS}
    found = minimize(downhill, point, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x)


def _placed(
    data: Mapping[str, Any],
    shape: Shape,
    density: Callable[[FloatArray], tuple[float, FloatArray]],
    point: FloatArray,
    bases: _Bases,
    spreads: _Spreads,
) -> tuple[FloatArray, FloatArray]:
    """Table of runs with how each is placed, and the offsets of the mode in these coordinates."""
    table = np.array(data["run_table"])
    has_bins = np.diff(data["first_bin"]) > 0
    at = point.size - 3 * shape.runs
    luck = np.array(point[at:]).reshape(3, shape.runs)
    weights = np.empty((3, shape.runs))
    for kind in range(3):
        told = _curvature(density, point, at + kind * shape.runs + np.arange(shape.runs)) - 1
        told = np.where(has_bins, np.maximum(told, 0.0), 0.0)
        weights[kind] = told / (1 + told)
    plateau = columns.RUN_PLACES
    for kind, base, spread in ((1, bases.rate, spreads.rate), (2, bases.shape, spreads.shape)):
        column = columns.RUN_PLACES + 3 * kind
        table[:, column] = base + spread * luck[kind]
        table[:, column + 1] = spread
        table[:, column + 2] = weights[kind]
    # By how much the plateau falls per unit of log loss, and rises per unit of log odds and luck.
    loss = np.exp(bases.loss - spreads.loss * luck[0])
    rise = 1 - eq.shifted_share(eq.sigmoid(bases.cold_logit), spreads.plateau * luck[0])
    by_luck = rise * spreads.plateau + loss * spreads.loss
    table[:, plateau] = weights[0] * rise / by_luck
    table[:, plateau + 1] = -weights[0] * loss / by_luck
    table[:, plateau + 2] = (
        table[:, plateau] * bases.cold_logit
        + table[:, plateau + 1] * bases.loss
        + weights[0] * luck[0]
    )
    return table, (1 - weights) * luck


def _curvature(
    density: Callable[[FloatArray], tuple[float, FloatArray]],
    point: FloatArray,
    indices: IntArray,
) -> FloatArray:
    """Negative second derivative along each coordinate, shape (indices,).

    All are moved at once: given what they share, runs know nothing of each other.
    """
    ahead, behind = point.copy(), point.copy()
    ahead[indices] += STEP
    behind[indices] -= STEP
    change = density(behind)[1] - density(ahead)[1]
    return np.asarray(change[indices] / (2 * STEP))


class _Bases(NamedTuple):
    """What the laws give each run, shape (runs,)."""

    cold_logit: FloatArray
    loss: FloatArray
    rate: FloatArray
    shape: FloatArray


class _Spreads(NamedTuple):
    """Standard deviations of the luck of runs."""

    plateau: float
    loss: float
    rate: float
    shape: float


def _bases(data: Mapping[str, Any], shape: Shape, point: FloatArray) -> tuple[_Bases, _Spreads]:
    values, at = {}, 0
    for name, size in shapes_of(shape).items():
        count = int(np.prod(size))
        values[name] = point[at : at + count].reshape(size)
        at += count
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
    bases = _Bases(
        np.log(cold / (1 - cold)),
        np.clip(loss, *eq.LOG_LOSS_ENDS),
        np.asarray(level.log_stiffness + rate),
        np.full(shape.runs, population["log_dispersion"]),
    )
    spreads = _Spreads(
        *(
            float(np.exp(population[f"log_run_{kind}_spread"]))
            for kind in ("plateau", "loss", "rate", "shape")
        )
    )
    return bases, spreads
