"""What a pilot's result is worth: closed forms, bounds, and pilots that tell nothing."""

from __future__ import annotations

import numpy as np
import pytest
from decisions import STEPS, changed, utilities
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from simulated_runs import Plan, made_up_posterior

from advisor.advice.pilot_choice import ANOTHER_RUN, information_gain, shown
from advisor.forecast import Forecaster, RunEffect, Target, stabilities_and_draws

TARGET = Target("sort", "tiny-s", 1e5)


def two_actions(mean, spread, noise, draws=100_000, seed=0):
    """Keep what is known to earn nothing, or take what earns theta: utilities and a noisy look."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(mean, spread, draws)
    seen = theta + noise * rng.standard_normal(draws)
    features = np.column_stack([np.ones(draws), seen])
    return np.array([np.zeros(draws), theta]), features


def closed_form(mean, spread, noise):
    """E max(0, E[theta | look]) - max(0, mean): the posterior mean is normal round the mean."""
    moved = spread**2 / np.sqrt(spread**2 + noise**2)
    return moved * norm.pdf(mean / moved) + mean * norm.cdf(mean / moved) - max(0.0, mean)


@pytest.mark.parametrize("mean", [-1.0, 0.0, 0.3])
@pytest.mark.parametrize("noise", [0.1, 1.0, 3.0])
def test_gain_of_two_gaussian_actions_is_the_closed_form(mean, noise):
    utility, features = two_actions(mean, 1.0, noise)
    gain = information_gain(utility, features, np.random.default_rng(1))
    # Monte Carlo error of a mean over the draws; the utility's spread is one.
    assert gain == pytest.approx(closed_form(mean, 1.0, noise), abs=4 / np.sqrt(100_000))


def test_look_that_tells_nothing_is_worth_nothing():
    # Thirty actions, and eleven numbers that have nothing to do with them.
    rng = np.random.default_rng(0)
    utility = rng.standard_normal((30, 1000))
    features = np.column_stack([np.ones(1000), rng.standard_normal((1000, 10))])
    found = [information_gain(utility, features, np.random.default_rng(at)) for at in range(10)]
    # A regression finds something in any noise: without taking that off it would be this much.
    weights = np.linalg.lstsq(features, utility.T, rcond=None)[0]
    naive = (features @ weights).max(axis=1).mean() - utility.mean(axis=1).max()
    assert naive > 0.1
    assert np.mean(found) < naive / 10
    # The control: the same actions, looked at.
    telling = np.column_stack([np.ones(1000), utility[:5].T])
    assert information_gain(utility, telling, np.random.default_rng(0)) > 0.2


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_gain_is_never_negative_nor_more_than_to_know_all(seed, actions, columns, is_constant):
    rng = np.random.default_rng(seed)
    draws = 400
    utility = rng.standard_normal((actions, draws)) * rng.uniform(0, 2)
    looks = rng.standard_normal((draws, columns)) + utility[:1].T
    if is_constant:
        looks[:] = 0.0
    features = np.column_stack([np.ones(draws), looks])
    gain = information_gain(utility, features, rng)
    # But for the tiny ridge of the regression.
    perfect = utility.max(axis=0).mean() - utility.mean(axis=1).max()
    assert 0 <= gain <= perfect + 1e-6
    if actions == 1 or is_constant:
        assert gain == pytest.approx(0.0, abs=1e-6)


# Utilities and what a pilot shows --------------------------------------------------------------


def test_utility_is_the_reward_of_who_lives_and_the_floor_of_who_does_not():
    posterior = made_up_posterior(bounds=(-2.0, 3.0), width=0.6)
    forecaster = Forecaster(posterior, TARGET)
    plans = [Plan(1e-4).completed, Plan(1e-3, 32).completed]
    for settings, steps in zip(plans, (100, STEPS), strict=True):
        (utility,) = utilities(forecaster, [settings], steps)
        planned = changed(settings, planned_steps=steps)
        (chance,), joint = stabilities_and_draws(forecaster, planned, steps)
        reward = forecaster.reward(planned, [steps])[:, 0]
        alive = (utility + 2.0) / (reward + 2.0)
        # As many live as P(stable) says, the likeliest first, not as many as the model says alone.
        assert alive.mean() == pytest.approx(chance.probability) != joint.mean()
        assert np.all(np.diff(alive[np.argsort(joint)]) >= -1e-12)


OWN = 20
"""Seed of a look: the forecast's own numbers come from seed 0."""


