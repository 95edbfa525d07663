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
    scanned_limit,
    stability_margin,
    sufficient_margin,
)

LADDER = settings(max_examples=300)


def test_held_row_is_2_without_momentum_and_2p2_to_4p2_at_momentum_90():
    limits = np.array([held_limit(0.9, K) * K for K in range(2, 257)])
    assert round(limits.min(), 1) == 2.2
    assert round(limits.max(), 1) == 4.2


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


def test_double_buffer_at_momentum_90_is_lowest_at_k_4_with_80():
    limits = {K: scanned_limit(0.9, K, lag_cycles=1) for K in (1, 2, 3, 4, 5, 6, 8, 16, 64)}
    assert min(limits, key=limits.get) == 4
    assert limits[4] == pytest.approx(0.796, abs=1e-3)


@pytest.mark.parametrize("interval", [1, 2, 7, 32])
@pytest.mark.parametrize("share", [0.51, 0.6, 0.9, 1.0])
def test_partial_correction_limit_without_momentum_equals_the_scan(share, interval):
    got = partial_correction_limit(interval, share) * interval
    assert got == pytest.approx(scanned_limit(0.0, interval, share=share), rel=1e-6)


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


def test_sufficient_check_rejects_the_rule_without_half_an_interval():
    k = 0.99 / 4  # k lag < 1 with one cycle of lag, K = 4
    assert stability_margin(k, 0.9, 4, lag=4) < -0.03
    assert stability_margin(0.99 / 6, 0.9, 4, lag=4) > 0
