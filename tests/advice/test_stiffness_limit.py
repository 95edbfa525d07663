"""The tabulated limit of the refresh map against a direct scan of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_oracles import critical_stiffness, held_limit, partial_correction_limit, schedule_radius

from advisor.theory import SHARES, lag_in_cycles, stiffness_limit

LEAST = 1e-4
MOST = 1e3

WITHIN = 0.02
STIFFEST = 5.0
"""Per step: far beyond any mode of a run; windows above it may be too narrow for the table."""

MOMENTA = st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.95, 0.99])
INTERVALS = st.sampled_from([1, 2, 3, 4, 8, 16, 64])
LAGS = st.sampled_from([0.0, 0.5, 1.0, 3.5, 8.0])
FEW = settings(max_examples=40)


def scanned(momentum, interval, share, lag):
    cycles = lag_in_cycles(lag, interval)
    radius = schedule_radius(momentum, interval, uncorrected_share=share, lag_cycles=cycles)
    # The smaller of what is scanned and of where the table ends.
    return min(MOST, critical_stiffness(radius, low=LEAST, high=MOST, points=1000))


@pytest.mark.evidence
@FEW
@given(MOMENTA, INTERVALS, st.sampled_from(SHARES.tolist()), LAGS)
def test_limit_is_that_of_a_direct_scan_at_tabulated_shares(momentum, interval, share, lag):
    exact = scanned(momentum, interval, share, lag)
    found = stiffness_limit(momentum, interval, share, lag)
    if exact < STIFFEST:
        assert found == pytest.approx(exact, rel=WITHIN)
    else:
        assert found > (1 - WITHIN) * STIFFEST


@pytest.mark.parametrize(
    ("momentum", "interval", "share", "lag"),
    [(0.9, 8, 0.35, 1.0), (0.9, 16, 0.3, 0.0), (0.9, 16, 0.425, 1.0), (0.95, 64, 0.4, 0.0)],
)
def test_limit_is_not_overstated_where_a_window_opens(momentum, interval, share, lag):
    exact = scanned(momentum, interval, share, lag)
    assert exact < 1
    assert stiffness_limit(momentum, interval, share, lag) <= 1.1 * exact


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("interval", [1, 2, 4, 8, 16, 64, 256])
def test_limit_without_correction_or_lag_is_the_closed_form(momentum, interval):
    found = stiffness_limit(momentum, interval, 1.0)
    assert found == pytest.approx(held_limit(momentum, interval), rel=1e-4)


@pytest.mark.parametrize("interval", [2, 8, 64])
@pytest.mark.parametrize("share", [0.5625, 0.625, 0.75, 0.875, 0.9375])
def test_limit_of_partial_correction_without_momentum_is_the_closed_form(interval, share):
    assert share in SHARES
    exact = partial_correction_limit(interval, share)
    assert stiffness_limit(0.0, interval, share) == pytest.approx(exact, rel=1e-4)


def test_check_of_the_table_rejects_a_wrong_age():
    # The control: a lag of one more cycle is told apart everywhere.
    for momentum in (0.0, 0.9):
        for interval in (2, 8):
            right = scanned(momentum, interval, 1.0, 0.0)
            wrong = stiffness_limit(momentum, interval, 1.0, float(interval))
            assert abs(wrong / right - 1) > 10 * WITHIN