def look(posterior, plan, steps=60, stable=1.0):
    forecaster = Forecaster(posterior, TARGET)
    size = len(forecaster.population["log_misfit"])
    rng = np.random.default_rng(OWN)
    return shown(forecaster, plan.completed, steps, np.full(size, stable), rng)


def test_share_of_pilots_that_collapse_is_that_expected(posterior):
    for stable in (1.0, 0.7, 0.0):
        features = look(posterior, Plan(), stable=stable)
        collapsed = features[:, 1] == 1
        assert collapsed.mean() == pytest.approx(1 - stable, abs=0.08)
        # Who collapses shows nothing else.
        assert np.all(features[collapsed, 2:] == 0)
        assert np.all(features[:, 0] == 1)


def test_pilot_shows_its_curve():
    # Without luck of its own or a wander, and with many prompts, it shows its draw's very curve.
    luckless = dict.fromkeys(
        ("log_run_plateau_spread", "log_run_rate_spread", "log_run_loss_spread", "log_misfit"),
        -12.0,
    )
    posterior = made_up_posterior(moved={**luckless, "log_run_shape_spread": -12.0}, width=0.6)
    plan = Plan(1e-3, prompts=1e6)
    features = look(posterior, plan)
    curve = Forecaster(posterior, TARGET).scaled_reward(plan.completed, [20, 40, 60])
    # A share of completions: no curve is looked at nearer to its ends than a hundredth.
    curve = np.clip(curve, 0.01, 0.99)
    centred = curve - curve.mean(axis=0)
    np.testing.assert_allclose(features[:, 2:5], centred, atol=1e-3)
    assert centred.std() > 0.05


def test_epochs_show_the_same_completions_again():
    posterior = made_up_posterior(width=0.0, draws=1000, moved={"log_misfit": -12.0})
    forecaster, sure = Forecaster(posterior, TARGET), np.ones(2000)
    level = np.full((2000, 3), 0.5)
    once, again = (
        shown(
            forecaster,
            Plan(epochs=epochs).completed,
            60,
            sure,
            np.random.default_rng(OWN),
            level=level,
        )
        for epochs in (1, 4)
    )
    assert again[:, 2:5] == pytest.approx(2 * once[:, 2:5], abs=1e-3)


def test_luck_of_a_pilot_is_not_that_of_the_full_run():
    # Under the same draws, with nothing but luck to tell two runs apart.
    wide = {"log_run_plateau_spread": 0.0, "log_misfit": -12.0}
    forecaster = Forecaster(made_up_posterior(moved=wide, width=0.0, draws=1000), TARGET)
    settings = Plan(1e-3).completed
    for seed in (0, 1):  # also that of the forecast itself
        pilots = forecaster.with_run_effect(RunEffect.fresh((seed, ANOTHER_RUN)))
        run, pilot = (of.scaled_reward(settings, [60])[:, 0] for of in (forecaster, pilots))
        assert min(run.std(), pilot.std()) > 0.05
        assert abs(np.corrcoef(run, pilot)[0, 1]) < 4 / np.sqrt(2000)
        # A hazard has no luck of its own; nor is anything else drawn anew.
        np.testing.assert_array_equal(
            forecaster.survival(settings, 60), pilots.survival(settings, 60)
        )
        np.testing.assert_array_equal(forecaster.log_stiffness_ratio, pilots.log_stiffness_ratio)
