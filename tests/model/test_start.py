"""Start points: near what the curves show, and near the prior where they show nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cohorts import (
    PRIORS,
    SCENARIOS,
    TRUTH,
    simulated,
    simulated_from,
)

from advisor.model import POPULATION, cohort_of
from advisor.model import equations as eq
from advisor.model.fast import sampler_coordinates

STEADY = TRUTH.moved(
    log_misfit=-30.0,
    log_run_plateau_spread=-2.0,
    log_run_shape_spread=-30.0,
    log_run_loss_spread=-30.0,
)
"""Runs that neither wander nor differ much, so that a few of them tell where they come from."""


@pytest.mark.parametrize("name", ["one group", "two tasks"])
def test_start_is_near_what_the_curves_show(name):
    points = sampler_coordinates.start_points(simulated_from(STEADY, name), PRIORS)
    np.testing.assert_allclose(points["start_logit"], -1.4, atol=0.4)
    np.testing.assert_allclose(points["task_level"][1], TRUTH.log_slope, atol=1.0)


@pytest.mark.parametrize("headroom", [1.2, 2.0])
def test_start_of_noiseless_curves_is_nearer(headroom):
    """Without plateau loss, which a start takes for headroom that is not there."""
    steps, cold = np.arange(60), TRUTH.moved(plateau_loss__level=-30.0)
    truth = replace(cold, headroom_logit=headroom)
    runs = [p.run(truth.reward(p, steps), str(i)) for i, p in enumerate(SCENARIOS["one group"])]
    points = sampler_coordinates.start_points(cohort_of(runs), PRIORS)
    np.testing.assert_allclose(points["start_logit"], -1.4, atol=0.1)
    np.testing.assert_allclose(points["task_level"][0, 0], headroom, atol=0.2)
    np.testing.assert_allclose(points["task_level"][1, 0], TRUTH.log_slope, atol=0.75)


def test_what_no_curve_shows_starts_off_its_prior_mean():
    """A little: exactly at its mean a parameter without data has no slope."""
    for name in ("only collapsed", "one that collapsed at once", "one group"):
        points = sampler_coordinates.start_points(simulated(name), PRIORS)
        rows = [(points["task_level"][2, 0], PRIORS.log_onset)]
        rows += [(points["eval_level"][0, 0], PRIORS.eval_start_logit)]
        rows += [(points["eval_level"][1, 0], PRIORS.log_eval_gain)]
        if name != "one group":
            rows += [(points["task_level"][0, 0], PRIORS.headroom_logit)]
            rows += [(points["task_level"][1, 0], PRIORS.log_slope)]
        for value, prior in rows:
            assert 0 < abs(value - prior.mean) < 0.2 * prior.sd


@pytest.mark.parametrize("name", SCENARIOS)
def test_population_starts_off_its_prior_mean_where_priors_speak_of_it(name):
    """At the stiffness that the curves show: no prior speaks of levels at the reference."""
    points = sampler_coordinates.start_points(simulated(name), PRIORS)
    here = dict(zip(POPULATION, points["population"], strict=True))
    spoken = eq.at_anchor(here, eq.task_log_stiffness(*points["task_level"][:2]))
    for parameter, value in spoken.items():
        prior = getattr(PRIORS, parameter.replace(".", "_"))
        assert 0 < abs(value - prior.mean) < 0.2 * prior.sd, parameter
