"""Priors of plateau loss and collapse: what they say, wherever the pilots' reference lies."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from cohorts import PRIORS, SCENARIOS, Block, data_of, flat, likelihood, random_point, simulated
from simulated_runs import PLANS, Plan, made_up_posterior

FOLDER = Path(__file__).parents[2] / "case_studies" / "calibration"
sys.path.insert(0, str(FOLDER))

import simulation  # noqa: E402

from advisor.model import POPULATION, SPECTRUM, cohort_of, load_priors, preset_names  # noqa: E402
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


def at_rates(cohort, factor, runs=None):
    """The cohort had its pilots, or some, run at a learning rate so many times as large."""
    moved = []
    for index, run in enumerate(cohort.runs):
        settings = run.hyperparameters
        rate = settings.learning_rate * (factor if runs is None or index in runs else 1.0)
        settings = settings.model_copy(update={"learning_rate": rate})
        moved.append(run.with_updates(hyperparameters=settings))
    return cohort_of(moved)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if len(SCENARIOS[name]) > 1])
def test_unit_of_the_learning_rate_does_not_matter(name):
    """Everything is relative to the pilots' own reference, and the priors to no learning rate."""
    cohort = simulated(name)
    same, other = at_rates(cohort, 7.0), at_rates(cohort, 7.0, runs=[0])
    assert same.reference.learning_rate == pytest.approx(7 * cohort.reference.learning_rate)
    for seed in range(3):
        point = random_point(cohort, np.random.default_rng([97, seed]))
        value, slope = density(cohort, point)
        found, found_slope = density(same, point)
        assert found == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(found_slope, slope, rtol=1e-6, atol=1e-6)
        assert abs(density(other, point)[0] - value) > 1e-3


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


def test_posterior_tells_its_draws_as_the_priors_speak_of_them():
    plans = (*PLANS, Plan(task="mod"), Plan(1e-3, task="mod"))
    posterior = made_up_posterior(plans, width=1.0, draws=2000, is_prior=True)
    assert len(posterior.meta.tasks) == 2
    for name in NAMES:
        prior = getattr(posterior.meta.priors, name.replace(".", "_"))
        assert np.abs(off(posterior.as_in_priors(name), prior)).max() < 4.5, name
        if name in ANCHORED:
            assert np.abs(off(posterior.flat(name), prior)).max() > 20
        else:
            np.testing.assert_array_equal(posterior.as_in_priors(name), posterior.flat(name))
    for name in ("log_slope", "start_logit", "run_offset.plateau", "plateau"):
        np.testing.assert_array_equal(posterior.as_in_priors(name), posterior.flat(name))
