"""What a run that has begun will come to: the simulator's own curve, and where a dead run lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from simulated_runs import PLANS, Plan, made_up_posterior, prior_means, rising, truth_at

from advisor.forecast import Forecaster, begun_run_reward, logged_mean
from advisor.model import RUN_EFFECTS
from advisor.theory import policy_steps

FALLEN_SPREAD = 0.9

QUIET = {"log_misfit": -30.0, "log_noise_scale": -30.0}
STILL = {"log_headroom_spread": -30.0, "log_model_spread": -30.0}
MINE = {
    "rate.learning_rate": 0.8,
    "curvature_exponent": 0.3,
    "plateau_loss.level": -2.0,
    "log_run_plateau_spread": -1.0,
    "log_run_rate_spread": -1.2,
    "log_run_shape_spread": -0.6,
    "log_run_loss_spread": -0.4,
}
LEVELS = {"headroom_logit": 0.7, "log_slope": -3.5, "start_logit": -1.2}
RUNS = (
    *PLANS,
    Plan(2e-4, 8, schedule="linear", warmup=5, steps=240),
    Plan(5e-4, 8, lag=6.0, momentum=0.5, minibatches=4),
)
LUCK = (0.8, -1.1, 1.3)
DEAD = 2
HEALTHY = [index for index, plan in enumerate(RUNS) if plan.collapse is None]


def with_luck(posterior, index, luck):
    """Posterior whose run had this plateau, stiffness and shape luck in every draw."""
    draws = dict(posterior.draws)
    for name, value in zip(RUN_EFFECTS, luck, strict=True):
        draws[name] = draws[name].copy()
        draws[name][..., index] = value
    return replace(posterior, draws=draws)


@pytest.fixture(scope="module")
def certain():
    """Posterior of one point, but for the luck of the runs, and nothing that wanders."""
    return made_up_posterior(RUNS, width=0.0, moved={**STILL, **MINE, **LEVELS, **QUIET})


@pytest.fixture(scope="module")
def noisy():
    return made_up_posterior(RUNS, width=0.0, moved={**STILL, **MINE, **LEVELS}, draws=4000)


@pytest.fixture(scope="module")
def truth(certain):
    return truth_at(certain.meta.reference, LEVELS, **{**STILL, **MINE, **QUIET})


def seen_of(plan):
    """Whatever the log of a healthy run shows: its posterior has read it already."""
    return plan.run(rising(15))


def expected(truth, plan, steps, luck=LUCK):
    return truth.reward(
        plan, policy_steps(steps, plan.minibatches, plan.epochs, plan.lag or 0), luck
    )


# Healthy runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("index", HEALTHY)
def test_forecast_of_a_healthy_run_continues_its_curve(certain, truth, index):
    plan, steps = RUNS[index], np.arange(51, 61)
    lucky = with_luck(certain, index, LUCK)
    found = begun_run_reward(lucky, index, seen_of(plan), steps)
    # A decaying schedule goes through a cubic clock (test_forecast allows it the same).
    near = {"rtol": 1e-9} if plan.schedule is None else {"rtol": 0, "atol": 3e-3}
    np.testing.assert_allclose(found, expected(truth, plan, steps).mean(), **near)
    # Another run's luck does not matter, its own does: all three kinds of it.
    other = with_luck(lucky, (index + 1) % len(RUNS), (3.0, 3.0, 3.0))
    np.testing.assert_array_equal(begun_run_reward(other, index, seen_of(plan), steps), found)
    for kind in range(3):
        luck = tuple(0.0 if kind == k else LUCK[k] for k in range(3))
        moved = begun_run_reward(with_luck(certain, index, luck), index, seen_of(plan), steps)
        np.testing.assert_allclose(moved, expected(truth, plan, steps, luck).mean(), **near)
        assert abs(moved - found).min() > 6e-3


def interval(values, level=0.8):
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return high - low


def test_spread_of_a_forecast_is_that_of_the_wander_and_of_finite_batches(noisy, truth):
    plan, steps = RUNS[0], np.arange(51, 61)  # 16 prompts of 16 completions
    mean = expected(truth, plan, steps).mean()
    within = 1 / (1 + np.exp(-prior_means()["within_log_odds"]))
    sampling = mean * (1 - mean) * (within / (16 * 16 * 10) + (1 - within) / (16 * 10))
    for misfit, scale in ((-3.0, -30.0), (-30.0, 0.3), (-4.0, 0.0)):
        moved = {**noisy.draws}
        moved["log_misfit"] = np.full_like(moved["log_misfit"], misfit)
        moved["log_noise_scale"] = np.full_like(moved["log_noise_scale"], scale)
        posterior = with_luck(replace(noisy, draws=moved), 0, LUCK)
        found = begun_run_reward(posterior, 0, seen_of(plan), steps, draws=8000)
        assert found.shape == (8000,)
        wanted = np.sqrt(np.exp(2 * misfit) + np.exp(2 * scale) * sampling)
        assert np.median(found) == pytest.approx(mean, abs=0.05 * wanted)
        assert interval(found) == pytest.approx(2 * student.ppf(0.9, 5) * wanted, rel=0.05)
    # Fewer rows asked for are a noisier mean.
    one = begun_run_reward(posterior, 0, seen_of(plan), 60, draws=8000)
    assert interval(one) > 1.5 * interval(found)
    # A row that averages ten steps is a mean of ten.
    window = seen_of(plan).with_updates(logging_steps=10)
    averaged = begun_run_reward(posterior, 0, window, 60, draws=8000)
    assert interval(averaged) == pytest.approx(interval(found), rel=0.05)


def test_epochs_score_the_same_completions_again(noisy):
    settings = replace(RUNS[0], epochs=4).completed
    forecaster = Forecaster.of_pilot(noisy, 0)

    def spread(rows):
        mean, above = (
            logged_mean(forecaster, settings, 60, rows, np.full(forecaster.size, noise))
            for noise in (0.0, 1.0)
        )
        return above - mean

    assert spread(4) == pytest.approx(spread(1))
    assert np.all(spread(8) < spread(4))


def test_forecast_is_in_reward_units_and_stays_within_them():
    moved = {**STILL, **MINE, **LEVELS, "log_misfit": 0.0}
    unit, wide = (
        made_up_posterior(RUNS, width=0.0, moved=moved, bounds=bounds)
        for bounds in ((0, 1), (-2, 6))
    )
    for index in (0, DEAD):
        plan = RUNS[index]
        curve = rising(60)
        curve[30:] = 0.3
        one = begun_run_reward(unit, index, plan.run(curve), [61, 62], seed=3)
        other = begun_run_reward(wide, index, plan.run(8 * curve - 2), [61, 62], seed=3)
        np.testing.assert_allclose(other, 8 * one - 2, rtol=1e-9)
        assert one.min() >= 0
        assert one.max() <= 1
    # A wander of the whole range, cut at both ends.
    one = begun_run_reward(unit, 0, RUNS[0].run(curve), [61, 62])
    assert (one.min(), one.max()) == (0, 1)


def test_a_pilot_has_its_own_luck_in_place_of_a_seed(noisy):
    forecaster = Forecaster.of_pilot(noisy, 3, draws=100)
    kept = np.unique(np.linspace(0, 7999, 100).astype(int))
    for values, name in zip(forecaster.run_effect, RUN_EFFECTS, strict=True):
        np.testing.assert_array_equal(values, noisy.flat(name)[kept, 3])
    assert (forecaster.target.model, forecaster.target.parameters) == ("tiny-m", 4e5)


# Collapsed runs --------------------------------------------------------------------------------


def dead_run(level, plan=RUNS[DEAD], rows=60):
    """A run that rose, fell at row 20, and lies at ``level`` since."""
    curve = rising(rows)
    curve[20:] = level
    return plan.run(curve)


def log_odds(values):
    return np.log(values / (1 - values))


@pytest.mark.parametrize("level", [0.1, 0.3, 0.5])
def test_collapsed_run_stays_near_where_it_stands(noisy, level):
    # Many steps asked for: what is left is the spread of the run itself.
    found = begun_run_reward(noisy, DEAD, dead_run(level), np.arange(100, 200), draws=8000)
    odds = log_odds(found)
    assert np.median(odds) == pytest.approx(log_odds(level), abs=0.05)
    wanted = 2 * norm.ppf(0.9) * FALLEN_SPREAD
    assert interval(odds) == pytest.approx(wanted, rel=0.05)


def test_collapsed_run_that_gets_nothing_right_may_stay_at_nothing(noisy):
    found = begun_run_reward(noisy, DEAD, dead_run(0.0), np.arange(55, 61))
    assert found.min() == 0.0
    assert 0.5 < np.mean(found == 0) < 0.95
    assert 0 < np.quantile(found, 0.99) < 0.05
    # The control: a tenth right never comes out as nothing at all.
    assert begun_run_reward(noisy, DEAD, dead_run(0.1), np.arange(55, 61)).min() > 0
