"""Cumulative learning-rate clock, schedules and the steps behind a logged policy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.theory import (
    coefficients,
    cumulative_clock,
    policy_steps,
    schedule_factors,
    trajectory,
)

LADDER = settings(max_examples=150)
SCHEDULES = st.sampled_from(["constant", "linear", "cosine"])
FACTORS = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def gain_of_recursion(factors, momentum, relaxation):
    """Share of the way to the plateau after stepping every learning rate of a schedule."""
    u, v, gain = 1.0, 0.0, [0.0]
    for factor in factors:
        v = momentum * v - (1 - momentum) * factor / relaxation * u
        u += v
        gain.append(1 - u)
    return np.array(gain)


# Schedules -------------------------------------------------------------------------------------


@LADDER
@given(schedule=SCHEDULES, planned=st.integers(1, 300), share=st.floats(0, 0.9))
def test_schedule_rises_to_one_then_never_rises_again(schedule, planned, share):
    warmup = int(share * planned)
    factors = schedule_factors(schedule, planned, warmup_steps=warmup)
    assert factors.shape == (planned,)
    assert factors.min() >= 0
    assert factors[warmup] == factors.max() == 1
    assert np.all(np.diff(factors[: warmup + 1]) > 0)
    assert np.all(np.diff(factors[warmup:]) <= 0)


@LADDER
@given(
    schedule=SCHEDULES,
    planned=st.integers(1, 200),
    steps=st.integers(1, 200),
    warmup=st.integers(0, 20),
)
def test_stopped_pilot_sees_the_prefix_of_the_planned_schedule(schedule, planned, steps, warmup):
    kwargs = {"warmup_steps": warmup, "planned_steps": planned}
    long = schedule_factors(schedule, 400, **kwargs)
    np.testing.assert_array_equal(schedule_factors(schedule, steps, **kwargs), long[:steps])
    if schedule != "constant":
        assert np.all(long[max(planned, warmup) :] == 0)


def test_schedule_values_worked_out_by_hand():
    np.testing.assert_allclose(schedule_factors("linear", 4), [1, 0.75, 0.5, 0.25])
    np.testing.assert_allclose(
        schedule_factors("cosine", 5, planned_steps=4),
        [1, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4, 0],
    )
    np.testing.assert_allclose(
        schedule_factors("linear", 6, warmup_steps=2), [0, 0.5, 1, 0.75, 0.5, 0.25]
    )
    np.testing.assert_allclose(
        schedule_factors("constant", 4, warmup_steps=4, planned_steps=99), [0, 0.25, 0.5, 0.75]
    )


# Clock -----------------------------------------------------------------------------------------


@LADDER
@given(factors=FACTORS, exponent=st.floats(0, 3))
def test_clock_adds_one_powered_factor_per_step(factors, exponent):
    clock = cumulative_clock(factors, exponent)
    assert clock[0] == 0
    assert clock.shape == (len(factors) + 1,)
    np.testing.assert_allclose(np.diff(clock), np.power(factors, exponent), atol=1e-12)
    assert clock[-1] <= len(factors)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 60])
def test_curve_on_the_clock_tracks_the_scheduled_recursion_and_raw_steps_do_not(schedule, warmup):
    relaxation, steps = 400, 800
    factors = schedule_factors(schedule, steps, warmup_steps=warmup)
    run = gain_of_recursion(factors, 0.5, relaxation)

    def miss(clock):
        return np.abs(run - trajectory(clock, 0.0, 1.0, coefficients(1 / relaxation, 0.5))).max()

    assert miss(cumulative_clock(factors)) < 0.005
    if schedule != "constant" or warmup:
        assert miss(np.arange(steps + 1)) > 5 * 0.005
        assert miss(cumulative_clock(factors, 2.0)) > 2 * 0.005


# Logged policy ---------------------------------------------------------------------------------


def steps_behind_by_stepping(rows, minibatches, epochs, lag):
    """Optimizer steps done when the rollouts of each logged row were sampled."""
    behind = []
    for done in range(rows):
        if done % (minibatches * epochs) == 0:
            sampled = max(done - lag, 0)
        behind.append(sampled)
    return behind


@LADDER
@given(minibatches=st.integers(1, 8), epochs=st.integers(1, 4), lag=st.integers(0, 9))
def test_policy_steps_equal_a_stepped_training_loop(minibatches, epochs, lag):
    rows = np.arange(1, 121)
    expected = steps_behind_by_stepping(120, minibatches, epochs, lag)
    np.testing.assert_array_equal(policy_steps(rows, minibatches, epochs, lag), expected)


def test_policy_steps_worked_out_by_hand():
    rows = [1, 2, 4, 5, 8, 9]
    np.testing.assert_array_equal(policy_steps(rows, 1), [0, 1, 3, 4, 7, 8])
    np.testing.assert_array_equal(policy_steps(rows, 4), [0, 0, 0, 4, 4, 8])
    np.testing.assert_array_equal(policy_steps(rows, 2, epochs=2), [0, 0, 0, 4, 4, 8])
    np.testing.assert_array_equal(policy_steps(rows, 4, lag=3), [0, 0, 0, 1, 1, 5])


@pytest.mark.parametrize(("interval", "lag"), [(1, 0), (4, 0), (8, 3)])
def test_mean_age_of_the_logged_policy_is_lag_plus_half_the_interval(interval, lag):
    rows = np.arange(801, 801 + 10 * interval)
    age = (rows - 1 - policy_steps(rows, interval, lag=lag)).mean()
    assert age == lag + (interval - 1) / 2


def test_logged_policy_check_rejects_reading_the_row_as_current():
    rows = np.arange(1, 121)
    expected = np.array(steps_behind_by_stepping(120, 4, 2, 3))
    assert np.abs(policy_steps(rows, 4, 2, 3) - expected).max() == 0
    assert np.abs(rows - 1 - expected).max() == 7 + 3
