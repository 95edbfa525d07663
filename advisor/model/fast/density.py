"""The log posterior density as machine code: what the sampler calls.

`model.pymc_model` is the definition; a test holds value and gradient to those that PyTensor
computes of it. This one is loaded from disk in a fraction of a second, for a cohort of any size
(case_studies/scale has the comparison). A cohort travels as one block of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, log1p, tanh
from typing import Any

import numpy as np

from advisor.model.equations import ANCHOR_STIFFNESS, HAZARD_PER_LOSS
from advisor.model.fast import BIN_COLUMNS, RUN_COLUMNS, Shape, split
from advisor.model.fast.kernel import log_likelihood, luck_of_runs
from advisor.model.fast.machine_code import compiled
from advisor.model.parameters import LEVELS, POPULATION
from advisor.theory import FloatArray

_HEADER = 9
_LEVELS = len(LEVELS)
_LOSS_LEVEL = POPULATION.index("plateau_loss.level")
_LOSS_BY_RATE = POPULATION.index("plateau_loss.learning_rate")
_HAZARD_LEVEL = POPULATION.index("hazard.level")
_LOG_ANCHOR = float(np.log(ANCHOR_STIFFNESS))
_TASK_TERMS = 3

TABLES = (
    *("prior_mean", "prior_sd", "level_mean", "level_sd"),
    *("run_table", "parents", "first_bin", "bin_table"),
)
"""Data of a cohort in the order of its block."""


def pack(data: Mapping[str, Any], shape: Shape, gap: float = 1.0) -> FloatArray:
    """One block of numbers out of the data of a cohort."""
    pivot = np.bincount(data["parents"][:, 1].astype(int)).argmax()
    sizes = [data["prior_mean"].size, *shape, len(data["bin_table"])]
    head = np.array([0.0, *sizes, float(data["is_oscillator"]), pivot, np.log(gap)])
    tables = [np.asarray(data[name], dtype=float).ravel() for name in TABLES]
    block = np.concatenate([head, *tables])
    block[0] = block.size
    return block


@compiled
def _tables(block: Any) -> Any:
    """Priors of the population and of the levels, and the tables of runs and bins."""
    terms, runs, bins = int(block[1]), int(block[4]), int(block[5])
    levels = _HEADER + 2 * terms
    table = levels + 2 * _LEVELS
    parents = table + runs * RUN_COLUMNS
    first = parents + 2 * runs
    cells = first + runs + 1
    return (
        block[_HEADER : _HEADER + terms],
        block[_HEADER + terms : levels],
        block[levels : levels + _LEVELS],
        block[levels + _LEVELS : table],
        block[table:parents].reshape((runs, RUN_COLUMNS)),
        block[parents:first].reshape((runs, 2)),
        block[first:cells],
        block[cells : cells + bins * BIN_COLUMNS].reshape((bins, BIN_COLUMNS)),
    )


@compiled
def _parts(point: Any, block: Any) -> Any:
    """Parameters, or their gradient, as the kernel takes them."""
    terms, tasks, groups, runs = int(block[1]), int(block[2]), int(block[3]), int(block[4])
    start = terms + _TASK_TERMS * tasks
    tested = start + groups
    group = tested + (_LEVELS - _TASK_TERMS - 1) * groups
    run = group + 2 * groups
    return (
        point[:terms],
        point[terms:start].reshape((_TASK_TERMS, tasks)),
        point[start:tested],
        point[tested:group].reshape((2, groups)),
        point[group:run].reshape((2, groups)),
        point[run:].reshape((3, runs)),
    )


@compiled
def _turn(point: Any, block: Any) -> tuple[int, int, float]:
    """Put headroom and loss in place of sum and balance: places, share of the loss in the sum."""
    headroom, loss = int(block[1]) + int(block[7]), _LOSS_LEVEL
    total, balance, gap = point[headroom], point[loss], block[8]
    share = 0.5 * (1.0 + tanh(0.5 * balance))
    point[loss] = total - log1p(exp(-balance)) if balance > -30 else total + balance
    point[headroom] = gap - total + (log1p(exp(balance)) if balance < 30 else balance)
    return headroom, loss, share


def sampled(point: FloatArray, block: FloatArray) -> FloatArray:
    """Coordinates in which the sampler moves, from those of the model.

    What a cold run lacks at its plateau may be headroom that the task does not have or loss by
    temperature, and pilots tell the sum only: ``gap exp(-headroom logit) + exp(log loss)``. So the
    log of that sum and the log odds of its parts take the places of the two, with a Jacobian of 1.
    """
    headroom, loss = int(block[1] + block[7]), _LOSS_LEVEL
    out = np.array(point)
    lacking = block[8] - point[headroom]
    out[headroom] = np.logaddexp(lacking, point[loss])
    out[loss] = point[loss] - lacking
    return out


def natural(point: FloatArray, block: FloatArray) -> FloatArray:
    """Coordinates of the model, from those of :func:`sampled`."""
    out = np.array(point)
    _turn(out, block)
    return out


@compiled
def _normal(point: Any, mean: Any, sd: Any, gradient: Any) -> float:
    """Log density of independent normals, without constants; the gradient is set."""
    total = 0.0
    for i in range(point.size):
        away = (point[i] - mean[i]) / sd[i]
        total -= 0.5 * away * away
        gradient[i] = -away / sd[i]
    return total


@compiled
def _standard_normal(point: Any, gradient: Any) -> float:
    total = 0.0
    for i in range(point.size):
        total -= 0.5 * point[i] * point[i]
        gradient[i] = -point[i]
    return total


@compiled
def log_density(point: Any, block: Any, gradient: Any) -> Any:
    """Log posterior density up to a constant.

    Long because: every prior and its gradient stand once, in the order of the parameters.
    """
    point = point.copy()
    headroom, loss, share = _turn(point, block)
    task, tasks, groups = int(block[1]), int(block[2]), int(block[3])
    start = task + _TASK_TERMS * tasks
    group = start + (_LEVELS - _TASK_TERMS) * groups
    tables = _tables(block)
    prior_mean, prior_sd, level_mean, level_sd = tables[:4]
    # Priors speak of levels at the anchors: `equations.at_reference`, as conditional means.
    above = -_LOG_ANCHOR
    for i in range(tasks):
        above += (point[task + tasks + i] + log1p(exp(-point[task + i]))) / tasks
    prior_mean = prior_mean.copy()
    prior_mean[_LOSS_LEVEL] += point[_LOSS_BY_RATE] * above
    prior_mean[_HAZARD_LEVEL] += HAZARD_PER_LOSS * point[_LOSS_LEVEL]
    total = _normal(point[:task], prior_mean, prior_sd, gradient[:task])
    by_above = -gradient[_LOSS_LEVEL] * point[_LOSS_BY_RATE]
    gradient[_LOSS_BY_RATE] -= gradient[_LOSS_LEVEL] * above
    gradient[_LOSS_LEVEL] -= gradient[_HAZARD_LEVEL] * HAZARD_PER_LOSS
    for i in range(task, group):
        level = (i - task) // tasks if i < start else _TASK_TERMS + (i - start) // groups
        away = (point[i] - level_mean[level]) / level_sd[level]
        total -= 0.5 * away * away
        gradient[i] = -away / level_sd[level]
    for i in range(tasks):
        gradient[task + tasks + i] += by_above / tasks
        gradient[task + i] -= by_above / tasks / (1 + exp(point[task + i]))
    total += _standard_normal(point[group:], gradient[group:])
    parts, slopes = _parts(point, block), _parts(gradient, block)
    total += log_likelihood(parts, tables[4:], block[6], slopes)
    by_headroom, by_loss = gradient[headroom], gradient[loss]
    gradient[headroom] = by_loss - by_headroom
    gradient[loss] = share * by_headroom + (1 - share) * by_loss
    for i in range(gradient.size):
        if not np.isfinite(gradient[i]):
            return np.nan  # which the sampler takes for a divergence
    return total


@compiled
def _expand(point: Any, block: Any, out: Any) -> None:
    """Copy a point in the model's coordinates, with every run's offset as luck."""
    out[:] = point
    _turn(out, block)
    run_table, parents = _tables(block)[4:6]
    luck_of_runs(_parts(out, block), _parts(point, block)[5], run_table, parents)


def density_of(block: FloatArray) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Log density and gradient of a packed cohort, in the coordinates of :func:`sampled`."""

    def density(point: FloatArray) -> tuple[float, FloatArray]:
        gradient = np.empty_like(point)
        return float(log_density(point, block, gradient)), gradient

    return density


def draw_of(block: FloatArray, shape: Shape) -> Callable[[FloatArray], dict[str, FloatArray]]:
    """Draws as they are kept: in the model's coordinates, every run's offset as run effect."""

    def draw(point: FloatArray) -> dict[str, FloatArray]:
        out = np.empty_like(point)
        _expand(point, block, out)
        return split(out, shape)

    return draw
