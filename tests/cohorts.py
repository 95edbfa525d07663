"""Small simulated cohorts of every kind of run, and random points of their models."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from simulated_runs import KNOWN_SIZES, PRESET, Plan, Truth, simulate_run

from advisor.model import POPULATION, SPECTRUM, Cohort, Reference, cohort_of, load_priors
from advisor.model.fast import RUN_PLACES, data_of, kernel, shape_of, shapes_of
from advisor.model.fast.density import density_of, draw_of, natural, pack, sampled

PRIORS = load_priors(PRESET).model_copy(update={"speed_law": None})
TRUTH = Truth(Reference(3e-4, 8.0, 16.0, 1e5))

SCENARIOS = {
    "one run": [Plan()],
    "one group": [Plan(), Plan(1e-3, 16), Plan(1e-4)],
    "two tasks": [Plan(), Plan(1e-3), Plan(task="mod"), Plan(1e-3, task="mod", model="tiny-m")],
    "only collapsed": [Plan(3e-3, collapse=30), Plan(1e-2, collapse=20), Plan(6e-3, collapse=7)],
    "one that collapsed at once": [Plan(3e-2, collapse=1)],
    "stale without a ratio": [Plan(minibatches=16, ratio=False), Plan(epochs=8, ratio=False)],
    "linear schedule": [Plan(schedule="linear"), Plan(1e-3, schedule="linear", warmup=10)],
    "no momentum, long lag": [Plan(momentum=0.0, lag=20.0), Plan(1e-3, momentum=0.99, lag=3.5)],
    "six orders of learning rate": [Plan(1e-8), Plan(1e-5), Plan(1e-2)],
    "all there is": [
        Plan(1e-4, 4, minibatches=4, logging=2),
        Plan(3e-4, 16, epochs=3, prompts=32, model="tiny-m", parameters=4e5),
        Plan(1e-3, 8, minibatches=2, epochs=2, ratio=False, lag=3.0),
        Plan(1e-3, 8, minibatches=8, schedule="cosine", warmup=5, momentum=0.5, task="mod"),
        Plan(3e-3, 8, collapse=30, model="tiny-m", parameters=4e5),
        Plan(3e-4, 8, momentum=0.0, schedule="linear", task="mod", lag=7.0),
    ],
}

TESTED = {"one run", "two tasks", "all there is"}
"""Scenarios of which every other run was also evaluated on held-out prompts."""


@cache
def simulated(name: str) -> Cohort:
    return simulated_from(TRUTH, name)


def simulated_from(truth: Truth, name: str) -> Cohort:
    rng, tests = (np.random.default_rng([s, list(SCENARIOS).index(name)]) for s in (50, 51))
    runs = []
    for index, plan in enumerate(SCENARIOS[name]):
        run = simulate_run(truth, plan, rng, f"run{index}")
        if name in TESTED and index % 2 == 0:
            step = np.array([0.0, 5.0, 20.0, 50.0])
            held_out = 0.2 + 0.3 * step / 50 + 0.03 * tests.standard_normal(step.size)
            run = run.with_updates(eval_step=step, eval_reward=held_out)
        runs.append(run)
    return cohort_of(runs)


def without_bins(cohort: Cohort, run: int) -> Cohort:
    """Cohort of which one run has told nothing but that it survived."""
    kept = cohort.run_of_bin != run
    names = ("run_of_bin", "reward", "noise_per_completion", "noise_per_prompt", "noise_known")
    bins = {name: getattr(cohort, name)[kept] for name in (*names, "step", "clock")}
    kept = cohort.run_of_eval != run
    names = ("run_of_eval", "eval_reward", "eval_clock")
    return replace(cohort, **bins, **{name: getattr(cohort, name)[kept] for name in names})


def random_point(cohort: Cohort, rng: np.random.Generator, family: Any = SPECTRUM) -> Any:
    """A point half a prior standard deviation or so off the prior means, by parameter.

    So are the levels of plateau loss and collapse, although at the reference the priors speak of
    none: those that they imply for a task as slow would hardly count in a comparison. Size laws are
    milder than the priors': a large model that loses all its reward hides its own luck.
    """
    data = data_of(cohort, PRIORS, family)
    mean, spread = data["prior_mean"].copy(), data["prior_sd"].copy()
    for term, value in KNOWN_SIZES.items():
        at = POPULATION.index(term)
        mean[at], spread[at] = value, 0.5
    level, sd = data["level_mean"], data["level_sd"]
    centre = {
        "population": (mean, spread),
        "task_level": (level[:3, None], sd[:3, None]),
        "start_logit": (level[3], sd[3]),
        "eval_level": (level[4:, None], sd[4:, None]),
        "group_offset": (0.0, 2.0),
        "run_offset": (0.0, 2.0),
    }
    assert centre.keys() == shapes_of(shape_of(cohort)).keys()
    return {
        name: centre[name][0] + 0.5 * centre[name][1] * rng.standard_normal(shape)
        for name, shape in shapes_of(shape_of(cohort)).items()
    }


def flat(point: Any) -> Any:
    """All parameters behind each other, as the sampler has them."""
    return np.concatenate([np.ravel(values) for values in point.values()])


def unflat(vector: Any, cohort: Cohort) -> Any:
    """The reverse of :func:`flat`."""
    out, at = {}, 0
    for name, shape in shapes_of(shape_of(cohort)).items():
        size = int(np.prod(shape))
        out[name] = np.asarray(vector[at : at + size]).reshape(shape)
        at += size
    return out


def with_places(data: Any, rng: np.random.Generator) -> Any:
    """Data whose runs are placed anyhow: by luck, by value, and in between."""
    table = data["run_table"].copy()
    has_bins = np.diff(data["first_bin"]) > 0
    # Of the plateau: how much of its luck each unit of its law takes.
    column = RUN_PLACES
    weight = np.where(has_bins, np.resize([0.4, 1.5, 0.0, 0.8], len(table)), 0.0)
    table[:, column] = weight
    table[:, column + 1] = -0.3 * weight
    table[:, column + 2] = weight * rng.normal(1.0, 0.5, len(table))
    for kind in (1, 2):
        column = RUN_PLACES + 3 * kind
        table[:, column] = rng.normal(-2.0, 1.0, len(table))
        table[:, column + 1] = np.exp(rng.normal(-1.0, 0.5, len(table)))
        weight = np.resize([0.7, 1.0, 0.0, 0.3], len(table))
        table[:, column + 2] = np.where(has_bins, np.roll(weight, kind), 0.0)
    return data | {"run_table": table}


class Block:
    """A cohort packed for the machine code: density and coordinates, as the sampler has them."""

    def __init__(self, cohort: Cohort, data: Any = None, gap: float = 1.0) -> None:
        self.shape = shape_of(cohort)
        self.values = pack(data or data_of(cohort, PRIORS), self.shape, gap)

    def density(self, there: Any) -> tuple[float, Any]:
        """Log density and its gradient."""
        return density_of(self.values)(there)

    def at(self, point: Any) -> tuple[float, Any]:
        """The same at a point of the model."""
        return self.density(self.sampled(flat(point)))

    def sampled(self, vector: Any) -> Any:
        """Coordinates of the sampler, from those of the model."""
        return sampled(vector, self.values)

    def natural(self, there: Any) -> Any:
        """The reverse of :meth:`sampled`."""
        return natural(there, self.values)

    def draw(self, there: Any) -> Any:
        """What is kept of a draw, by parameter."""
        return draw_of(self.values, self.shape)(there)


def likelihood(data: Any, point: Any, added_to: float = 0.0) -> tuple[float, Any]:
    """Log likelihood of the machine code at a point, and its gradient, flat, added to a number."""
    parts = tuple(np.ascontiguousarray(values, dtype=float) for values in point.values())
    slopes = tuple(np.full_like(values, added_to) for values in parts)
    tables = tuple(data[name] for name in ("run_table", "parents", "first_bin", "bin_table"))
    value = kernel.log_likelihood(parts, tables, float(data["is_oscillator"]), slopes)
    return value, np.concatenate([slope.ravel() for slope in slopes])


def luck(data: Any, point: Any) -> Any:
    """Run effects of a point, in standard deviations, from its run offsets."""
    *parts, offsets = (np.ascontiguousarray(values) for values in point.values())
    found = np.empty_like(offsets)
    kernel.luck_of_runs((*parts, found), offsets, data["run_table"], data["parents"])
    return found
