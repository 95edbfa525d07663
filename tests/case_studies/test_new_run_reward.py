"""A run that nobody has begun: its curve, the noise of its rows, and a collapse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import Plan, made_up_posterior
from studies import modules_of

from advisor.forecast import Forecaster, Target

with modules_of("real_runs", ("not_begun",)) as modules:
    new_run_reward = modules["not_begun"].new_run_reward

PILOTS = [
    Plan(1e-4, 8),
    Plan(3e-4, 8),
    Plan(1e-3, 16),
    Plan(3e-4, 8, model="tiny-m", parameters=4e5),
]
TARGET = Target("sort", "tiny-s", 1e5)
ASKED = np.arange(55.0, 61.0)
NEVER = {"hazard.level": -60.0}


def forecast(plan, posterior=None, target=TARGET, **options):
    posterior = posterior or moved_to()
    return new_run_reward(posterior, target, plan.completed, ASKED, **options)


def moved_to(population=NEVER):
    """A posterior in which no run collapses, but for what is said."""
    return made_up_posterior(PILOTS, width=0.05, draws=2000, moved={**NEVER, **population})


def test_forecast_is_the_expected_reward_with_noise():
    posterior = moved_to()
    plan = Plan(3e-4, 8)
    found = forecast(plan, posterior)
    expected = Forecaster(posterior, TARGET).reward(plan.completed, ASKED - 1).mean(axis=1)
    assert np.median(found) == pytest.approx(np.median(expected), abs=0.02)
    assert found.std() > expected.std()


def test_noise_is_that_of_finite_batches_and_of_wander():
    quiet = {"log_misfit": -9.0, "log_run_plateau_spread": -9.0, "log_run_rate_spread": -9.0,
             "log_run_shape_spread": -9.0, "log_run_loss_spread": -9.0}  # fmt: skip
    posterior = moved_to(quiet)
    few, many = (
        forecast(replace(Plan(3e-4, 8), prompts=prompts), posterior).std() for prompts in (2, 2000)
    )
    assert few > 3 * many
    wander = forecast(replace(Plan(3e-4, 8), prompts=2000), moved_to(quiet | {"log_misfit": -2.0}))
    assert wander.std() > 2 * many


def test_a_run_that_may_collapse_may_end_at_nothing():
    plan = Plan(3e-4, 8)
    start = np.median(Forecaster(moved_to(), TARGET).group.start)
    below = {
        level: np.mean(forecast(plan, moved_to({"hazard.level": level})) < start)
        for level in (-60.0, float(np.log(np.log(2) / 60)), 10.0)
    }
    lives, half, dies = below.values()
    assert lives < 0.1
    assert dies > 0.95
    # The hazard is that of the reference; the run is within a factor of two of it.
    assert lives + 0.2 < half < dies - 0.1
    # Of a run that has collapsed nothing at all may be left, although its target is a mean.
    assert np.mean(forecast(plan, moved_to({"hazard.level": 10.0})) == 0) > 0.1


def test_a_model_without_pilots_is_less_certain():
    posterior = moved_to()
    known = forecast(Plan(3e-4, 8), posterior)
    new = forecast(Plan(3e-4, 8), posterior, Target("sort", "tiny-l", 1e5))
    assert new.std() > 1.15 * known.std()


def test_forecasts_repeat_and_stay_within_bounds():
    plan = Plan(3e-4, 8)
    posterior = made_up_posterior(PILOTS, bounds=(-2.0, 6.0), draws=200)
    one, two, other = (forecast(plan, posterior, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert np.any(one != other)
    assert one.min() >= -2
    assert one.max() <= 6
