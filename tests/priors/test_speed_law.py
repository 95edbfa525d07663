"""Speed is known beforehand at a learning rate and a size, not wherever pilots happen to run."""

from __future__ import annotations

import math

import pytest
from simulated_runs import Plan, cohort_of_plans

from advisor.model import Reference, load_priors, prior_posterior

SMALL = load_priors("small_models")


def place(rate, parameters):
    return Reference(rate, 8.0, 16.0, parameters)


def at(rate, parameters):
    return SMALL.at(place(rate, parameters)).log_slope.mean


def test_the_preset_speaks_of_its_own_reference():
    law = SMALL.speed_law
    assert at(law.at_learning_rate, law.at_parameters) == pytest.approx(SMALL.log_slope.mean)
    assert at(10 * law.at_learning_rate, law.at_parameters) - SMALL.log_slope.mean == pytest.approx(
        law.learning_rate * math.log(10)
    )
    assert at(law.at_learning_rate, 10 * law.at_parameters) > SMALL.log_slope.mean


def test_a_preset_is_placed_once_and_one_without_a_law_stays():
    placed = SMALL.at(place(1e-4, 1e6))
    assert placed.at(place(1e-2, 1e4)) == placed
    broad = load_priors("theory")
    assert broad.at(place(1e-2, 1e4)) == broad


def test_few_pilots_at_a_low_rate_are_expected_to_be_slow():
    """Negative control: without the law they are expected to be as fast as those at a high one."""
    slow, fast = (cohort_of_plans([Plan(rate), Plan(2 * rate)]) for rate in (1e-5, 1e-3))
    means = [prior_posterior(one, SMALL).flat("log_slope").mean() for one in (slow, fast)]
    assert means[1] - means[0] == pytest.approx(SMALL.speed_law.learning_rate * math.log(100), 0.1)
    flat = SMALL.model_copy(update={"speed_law": None})
    same = [prior_posterior(one, flat).flat("log_slope").mean() for one in (slow, fast)]
    assert same[0] == pytest.approx(same[1])
