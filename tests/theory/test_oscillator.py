"""Closed form: three regimes against independent solutions, safe limits, exact gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from advisor.theory import (
    Oscillator,
    coefficients,
    decay,
)

TAYLOR_RADIUS = 1e-3

LADDER = settings(max_examples=150)
MOMENTA = st.floats(0, 0.99)
TIMES = np.concatenate([[0.0], np.geomspace(1e-3, 1e7, 400)])


def stiffness_at(zeta, momentum):
    return 1 / (4 * coefficients(0.0, momentum).mass * zeta**2)


# Reference values ------------------------------------------------------------------------------

BY_HAND = {  # m = 1; roots (-1, -2), (-1, -1), -1 +- 2i, (1, 2) and 1 +- 2i
    "overdamped": ((1, 3, 2), lambda t, v: (2 + v) * np.exp(-t) - (1 + v) * np.exp(-2 * t)),
    "critical": ((1, 2, 1), lambda t, v: (1 + (1 + v) * t) * np.exp(-t)),
    "underdamped": (
        (1, 2, 5),
        lambda t, v: np.exp(-t) * (np.cos(2 * t) + (1 + v) / 2 * np.sin(2 * t)),
    ),
    "growing": ((1, -3, 2), lambda t, v: (2 - v) * np.exp(t) + (v - 1) * np.exp(2 * t)),
    "growing oscillation": (
        (1, -2, 5),
        lambda t, v: np.exp(t) * (np.cos(2 * t) + (v - 1) / 2 * np.sin(2 * t)),
    ),
}


@pytest.mark.parametrize("velocity", [0.0, -0.7, 2.0])
@pytest.mark.parametrize("regime", BY_HAND)
def test_decay_equals_the_solution_worked_out_by_hand(regime, velocity):
    numbers, solution = BY_HAND[regime]
    time = np.linspace(0, 12, 200)
    got = decay(time, Oscillator(*numbers), velocity)
    expected = solution(time, velocity)
    tolerance = 2e-14 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("momentum", [0.0, 0.9, 0.99])
def test_slow_root_keeps_its_digits_when_far_overdamped(momentum):
    mass, k = coefficients(0.0, momentum).mass, 1e-9
    slow = k * (1 + mass * k + 2 * (mass * k) ** 2)  # series of the smaller root, exact to 1e-20
    expected = np.exp(-slow / k) * (1 + mass * k)
    assert decay(1 / k, coefficients(k, momentum)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("zeta", [8.0, 1.3, 1.0, 0.7, 0.15])
@pytest.mark.parametrize(("momentum", "age", "share"), [(0.0, 0, 0), (0.9, 0, 0), (0.9, 5.5, 0.4)])
def test_decay_solves_the_differential_equation(zeta, momentum, age, share):
    oscillator = coefficients(stiffness_at(zeta, momentum), momentum, age, share)
    mass, damping, stiffness = oscillator
    time = np.linspace(0, 12 * damping / stiffness, 80)
    flow = solve_ivp(
        lambda _, y: [y[1], -(damping * y[1] + stiffness * y[0]) / mass],
        (0, time[-1]), [1.0, 0.0], method="DOP853", t_eval=time, rtol=1e-12, atol=1e-13,
    )  # fmt: skip
    np.testing.assert_allclose(decay(time, oscillator), flow.y[0], atol=1e-9)


# Properties ------------------------------------------------------------------------------------


@LADDER
@given(momentum=MOMENTA, log_k=st.floats(-9, np.log10(5)), velocity=st.floats(-2, 2))
def test_decay_starts_at_one_stays_within_one_and_vanishes(momentum, log_k, velocity):
    oscillator = coefficients(10**log_k, momentum)
    left = decay(TIMES, oscillator)
    assert decay(0.0, oscillator, velocity) == 1
    assert np.isfinite(left).all()
    assert np.abs(left).max() <= 1 + 1e-12
    assert np.isfinite(decay(TIMES, oscillator, velocity)).all()
    slowest = max(2 * oscillator.mass, 1 / oscillator.stiffness)
    late = 60 * slowest < TIMES
    np.testing.assert_allclose(left[late], 0, atol=1e-12)


@LADDER
@given(momentum=MOMENTA, scaled=st.floats(0.05, 60), side=st.sampled_from([-1, 1]))
def test_decay_is_continuous_across_the_edges_of_the_taylor_patch(momentum, scaled, side):
    mass = coefficients(0.0, momentum).mass
    time, half = scaled * mass, 1 / (2 * mass)

    def plain(z):  # one elementary formula per regime, no patch
        root = np.sqrt(abs(z))
        even, odd = (np.cosh, np.sinh) if z > 0 else (np.cos, np.sin)
        return np.exp(-half * time) * (even(root) + half * time * odd(root) / root)

    inside, outside = (side * TAYLOR_RADIUS * (1 + d) for d in (-1e-9, 1e-9))
    for z in (inside, outside):
        oscillator = Oscillator(mass, 1.0, mass * (half**2 - z / time**2))
        # A series one term short would miss by z^3/6! = 1.4e-12.
        assert decay(time, oscillator) == pytest.approx(plain(z), abs=5e-14)
