"""P(stable): stale rollouts, a learning rate not tolerated, a fluctuation as large as a fall."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from decisions import STEPS
from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import PLANS, Plan, made_up_posterior
from theory_oracles import held_limit

from advisor.forecast import Forecaster, Target, stabilities_and_draws, stability, survival
from advisor.model import MOST_HAZARD

TARGET = Target("sort", "tiny-s", 1e5)
STIFF = {"log_slope": -1.0, "headroom_logit": 1.0}


def contracts_of(forecast, settings):
    return survival.refresh_contracts(forecast, survival.stiffness_left(forecast, settings))


def fluctuation_of(forecast, settings):
    return survival.fluctuation(forecast, settings, survival.stiffness_left(forecast, settings))


def forecaster(posterior, **options):
    return Forecaster(posterior, TARGET, **options)


def chance(posterior, plan=PLANS[1], steps=STEPS, **change):
    return stability(forecaster(posterior), replace(plan, **change).completed, steps)


# The whole -------------------------------------------------------------------------------------


def falls(shares):
    return bool(np.all(np.diff(shares) < 0)) and shares[0] > 0.9 > 0.5 > shares[-1]


def test_probability_falls_with_the_learning_rate(posterior):
    rates = [chance(posterior, learning_rate=r) for r in (1e-5, 1e-4, 1e-3, 1e-2)]
    assert falls([found.probability for found in rates])
    assert falls([found.tolerance for found in rates])


def test_parts_bound_the_whole(posterior):
    for plan in (*PLANS, Plan(1e-2, 4, minibatches=64, ratio=False)):
        found = chance(posterior, plan)
        parts = (found.refresh, found.tolerance, found.fluctuation)
        assert found.by_model <= min(parts) + 1e-12
        assert found.by_model >= sum(parts) - 2 - 1e-12
        assert all(0 <= part <= 1 for part in parts)
        assert 0 <= found.error < 0.03


def test_whole_is_joint_over_the_draws():
    stale = made_up_posterior(moved={**STIFF, "log_misfit": -2.0}, width=1.0)
    settings = Plan(3e-4, 8, minibatches=4, ratio=False).completed
    forecast = forecaster(stale)
    level = forecast.scaled_reward(settings, STEPS)[:, 0]
    parts = [
        contracts_of(forecast, settings),
        forecast.survival(settings, STEPS),
        survival.fluctuation_small(
            forecast, settings, survival.stiffness_left(forecast, settings), level
        ),
    ]
    joint = parts[0] * parts[1] * parts[2]
    found = stability(forecast, settings, STEPS)
    assert found.by_model == pytest.approx(joint.mean())
    np.testing.assert_array_equal(stabilities_and_draws(forecast, settings, STEPS)[1], joint)
    assert [found.refresh, found.tolerance, found.fluctuation] == pytest.approx(
        [part.mean() for part in parts]
    )
    # The parts hang together: their product would say something else.
    assert abs(found.by_model - np.prod([part.mean() for part in parts])) > 0.02


# Learning rate ---------------------------------------------------------------------------------


def test_survival_worked_out_by_hand():
    # Without a pull of batch and size, a thousandth a step at the reference, bent by the most.
    posterior = made_up_posterior(
        moved={"hazard.level": np.log(0.001), "hazard.batch": 0.0, "hazard.size": 0.0}, width=0.0
    )
    settings = Plan(posterior.meta.reference.learning_rate).completed
    found = forecaster(posterior).survival(settings, 100)
    np.testing.assert_allclose(found, np.exp(-100 * 0.001 / (1 + 0.001 / MOST_HAZARD)))


# Refresh interval ------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [False, True])
def test_refresh_part_falls_with_the_interval_where_staleness_counts(ratio):
    # Without a ratio all staleness counts; with one as much as is left uncorrected, here all.
    posterior = made_up_posterior(moved={**STIFF, "uncorrected_log_odds": 40.0})
    intervals = (1, 2, 4, 8, 16, 32, 64)
    shares = [chance(posterior, minibatches=K, ratio=ratio).refresh for K in intervals]
    assert np.all(np.diff(shares) <= 0)
    assert shares[0] > 0.95
    assert shares[-1] < 0.05


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_refresh_part_is_the_share_of_draws_below_the_exact_limit(momentum):
    posterior = made_up_posterior(moved=STIFF)
    settings = Plan(minibatches=8, ratio=False, momentum=momentum).completed
    forecast = forecaster(posterior)
    stiffest = forecast.law_stiffness(settings) * np.exp(forecast.log_stiffness_ratio)
    below = stiffest < held_limit(momentum, 8)
    assert 0.05 < below.mean() < 0.95
    assert stability(forecast, settings, STEPS).refresh == pytest.approx(below.mean(), abs=0.005)


def test_stiffest_mode_sets_stability_and_not_the_fitted_one():
    posterior = made_up_posterior(moved=STIFF)
    forecast = forecaster(posterior)
    settings = Plan(minibatches=8, ratio=False).completed
    assert np.all(forecast.log_stiffness_ratio >= 0)
    assert contracts_of(forecast, settings).mean() < np.mean(
        survival.stiffness_left(forecast, settings) < 1
    )


# Fluctuation -----------------------------------------------------------------------------------


def test_fluctuation_at_the_reference_is_the_pilots_own():
    posterior = made_up_posterior()
    reference = posterior.meta.reference
    forecast = forecaster(posterior)
    # Fresh rollouts: the limit is far away, and nothing inflates.
    settings = Plan().completed.model_copy(
        update={
            "learning_rate": reference.learning_rate,
            "group_size": reference.group_size,
            "prompts_per_step": reference.prompts_per_step,
        }
    )
    left = survival.stiffness_left(forecast, settings)
    own = np.exp(forecast.population["log_misfit"])
    np.testing.assert_allclose(fluctuation_of(forecast, settings), own / np.sqrt(1 - left))
    assert left.max() < 0.1


@pytest.mark.evidence
@given(
    st.floats(1e-6, 1e-2), st.floats(1.01, 10), st.integers(2, 64), st.integers(1, 8), st.booleans()
)
def test_fluctuation_grows_with_the_learning_rate_and_falls_with_the_batch(
    rate, factor, group, interval, ratio
):
    plan = Plan(rate, group, minibatches=interval, ratio=ratio)
    base = fluctuation_of(FORECASTER, plan.completed)
    hotter = fluctuation_of(FORECASTER, replace(plan, learning_rate=factor * rate).completed)
    finite = np.isfinite(hotter)
    assert np.all(hotter[finite] > base[finite])
    assert np.all(np.isinf(hotter[np.isinf(base)]))
    # The stiffness is the same, so only the heat falls.
    same = made_up_posterior(moved={"rate.group_size": 0.0, "rate.prompts_per_step": 0.0}, draws=10)
    forecast = forecaster(same)
    narrow = fluctuation_of(forecast, plan.completed)
    wide = fluctuation_of(forecast, replace(plan, group_size=4 * group).completed)
    finite = np.isfinite(narrow)
    np.testing.assert_allclose(wide[finite], narrow[finite] / 2)
    more = fluctuation_of(forecast, replace(plan, prompts=4 * plan.prompts).completed)
    np.testing.assert_allclose(more, wide)


FORECASTER = forecaster(made_up_posterior(draws=20))


def test_fluctuation_is_infinite_beyond_the_refresh_limit():
    forecast = forecaster(made_up_posterior(moved=STIFF, width=1.0))
    settings = Plan(minibatches=16, ratio=False).completed
    left, wander = survival.stiffness_left(forecast, settings), fluctuation_of(forecast, settings)
    assert 0.05 < np.mean(left >= 1) < 0.95
    np.testing.assert_array_equal(np.isinf(wander), left >= 1)
    assert np.all(wander[left < 1] > 0)
    level = np.ones_like(left)
    assert np.all(
        survival.fluctuation_small(
            forecast, settings, survival.stiffness_left(forecast, settings), level
        )[left >= 1]
        == 0
    )


# A pilot of the same settings -------------------------------------------------------------------


def test_a_pilot_that_fell_halves_what_its_rate_and_higher_ones_are_given():
    """Of runs at three times a rate that fell nearly all fell; those that lived count, too."""
    big = {"model": "big", "parameters": 1.5e9}
    plans = [Plan(rate, **big) for rate in (1e-6, 3e-6, 1e-5)]
    cold, fell, hot = plans[0], replace(plans[1], collapse=20), plans[2]
    asked = [Plan(rate, **big) for rate in (1e-6, 2e-6, 3e-6, 5e-6, 1e-5, 3e-5)]

    def chances(pilots):
        forecast = Forecaster(made_up_posterior(pilots), Target("sort", "big", 1.5e9))
        found = (survival.expected_of(forecast, p.completed, *np.ones((2, 1))) for p in asked)
        return np.array([float(one[0].ravel()[0]) for one in found])

    alone = chances(plans[:2])
    assert chances([*plans, hot]) == pytest.approx(alone, rel=1e-9)
    assert chances([cold, fell]) == pytest.approx(alone * [1, 1, *4 * [0.5]], rel=1e-9)
    # Another seed lived at the rate that fell.
    wanted = (alone + np.array([0, 0, 1, 0, 0, 0])) / [1, 1, 3, 2, 2, 2]
    assert chances([cold, fell, plans[1]]) == pytest.approx(wanted, rel=1e-9)
    # A hotter pilot lived, too: then the fall tells of its own rate alone.
    wanted = (alone + np.array([0, 0, 2, 0, 0, 0])) / [1, 1, 4, 1, 1, 1]
    assert chances([cold, fell, plans[1], hot]) == pytest.approx(wanted, rel=1e-9)
    # The pilot of another group size tells nothing.
    other = replace(fell, group_size=16)
    assert chances([cold, other]) == pytest.approx(alone, rel=1e-9)
