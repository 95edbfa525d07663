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


@pytest.mark.evidence
@LADDER
@given(first=FACTORS, second=FACTORS, exponent=st.floats(0, 3))
def test_clock_of_two_pieces_is_the_sum_of_their_clocks(first, second, exponent):
    whole = cumulative_clock(first + second, exponent)[-1]
    parts = cumulative_clock(first, exponent)[-1] + cumulative_clock(second, exponent)[-1]
    assert whole == pytest.approx(parts)


@LADDER
@given(factors=FACTORS)
def test_exponent_zero_gives_raw_steps_and_a_larger_exponent_a_slower_clock(factors):
    np.testing.assert_array_equal(cumulative_clock(factors, 0.0), np.arange(len(factors) + 1))
    assert np.all(cumulative_clock(factors, 2.0) <= cumulative_clock(factors, 1.0))


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_decay_halves_the_clock_and_stops_it_at_the_planned_end(schedule):
    clock = cumulative_clock(schedule_factors(schedule, 400, planned_steps=300))
    assert clock[300] == pytest.approx(150.5)
    assert np.all(clock[300:] == clock[300])


def test_linear_decay_over_two_relaxations_stops_at_65_of_the_gain_instead_of_87():
    relaxation, steps = 150, 300
    linear, constant = (schedule_factors(name, steps) for name in ("linear", "constant"))
    # The 0.65 and 0.87 of docs/theory, T34, are the recursion at momentum 0.9 and T = 150 ...
    assert gain_of_recursion(linear, 0.9, relaxation)[-1] == pytest.approx(0.649, abs=5e-4)
    assert gain_of_recursion(constant, 0.9, relaxation)[-1] == pytest.approx(0.874, abs=5e-4)
    # ... while the single exponential of the clock alone says 0.63 and 0.865.
    assert 1 - np.exp(-cumulative_clock(linear)[-1] / relaxation) == pytest.approx(0.633, abs=5e-4)
    assert 1 - np.exp(-cumulative_clock(constant)[-1] / relaxation) == pytest.approx(
        0.865, abs=5e-4
    )


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


def test_warm_up_alone_gives_a_quadratic_slow_start():
    ramp = gain_of_recursion(schedule_factors("constant", 60, warmup_steps=50), 0.0, 150)
    flat = gain_of_recursion(schedule_factors("constant", 60), 0.0, 150)
    for early in (10, 20):
        assert 3.7 < ramp[2 * early] / ramp[early] < 4.3
        assert 1.8 < flat[2 * early] / flat[early] < 2.0


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
