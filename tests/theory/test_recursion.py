"""The closed form against the optimizer recursion that it approximates, and where it stops.

The bounds are measured ones. A first estimate said 0.003 while k (1 - momentum) <= 0.02, and 0.01
while s k A < 0.25: both hold for part of the range only, and the tests say for which part.
"""

from __future__ import annotations

import numpy as np
import pytest
from theory_oracles import simulate_recursion

from advisor.theory import Oscillator, coefficients, decay, trajectory

MOMENTA = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
INTERVALS = (2, 3, 5, 7, 9, 13, 17, 21, 26, 32)


def policy_error(momentum, pull, *, mass_factor=1.0, shift=True):
    """Largest distance between recursion and closed form at k (1 - momentum) = pull."""
    k = pull / (1 - momentum)
    mass, damping, stiffness = coefficients(k, momentum)
    oscillator = Oscillator(mass * mass_factor, damping, stiffness)
    steps = np.arange(1501)
    curve = trajectory(steps, 1.0, 0.0, oscillator) if shift else decay(steps, oscillator)
    return np.abs(simulate_recursion(1500, k, momentum) - curve).max()


def held_error(momentum, interval, share, stale, *, damping_sign=1):
    """The same with a snapshot held K steps, at s k A = stale."""
    age = (interval - 1) / 2
    k = stale / (share * age)
    if k * (1 - momentum) > 0.02:
        return 0.0
    mass, damping, _ = coefficients(k, momentum, age, share)
    oscillator = Oscillator(mass, damping if damping_sign == 1 else 2 - damping, k)
    steps = int(min(2000, 12 / k))
    path = simulate_recursion(
        steps, k, momentum, refresh_interval=interval, uncorrected_share=share
    )
    return np.abs(path - trajectory(np.arange(steps + 1), 1.0, 0.0, oscillator)).max()


def worst_held(share, stale, momenta=(*MOMENTA, 0.99)):
    return max(held_error(mu, K, share, x) for mu in momenta for K in INTERVALS for x in stale)


def plain_heavy_ball(steps, k, momentum, interval, share, lag_cycles):
    """Another writing of the recursion, in positions only: no velocity, snapshots by index."""
    u = [1.0, 1.0]  # u[-1], u[0]: a cold start
    for step in range(steps):
        seen = max(step // interval - lag_cycles, 0) * interval
        gradient = share * u[1 + seen] + (1 - share) * u[-1]
        u.append(u[-1] + momentum * (u[-1] - u[-2]) - (1 - momentum) * k * gradient)
    return np.array(u[1:])


@pytest.mark.parametrize("lag_cycles", [0, 1, 2, 4])
@pytest.mark.parametrize("share", [1.0, 0.3, 0.0])
@pytest.mark.parametrize(("momentum", "interval"), [(0.0, 4), (0.9, 1), (0.9, 7)])
def test_recursion_equals_one_written_in_positions_only(momentum, interval, share, lag_cycles):
    got = simulate_recursion(
        120, 0.03, momentum, refresh_interval=interval, uncorrected_share=share,
        lag_cycles=lag_cycles,
    )  # fmt: skip
    expected = plain_heavy_ball(120, 0.03, momentum, interval, share, lag_cycles)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


# On policy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", MOMENTA)
@pytest.mark.parametrize("pull", [1e-4, 1e-3, 5e-3, 0.01, 0.015])
def test_on_policy_error_is_below_003_up_to_pull_015(momentum, pull):
    assert policy_error(momentum, pull) < 0.003


@pytest.mark.parametrize("momentum", [0.8, 0.9, 0.95])
@pytest.mark.parametrize(
    "wrong", [{"mass_factor": 2.0}, {"mass_factor": 0.5}, {"shift": False}], ids=str
)
def test_on_policy_check_rejects_a_wrong_mass_and_a_missing_half_step(momentum, wrong):
    assert policy_error(momentum, 0.02) < 0.003
    assert policy_error(momentum, 0.02, **wrong) > 4 * 0.003


# Held snapshot ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "stale"), [(1.0, 0.12), (0.5, 0.08), (0.2, 0.06)])
def test_held_error_is_below_01_up_to_a_stale_share_of_a_few_percent(share, stale):
    assert worst_held(share, np.linspace(0.02, stale, 4)) < 0.01


@pytest.mark.parametrize("momentum", [0.5, 0.9])
def test_held_check_rejects_a_lag_that_adds_damping(momentum):
    assert held_error(momentum, 16, 1.0, 0.1) < 0.01
    assert held_error(momentum, 16, 1.0, 0.1, damping_sign=-1) > 4 * 0.01
