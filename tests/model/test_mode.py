"""Where chains start and in which coordinates: the mode, the places, and the starts round it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cohorts import PRIORS, SCENARIOS, TRUTH, Block, luck, simulated, unflat
from scipy.special import expit
from simulated_runs import Plan

from advisor.model import FAMILIES, POPULATION, cohort_of
from advisor.model.fast import (
    RUN_PLACES,
    RUN_RATE,
    data_of,
    density,
    sampler_coordinates,
    shape_of,
    shapes_of,
)

HELD = [POPULATION.index(name) for name in sampler_coordinates.SPREADS]


@cache
def placed(name, family="spectrum"):
    return sampler_coordinates.place(simulated(name), PRIORS, FAMILIES[family])


def places(placement):
    """Three numbers by which each kind of luck of each run is placed, shape (3, kinds, runs)."""
    table = placement.data["run_table"][:, RUN_PLACES:RUN_RATE]
    return table.reshape(len(table), 3, 3).transpose(2, 1, 0)


def weights_of(placement):
    """How much of a run is sampled by its value, of its rate and of its shape."""
    return places(placement)[2, 1:]


def mode_of(cohort):
    """The density with runs by their luck, where the climb starts, and the mode."""
    data = data_of(cohort, PRIORS)
    gap = 1 - expit(np.median(sampler_coordinates.start_points(cohort, PRIORS)["start_logit"]))
    block = Block(cohort, data, gap)
    start, shapes = sampler_coordinates.start_points(cohort, PRIORS), shapes_of(shape_of(cohort))
    point = [np.broadcast_to(start.get(name, 0.0), size).ravel() for name, size in shapes.items()]
    point = np.concatenate(point)
    point[HELD] = data["prior_mean"][HELD]
    point = block.sampled(point)
    return block.density, point, sampler_coordinates._mode(block.density, point, HELD)


# Mode ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_free_pulls_at_the_mode(name):
    density, start, mode = mode_of(simulated(name))
    before, after = density(start), density(mode)
    assert after[0] > before[0]
    free = np.setdiff1d(np.arange(mode.size), HELD)
    # Units of order one: a slope of 0.1 is a hundredth of a nat from the top.
    assert np.abs(after[1][free]).max() < 0.1
    assert np.abs(before[1][free]).max() > 0.5
    np.testing.assert_array_equal(mode[HELD], start[HELD])


@pytest.mark.parametrize("name", ["one group", "two tasks", "all there is"])
def test_places_do_not_move_the_point(name):
    """The point is the mode in the coordinates of the places, but for spreads that were nudged."""
    cohort, placement = simulated(name), placed(name)
    _, _, mode = mode_of(cohort)
    point = placement.point.copy()
    point[HELD] = mode[HELD]
    at = point.size - 3 * len(cohort.runs)
    np.testing.assert_array_equal(point[:at], mode[:at])
    here = unflat(density.natural(point, placement.block), cohort)
    own = unflat(mode, cohort)["run_offset"]
    np.testing.assert_allclose(luck(placement.data, here), own, atol=1e-9)
    assert np.any(weights_of(placement) > 0)
    assert np.abs(here["run_offset"] - own).max() > 0.01


# Places ----------------------------------------------------------------------------------------


def told(prompts, rows=60):
    """Weights of a run of this many prompts per step among others."""
    steps = np.arange(rows)
    plans = [Plan(rate, prompts=prompts, steps=rows) for rate in (3e-4, 1e-3, 1e-4)]
    noise = np.random.default_rng(95).standard_normal((3, rows)) * 0.25 / np.sqrt(prompts)
    runs = [
        plan.run(np.clip(TRUTH.reward(plan, steps) + noise[i], 0, 1), str(i))
        for i, plan in enumerate(plans)
    ]
    return weights_of(sampler_coordinates.place(cohort_of(runs), PRIORS))


def test_weights_rise_with_what_the_data_tell():
    few, more, many = (told(prompts).mean() for prompts in (0.1, 4.0, 256.0))
    assert few + 0.1 < more < many
    assert few < 0.3
    assert many > 0.6


# Starts ----------------------------------------------------------------------------------------


def test_starts_of_chains_differ_and_follow_their_seed():
    placement = placed("all there is")
    starts = [placement.start(seed) for seed in range(4)]
    for seed, start in enumerate(starts):
        np.testing.assert_array_equal(start, placement.start(seed))
    for i in range(4):
        for j in range(i):
            assert np.all(starts[i] != starts[j])


def test_chains_start_apart_by_as_much_as_is_said():
    cohort, placement = simulated("all there is"), placed("all there is")
    away = np.array([placement.start(seed) for seed in range(400)]) - placement.point
    width = np.full(placement.point.size, sampler_coordinates.PRIOR_JITTER)
    width[: placement.data["prior_sd"].size] *= placement.data["prior_sd"]
    width[-3 * len(cohort.runs) :] = sampler_coordinates.LUCK_JITTER
    assert np.all(np.abs(away) <= width)
    np.testing.assert_allclose(np.abs(away).max(axis=0), width, rtol=0.05)
    np.testing.assert_allclose(away.mean(axis=0) / width, 0.0, atol=0.15)
