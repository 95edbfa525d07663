"""Refresh maps and their limits against brute-force stepping of the optimizer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_oracles import (
    held_limit,
    held_map,
    neimark_sacker_limit,
    paper_margin,
    scanned_limit,
    simulate_recursion,
    stability_margin,
)

from advisor.theory import cycle_map, oscillatory_onset, spectral_radius

LADDER = settings(max_examples=300)
MOMENTA = st.floats(0, 0.99)
INTERVALS = st.integers(1, 64)
SHARES = st.floats(0, 1)
CYCLES = st.integers(0, 4)


def brute_map(k, momentum, interval, share, lag_cycles):
    """Columns: what K plain optimizer steps make of each basis state (u, v, older snapshots)."""
    columns = []
    for state in np.eye(2 + lag_cycles):
        u, v, *older = state
        start, snapshot = u, older[-1] if older else u
        for _ in range(interval):
            v = momentum * v - (1 - momentum) * k * (share * snapshot + (1 - share) * u)
            u = u + v
        columns.append([u, v, *([start, *older[:-1]] if older else [])])
    return np.array(columns).T


def growth_per_cycle(k, momentum, interval, share, lag_cycles, cycles=600):
    """Log growth of the largest distance, from the middle third of a simulated run to its last."""
    path = simulate_recursion(
        cycles * interval, k, momentum, refresh_interval=interval, uncorrected_share=share,
        lag_cycles=lag_cycles,
    )  # fmt: skip
    _, middle, last = np.abs(path[1:]).reshape(3, -1).max(axis=1)
    return math.log(last / middle) / (cycles / 3)


# The maps --------------------------------------------------------------------------------------


@pytest.mark.evidence
@LADDER
@given(k=st.floats(1e-4, 2), momentum=MOMENTA, interval=INTERVALS)
def test_held_map_equals_stepping_the_recursion(k, momentum, interval):
    expected = brute_map(k, momentum, interval, 1.0, 0)
    np.testing.assert_allclose(held_map(k, momentum, interval), expected, rtol=1e-9, atol=1e-11)


@LADDER
@given(k=st.floats(1e-4, 2), momentum=MOMENTA, interval=INTERVALS, share=SHARES, lag=CYCLES)
def test_cycle_map_equals_stepping_the_recursion(k, momentum, interval, share, lag):
    expected = brute_map(k, momentum, interval, share, lag)
    got = cycle_map(k, momentum, interval, share, lag)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@LADDER
@given(k=st.floats(1e-4, 5), momentum=MOMENTA, interval=INTERVALS, share=SHARES)
def test_two_by_two_spectral_radius_equals_the_eigenvalues(k, momentum, interval, share):
    matrix = cycle_map(k, momentum, interval, share)
    expected = np.abs(np.linalg.eigvals(matrix)).max()
    assert spectral_radius(matrix) == pytest.approx(expected, rel=1e-6)


# Limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [1, 2, 3, 8, 16, 32, 64, 256])
@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9, 0.99])
def test_held_limit_equals_the_scanned_limit(momentum, interval):
    scanned = scanned_limit(momentum, interval)
    assert held_limit(momentum, interval) * interval == pytest.approx(scanned)


def test_special_cases_of_the_held_limit():
    for interval in (1, 2, 8, 64):
        assert held_limit(0.0, interval) * interval == pytest.approx(2)
        assert neimark_sacker_limit(0.0, interval) == math.inf
    for momentum in (0.0, 0.5, 0.9, 0.99):
        expected = 2 * (1 + momentum) / (1 - momentum)
        assert held_limit(momentum, 1) == pytest.approx(expected)
        assert neimark_sacker_limit(momentum, 1) == math.inf
    assert held_limit(0.9, 1) == pytest.approx(38)


SCHEDULES = [  # momentum, K, share, cycles of lag: flips, complex pairs, partial, lagging
    (0.0, 1, 1, 0), (0.0, 8, 1, 0), (0.9, 1, 1, 0), (0.9, 2, 1, 0), (0.9, 16, 1, 0),
    (0.9, 64, 1, 0), (0.0, 8, 0.75, 0), (0.9, 16, 0.5, 0), (0.9, 4, 1, 1), (0.0, 4, 1, 2),
    (0.5, 4, 1, 4), (0.9, 4, 0.8, 2),
]  # fmt: skip


@pytest.mark.parametrize(("momentum", "interval", "share", "lag"), SCHEDULES)
def test_simulated_run_decays_below_the_limit_and_grows_above(momentum, interval, share, lag):
    edge = scanned_limit(momentum, interval, share=share, lag_cycles=lag) / interval
    settings_ = (momentum, interval, share, lag)
    for factor, sign in ((0.98, -1), (1.02, 1)):
        rate = growth_per_cycle(factor * edge, *settings_)
        margin = stability_margin(
            factor * edge, momentum, interval, lag=lag * interval, uncorrected_share=share
        )
        assert sign * rate > 0
        assert sign * margin < 0
        assert rate == pytest.approx(math.log(1 - margin), abs=0.003)


@pytest.mark.parametrize("momentum", [0.1, 0.5, 0.9, 0.99])
def test_oscillation_sets_in_exactly_at_the_stated_stiffness(momentum):
    onset = oscillatory_onset(momentum)
    assert onset * (1 - momentum) == pytest.approx((1 - math.sqrt(momentum)) ** 2)

    def imaginary(k):
        return np.abs(np.imag(np.linalg.eigvals(held_map(k, momentum, 1)))).max()

    assert imaginary(onset * (1 - 1e-6)) == 0
    assert imaginary(onset * (1 + 1e-6)) > 0


@pytest.mark.parametrize(("momentum", "interval"), [(0.0, 8), (0.9, 4), (0.9, 16), (0.9, 64)])
def test_boundary_check_rejects_the_papers_rule_as_if_exact(momentum, interval):
    def miss(k):
        return abs(stability_margin(k, momentum, interval))

    paper = 1 / interval
    assert paper_margin(paper, interval) == 0
    assert miss(held_limit(momentum, interval)) < 1e-9
    assert miss(paper) > 0.1
    assert growth_per_cycle(1.02 * paper, momentum, interval, 1.0, 0, cycles=150) < 0
