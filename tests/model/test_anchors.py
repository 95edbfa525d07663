"""Priors of plateau loss and collapse: what they say, wherever the pilots' reference lies."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from cohorts import PRIORS, Block, data_of, flat, likelihood, random_point, simulated

FOLDER = Path(__file__).parents[2] / "case_studies" / "calibration"
sys.path.insert(0, str(FOLDER))

import simulation  # noqa: E402

from advisor.model import POPULATION, SPECTRUM, load_priors, preset_names  # noqa: E402
from advisor.model import equations as eq  # noqa: E402

ANCHORED = ("plateau_loss.level", "hazard.level")
NAMES = POPULATION


def density(cohort, point, data=None):
    """Log density and its gradient, in the coordinates of the sampler."""
    return Block(cohort, data).at(point)


def anchored(point):
    """Population of a point as the priors speak of it."""
    stiffness = eq.task_log_stiffness(*point["task_level"][:2])
    here = dict(zip(NAMES, point["population"], strict=True))
    return np.array(list(eq.at_anchor(here, stiffness).values()))


# Density ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one run", "two tasks", "all there is"])
def test_prior_in_the_density_is_that_of_the_anchored_levels(name):
    cohort = simulated(name)
    data = data_of(cohort, PRIORS)
    for seed in range(5):
        point = random_point(cohort, np.random.default_rng([96, seed]))
        value, _ = density(cohort, point)
        level = np.repeat(data["level_mean"], [len(cohort.tasks)] * 3 + [len(cohort.groups)] * 3)
        scale = np.repeat(data["level_sd"], [len(cohort.tasks)] * 3 + [len(cohort.groups)] * 3)
        vector = flat(point)[len(NAMES) :]
        rest = [(vector[: level.size] - level) / scale, vector[level.size :]]

        def prior(population, rest=rest):
            away = (population - data["prior_mean"]) / data["prior_sd"]
            return -0.5 * (np.concatenate([away, *rest]) ** 2).sum()

        found = value - likelihood(data, point)[0]
        assert found == pytest.approx(prior(anchored(point)), rel=1e-9)
        assert abs(found - prior(point["population"])) > 0.1


# Draws -----------------------------------------------------------------------------------------

DRAWS = 3000


def drawn(cohort, priors):
    """Prior draws of population and levels of tasks, behind an axis of draws."""
    rng = np.random.default_rng(99)
    draws = [simulation.draw_prior(cohort, priors, SPECTRUM, rng) for _ in range(DRAWS)]
    kept = ("population", "task_level")
    return [np.concatenate([draw[name] for draw in draws]) for name in kept]


def off(values, prior):
    """Mean and standard deviation less those of the prior, in standard errors."""
    mean = (values.mean() - prior.mean) / (prior.sd / np.sqrt(values.size))
    return mean, (values.std() / prior.sd - 1) * np.sqrt(2 * values.size)


@pytest.mark.evidence
@pytest.mark.parametrize("name", ["designed", "two tasks"])
@pytest.mark.parametrize("preset", preset_names())
def test_prior_draws_have_the_moments_of_the_preset_at_the_anchors(preset, name):
    cohort = simulation.design() if name == "designed" else simulated(name)
    priors = load_priors(preset)
    population, level = drawn(cohort, priors)
    here = dict(zip(NAMES, population.T, strict=True))
    stiffness = eq.task_log_stiffness(level[:, 0], level[:, 1])
    spoken = eq.at_anchor(here, stiffness)
    for parameter, values in spoken.items():
        prior = getattr(priors, parameter.replace(".", "_"))
        # Some thirty of each: 4.5 standard errors once in five thousand times.
        assert np.abs(off(values, prior)).max() < 4.5, parameter
    # They say nothing of how fast this task is learned.
    assert np.abs([np.corrcoef(spoken[n], stiffness)[0, 1] for n in ANCHORED]).max() < 0.08
    # The controls: levels as they are kept, and at a stiffness of 0.1 for 0.05.
    for parameter in ANCHORED:
        prior = getattr(priors, parameter.replace(".", "_"))
        assert np.abs(off(here[parameter], prior)).max() > 20
        assert np.corrcoef(here[parameter], stiffness)[0, 1] > 0.2
    elsewhere = eq.at_anchor(here, stiffness + np.log(2))["plateau_loss.level"]
    assert off(elsewhere, priors.plateau_loss_level)[0] < -5
