"""Forecasts: the simulator's own curve where nothing is uncertain, and honest spread elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import (
    PLANS,
    STILL,
    Plan,
    made_up_posterior,
    truth_at,
    wandering,
    with_meta,
    with_priors,
)

from advisor.forecast import Forecaster, Target, peak
from advisor.model import AS_THE_CURVE
from advisor.model import equations as eq
from advisor.theory import coefficients, schedule_factors, trajectory

MINE = {
    "rate.learning_rate": 0.8,
    "rate.group_size": 0.4,
    "curvature_exponent": 0.3,
    "uncorrected_log_odds": 0.5,
    "hazard.level": -7.2,
    "plateau_loss.level": -2.0,
}
LEVELS = {"headroom_logit": 0.7, "log_slope": -3.5, "start_logit": -1.2}
SMALL, LARGE = Target("sort", "tiny-s", 1e5), Target("sort", "tiny-m", 4e5)


def by_law(*given, **moved):
    """Posterior whose preset corrects no long run: the simulator knows the laws alone."""
    return with_priors(made_up_posterior(*given, **moved), extrapolation=AS_THE_CURVE)


@pytest.fixture(scope="module")
def certain():
    """Posterior of one point, without seed noise."""
    return by_law(width=0.0, moved={**STILL, **MINE, **LEVELS})


@pytest.fixture(scope="module")
def truth(certain):
    """The same point, for the simulator."""
    return truth_at(certain.meta.reference, LEVELS, **{**STILL, **MINE})


@pytest.fixture(scope="module")
def posterior():
    return by_law()


LARGER = {"model": "tiny-m", "parameters": 4e5}
CASES = {
    "reference": Plan(),
    "hot": Plan(2e-3, 64),
    "larger model": Plan(1e-4, 4, prompts=48, **LARGER),
    "stale, clipped": Plan(1e-3, minibatches=16, epochs=2),
    "stale, no ratio": Plan(minibatches=8, ratio=False),
    "lagging": Plan(lag=6.0, **LARGER),
    "no momentum": Plan(momentum=0.0),
}
STEPS = np.array([0, 1, 2, 5, 20, 60, 200])


@pytest.mark.parametrize("name", CASES)
def test_forecast_is_the_curve_of_the_simulator(certain, truth, name):
    plan = CASES[name]
    target = LARGE if plan.model == "tiny-m" else SMALL
    reward = Forecaster(certain, target).reward(plan.completed, STEPS)
    assert reward.shape == (400, STEPS.size)
    np.testing.assert_allclose(reward, np.tile(truth.reward(plan, STEPS), (400, 1)), rtol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": 4e-4},
        {"group_size": 16},
        {"prompts": 32.0},
        {"minibatches": 4},
        {"epochs": 2},
        {"lag": 9.0},
        {"momentum": 0.5},
        {"ratio": False, "minibatches": 4},
    ],
)
def test_forecast_check_rejects_another_configuration(certain, truth, change):
    reward = Forecaster(certain, SMALL).reward(replace(Plan(), **change).completed, STEPS)[0]
    np.testing.assert_allclose(reward, truth.reward(replace(Plan(), **change), STEPS), rtol=1e-9)
    assert np.abs(reward - truth.reward(Plan(), STEPS)).max() > 1e-3


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("steps", [40, 100])
def test_survival_is_that_of_the_squared_rate(certain, truth, schedule, steps):
    plan = Plan(1e-3, minibatches=2, epochs=2, schedule=schedule, warmup=10, steps=100)
    factors = schedule_factors(schedule, steps, warmup_steps=10, planned_steps=100)
    survival = Forecaster(certain, SMALL).survival(plan.completed, steps)
    expected = np.exp(-truth.hazard(plan) * np.sum(factors**2))
    np.testing.assert_allclose(survival, expected, rtol=1e-9)
    assert 0.01 < expected < 0.99
    assert expected != pytest.approx(np.exp(-truth.hazard(plan) * np.sum(factors)), rel=1e-3)


def test_simulated_collapses_are_as_frequent_as_survival_says(certain, truth):
    plan = Plan(1e-3, epochs=2, steps=60)
    survival = Forecaster(certain, SMALL).survival(plan.completed, 60)[0]
    rng = np.random.default_rng(80)
    lives = rng.exponential(1 / truth.hazard(plan), 20_000) > 60
    assert survival == pytest.approx(lives.mean(), abs=0.015)
    double = Forecaster(certain, SMALL).survival(plan.completed, 120)[0]
    assert abs(double - lives.mean()) > 0.1


# Spread ----------------------------------------------------------------------------------------


def test_two_configurations_are_compared_under_the_same_luck(posterior):
    one = Forecaster(posterior, SMALL, seed=1)
    difference = one.reward(Plan(group_size=16).completed, 100) - one.reward(Plan().completed, 100)
    other = Forecaster(posterior, SMALL, seed=2).reward(Plan(group_size=16).completed, 100)
    unpaired = other - one.reward(Plan().completed, 100)
    assert difference.std() < 0.5 * unpaired.std()
    again = Forecaster(posterior, SMALL, seed=1).reward(Plan().completed, 100)
    np.testing.assert_array_equal(again, one.reward(Plan().completed, 100))


def test_stiffness_ratio_is_drawn_from_its_prior(posterior):
    ratio = Forecaster(by_law(draws=5000), SMALL, draws=10_000).log_stiffness_ratio
    assert np.all(ratio >= 0)
    scale = posterior.meta.priors.log_stiffness_ratio.sd
    assert np.sqrt(np.mean(ratio**2)) == pytest.approx(scale, rel=0.05)


# Single mode, held-out reward, peak ------------------------------------------------------------


def test_forecast_of_a_single_mode_is_the_curve_of_the_oscillator(certain):
    single = replace(
        certain,
        draws={**certain.draws, "is_oscillator": np.ones_like(certain.draws["is_oscillator"])},
    )
    plan, forecaster = Plan(2e-3, 64), Forecaster(single, SMALL)
    run = eq.RunLevel(*(values[0] for values in forecaster.run(plan.completed)))
    mode = coefficients(run.stiffness, 0.9)
    wanted = trajectory(STEPS, run.start, run.plateau, mode)
    found = forecaster.reward(plan.completed, STEPS)
    np.testing.assert_allclose(found, np.tile(wanted, (400, 1)), rtol=1e-9)
    other = Forecaster(certain, SMALL).reward(plan.completed, STEPS)
    assert np.abs(found - other).max() > 0.02


def evaluated(posterior, groups=(True, True), bounds=(0.0, 1.0)):
    """Posterior whose pilots were also evaluated."""
    low, high = bounds
    return with_meta(posterior, evaluated=groups, eval_floor=low, eval_ceiling=high)


def test_without_evaluations_the_outcome_is_the_train_reward(posterior):
    forecaster = Forecaster(posterior, SMALL)
    assert not forecaster.is_evaluated
    np.testing.assert_array_equal(
        forecaster.outcome(Plan().completed, STEPS), forecaster.reward(Plan().completed, STEPS)
    )
    index = posterior.meta.groups.index(("sort", "tiny-m"))
    only = evaluated(posterior, tuple(group == index for group in range(2)))
    assert Forecaster(only, LARGE).is_evaluated
    assert not Forecaster(only, SMALL).is_evaluated
    assert not Forecaster(evaluated(posterior), Target("sort", "new", 2e5)).is_evaluated


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 3.0)])
def test_held_out_reward_follows_from_a_start_and_with_odds_of_its_own(truth, bounds):
    levels = {**STILL, **MINE, **LEVELS, "eval_start_logit": -2.0, "log_eval_gain": np.log(0.6)}
    posterior = evaluated(by_law(width=0.0, moved=levels), bounds=bounds)
    forecaster = Forecaster(posterior, SMALL)
    trained = truth.reward(Plan(), STEPS)
    risen = (trained - trained[0]) / (1 - trained[0])
    odds = 0.6 * risen / (1 - risen)
    wanted = 1 / (1 + np.exp(2.0)) + (1 - 1 / (1 + np.exp(2.0))) * odds / (1 + odds)
    low, high = bounds
    found = forecaster.outcome(Plan().completed, STEPS)
    np.testing.assert_allclose(found, np.tile(low + (high - low) * wanted, (400, 1)), rtol=1e-9)
    # The train reward stays what it is.
    np.testing.assert_allclose(forecaster.reward(Plan().completed, STEPS)[0], trained, rtol=1e-9)


@pytest.mark.parametrize("measured", [False, True])
def test_peak_is_that_of_simulated_runs_round_the_curve(measured):
    levels = {**STILL, **MINE, **LEVELS, "log_misfit": -2.5, "log_eval_gain": 0.0}
    levels["eval_start_logit"] = LEVELS["start_logit"]
    posterior = by_law(width=0.0, moved=levels, draws=2000)
    if measured:
        posterior = evaluated(posterior, bounds=(0.0, 2.0))
    forecaster = Forecaster(posterior, SMALL, draws=4000)
    steps = 200
    curve = forecaster.outcome(Plan().completed, np.arange(1, steps + 1))[0]
    rng, scale = np.random.default_rng(60), 2.0 if measured else 1.0
    paths = np.array([wandering(steps, rng)[1:] for _ in range(1500)])
    wanted = np.maximum((curve + scale * np.exp(-2.5) * paths).max(axis=1), curve[-1])
    found = peak(forecaster, Plan().completed, steps)
    # Simulated at 41 steps, the tops between them are missed.
    wander = scale * np.exp(-2.5)
    assert found.mean() == pytest.approx(wanted.mean(), abs=0.2 * wander)
    assert found.std() == pytest.approx(wanted.std(), rel=0.1)
    assert wanted.mean() > curve[-1] + 0.5 * wander


def test_peak_is_never_below_the_end_of_the_curve(posterior):
    forecaster = Forecaster(posterior, SMALL)
    for steps in (1, 5, 200):
        end = forecaster.outcome(Plan().completed, steps)[:, -1]
        highest = peak(forecaster, Plan().completed, steps)
        assert np.all(highest >= end)
        assert np.all(highest <= 1)
    np.testing.assert_array_equal(highest, peak(forecaster, Plan().completed, 200))


# Targets ---------------------------------------------------------------------------------------

TASKS = (*PLANS, Plan(3e-4, 8, task="mod"), Plan(1e-3, 16, task="mod"))


def start_log_odds(posterior, target):
    start = Forecaster(posterior, target).group.start
    return np.log(start / (1 - start))


def test_piloted_pair_starts_and_saturates_where_it_did(posterior):
    group = Forecaster(posterior, LARGE).group
    index = posterior.meta.groups.index(("sort", "tiny-m"))
    np.testing.assert_allclose(group.start, posterior.flat("start")[:, index])
    run = Forecaster(posterior, LARGE)
    plateau = eq.reference_plateau(run.population, group, run._log_parameters)
    np.testing.assert_allclose(plateau, posterior.flat("plateau")[:, index])
    assert np.all(plateau < group.cold_plateau)
    np.testing.assert_allclose(np.exp(group.log_stiffness), posterior.flat("stiffness")[:, index])


def test_new_model_starts_like_the_piloted_models_of_its_task():
    posterior = by_law(TASKS, width=0.05, draws=1000)
    # Task "mod" starts elsewhere: a new model must not hear of it.
    groups = posterior.meta.groups
    draws = dict(posterior.draws)
    shift = np.where([task == "mod" for task, _ in groups], 3.0, 0.0)
    draws["start_logit"] = draws["start_logit"] + shift
    moved = replace(posterior, draws=draws)
    new = start_log_odds(moved, Target("sort", "tiny-new", 2e5))
    known = draws["start_logit"][..., [task == "sort" for task, _ in groups]].mean()
    assert new.mean() == pytest.approx(known, abs=0.1)
    assert new.std() == pytest.approx(0.75, rel=0.15)
    assert start_log_odds(moved, Target("mod", "tiny-new", 2e5)).mean() > new.mean() + 2
    # The same model on another task is as new.
    assert not Forecaster(moved, Target("mod", "tiny-m", 4e5)).is_piloted
    assert Forecaster(moved, Target("mod", "tiny-s", 1e5)).is_piloted
