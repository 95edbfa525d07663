"""docs/theory, T19: every row of the table, the numbers in its text and the sufficient rule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_oracles import (
    critical_stiffness,
    delay_radius,
    held_limit,
    partial_correction_limit,
    schedule_radius,
    stability_margin,
    sufficient_margin,
)

from advisor.theory import coefficients, lag_in_cycles

LADDER = settings(max_examples=300)


def limit(momentum, interval, *, share=1.0, lag_cycles=0):
    """Exact limit of k K, by scanning the map."""
    radius = schedule_radius(momentum, interval, uncorrected_share=share, lag_cycles=lag_cycles)
    scan = {"low": 0.1 / interval, "high": 1000 / interval, "points": 300}
    return interval * critical_stiffness(radius, **scan)


def test_held_row_is_2_without_momentum_and_2p2_to_4p2_at_momentum_90():
    limits = np.array([held_limit(0.9, K) * K for K in range(2, 257)])
    assert round(limits.min(), 1) == 2.2
    assert round(limits.max(), 1) == 4.2


def test_held_limit_is_2_to_6_times_the_papers_rule_at_any_momentum():
    limits = {
        (mu, K): held_limit(mu, K) * K for mu in np.linspace(0, 0.99, 199) for K in range(2, 65)
    }
    assert min(limits.values()) == pytest.approx(2)
    largest = max(limits, key=limits.get)
    assert largest == (pytest.approx(0.545), 2)
    assert limits[largest] == pytest.approx(5.67, abs=0.01)  # docs/theory, T19: momentum 0.9


def test_constant_age_row_runs_from_1_to_half_pi():
    def scaled(momentum, age):
        def radius(k):
            return delay_radius(k, momentum, age)

        return age * critical_stiffness(radius, low=0.5 / age, high=4 / age, points=60)

    for momentum in (0.0, 0.5, 0.9, 0.99):
        assert scaled(momentum, 1) == pytest.approx(1, rel=1e-7)
    assert scaled(0.99, 4) == pytest.approx(1.006, abs=1e-3)
    assert scaled(0.0, 64) == pytest.approx(math.pi / 2, rel=0.01)
    for age in (2, 5, 16):  # exact without momentum
        expected = age * 2 * math.sin(math.pi / (2 * (2 * age + 1)))
        assert scaled(0.0, age) == pytest.approx(expected, rel=1e-7)
        for momentum in (0.3, 0.9):
            assert 1 <= scaled(momentum, age) <= math.pi / 2


@pytest.mark.parametrize("interval", [1, 4, 16])
@pytest.mark.parametrize(("cycles", "expected"), [(1, 1.0), (2, 0.618), (4, 0.3473)])
def test_older_snapshots_without_momentum(interval, cycles, expected):
    exact = 2 * math.sin(math.pi / (2 * (2 * cycles + 1)))
    assert exact == pytest.approx(expected, abs=1e-4)
    assert limit(0.0, interval, lag_cycles=cycles) == pytest.approx(exact, rel=1e-6)


def test_double_buffer_at_momentum_90_is_lowest_at_k_4_with_80():
    limits = {K: limit(0.9, K, lag_cycles=1) for K in (1, 2, 3, 4, 5, 6, 8, 16, 64)}
    assert min(limits, key=limits.get) == 4
    assert limits[4] == pytest.approx(0.796, abs=1e-3)


def test_double_buffer_at_momentum_99_falls_below_the_stated_range():
    assert limit(0.99, 12, lag_cycles=1) == pytest.approx(0.707, abs=1e-3)  # 41 % optimistic


def test_partial_correction_numbers_at_momentum_90_and_half_stale():
    got = [limit(0.9, K, share=0.5) for K in (4, 16, 64)]
    assert got == pytest.approx([6.28, 6.99, 5.23], abs=0.01)


@pytest.mark.parametrize("interval", [1, 2, 7, 32])
@pytest.mark.parametrize("share", [0.51, 0.6, 0.9, 1.0])
def test_partial_correction_limit_without_momentum_equals_the_scan(share, interval):
    got = partial_correction_limit(interval, share) * interval
    assert got == pytest.approx(limit(0.0, interval, share=share), rel=1e-6)


def test_no_refresh_threshold_without_momentum_when_at_most_half_is_stale():
    k = np.linspace(0.01, 1, 60)
    for share in (0.0, 0.3, 0.45, 0.5):
        assert partial_correction_limit(8, share) == math.inf
        for interval in (10, 100, 1000):
            margin = stability_margin(k, 0.0, interval, uncorrected_share=share).min()
            # At exactly one half the multiplier tends to -1 from inside: marginal, not unstable.
            assert margin > (0.05 if share < 0.5 else -1e-12)


def test_vanishing_damping_is_no_stability_limit():
    assert coefficients(2.1333 / 16, 0.9, 7.5, 1.0).damping == pytest.approx(0, abs=1e-4)
    assert held_limit(0.9, 16) * 16 == pytest.approx(2.98, abs=0.006)


# Rules and margins -----------------------------------------------------------------------------


@LADDER
@given(
    share=st.floats(0, 1),
    momentum=st.floats(0, 0.99),
    interval=st.integers(1, 64),
    cycles=st.integers(0, 4),
    used=st.floats(1e-4, 0.9999),
)
def test_sufficient_rule_implies_stability(share, momentum, interval, cycles, used):
    lag = cycles * interval
    k = used / (lag + interval / 2)
    assert sufficient_margin(k, interval, lag) == pytest.approx(1 - used)
    for stale in (1.0, share):
        assert stability_margin(k, momentum, interval, lag=lag, uncorrected_share=stale) > 0


def test_lag_below_a_refresh_is_rounded_up_so_the_margin_is_the_stricter_of_the_two():
    assert [lag_in_cycles(lag, 4) for lag in (0, 0.5, 1, 4, 4.5, 9)] == [0, 1, 1, 1, 2, 3]
    k = 0.99 / (1 + 64 / 2)
    assert sufficient_margin(k, 64, 1) > 0
    assert stability_margin(k, 0.9, 64, lag=1) < 0
    # Stepped at its true age of one optimizer step the run is stable, as the sufficient rule says.
    u, v = [1.0, 1.0], 0.0
    for step in range(100 * 64):
        if step % 64 == 0:
            snapshot = u[-2]
        v = 0.9 * v - 0.1 * k * snapshot
        u.append(u[-1] + v)
    assert abs(u[-1]) < 1e-6


def test_stiffness_ratio_multiplies_the_stiffness():
    margin = stability_margin(0.01, 0.9, 16, stiffness_ratio=[1.0, 25.0])
    np.testing.assert_allclose(margin, stability_margin([0.01, 0.25], 0.9, 16))
    assert margin[0] > 0 > margin[1]


def test_slow_mode_of_a_1_5_25_spectrum_hides_the_true_limit():
    rates = 0.01 * np.array([1, 5, 25])
    steps = np.arange(20, 200)
    reward_left = np.array([0.8, 0.15, 0.05]) @ (1 - rates[:, None]) ** steps
    fitted = -1 / np.polyfit(steps, np.log(reward_left), 1)[0]
    assert fitted == pytest.approx(97, abs=0.5)
    assert 2 * fitted == pytest.approx(194, abs=1)
    stable = [K for K in range(1, 200) if stability_margin(rates, 0.0, K).min() > -1e-12]
    assert max(stable) == 8


def test_sufficient_check_rejects_the_rule_without_half_an_interval():
    k = 0.99 / 4  # k lag < 1 with one cycle of lag, K = 4
    assert stability_margin(k, 0.9, 4, lag=4) < -0.03
    assert stability_margin(0.99 / 6, 0.9, 4, lag=4) > 0
