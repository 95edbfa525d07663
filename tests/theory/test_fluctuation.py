"""Noise formulas against exact moments and seeded simulation; docs/theory, T26 to T31."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from theory_oracles import (
    held_inflation,
    mean_plateau_loss,
    stationary_variance,
)

from advisor.theory import PromptDifficulty, temperature

LADDER = settings(max_examples=200)
GROUPS = st.integers(2, 64)
RATES = st.floats(0.01, 0.99)


# Stationary fluctuation ------------------------------------------------------------------------


def variance_by_moments(rate, curvature, momentum, prompts, group, spread):
    """Stationary covariance of (u, v), solved from C = A C A' + Q."""
    pull = (1 - momentum) * rate * curvature
    step = np.array([[1 - pull, momentum], [-pull, momentum]])
    kick = ((1 - momentum) * rate) ** 2 * spread / (prompts * group)
    cov = np.linalg.solve(np.eye(4) - np.kron(step, step), np.full(4, kick))
    return cov[0]


def simulated_variance(rng, rate, curvature, momentum, prompts, group, spread, interval=1):
    """The same by running 4,000 chains; the gradient mean is held ``interval`` steps."""
    u, v, squares = np.zeros(4000), np.zeros(4000), []
    for step in range(800):
        if step % interval == 0:
            snapshot = u
            if step >= 300:
                squares.append((u**2).mean())
        noise = math.sqrt(spread / (prompts * group)) * rng.standard_normal(u.size)
        v = momentum * v - (1 - momentum) * rate * (curvature * snapshot + noise)
        u = u + v
    return np.mean(squares)


@LADDER
@given(momentum=st.floats(0, 0.98), used=st.floats(1e-3, 0.999), group=GROUPS)
def test_stationary_variance_is_exact_for_the_recursion(momentum, used, group):
    rate = 0.02
    curvature = used * 2 * (1 + momentum) / (1 - momentum) / rate
    settings_ = (rate, curvature, momentum, 8, group, 1.7)
    expected = variance_by_moments(*settings_)
    assert stationary_variance(*settings_) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_simulated_fluctuation_has_the_stated_size_and_falls_as_one_over_group(momentum):
    rng = np.random.default_rng(20260630)
    variances = {}
    for group in (4, 16):
        settings_ = (0.05, 4.0, momentum, 2, group, 1.5)
        variances[group] = simulated_variance(rng, *settings_)
        assert variances[group] == pytest.approx(stationary_variance(*settings_), rel=0.05)
        assert stationary_variance(*settings_[:4], group**2, 1.5) < variances[group] / 3  # wrong
    assert variances[4] / variances[16] == pytest.approx(4, rel=0.06)


def test_fluctuation_check_rejects_the_leading_order_near_the_limit():
    rng = np.random.default_rng(11)
    settings_ = (0.5, 2.0, 0.0, 2, 4, 1.0)  # half-way to the on-policy limit
    measured = simulated_variance(rng, *settings_)
    right = stationary_variance(*settings_)
    leading = temperature(0.5, 2, 4) / (2 * 2.0)
    assert abs(measured / right - 1) < 0.05
    assert abs(measured / leading - 1) > 0.5


def test_temperature_and_mean_plateau_loss_by_hand():
    assert temperature(0.02, 8, 4, 1.6) == pytest.approx(0.001)
    assert mean_plateau_loss(-3.0, 0.02) == mean_plateau_loss(3.0, 0.02) == pytest.approx(0.03)
    sample = np.random.default_rng(5).normal(0, 0.1, 400_000)
    lost = 0.7 - (0.7 - 3.0 * sample**2 / 2).mean()
    assert lost == pytest.approx(mean_plateau_loss(-3.0, 0.01), rel=0.02)


@LADDER
@given(interval=st.integers(1, 64), used=st.floats(0.001, 0.999))
def test_held_inflation_is_the_exact_variance_ratio(interval, used):
    k = 2 * used / interval

    def variance(held):  # AR(1): u' = (1 - K k) u + sum of K kicks
        return held / (1 - (1 - held * k) ** 2)

    assert held_inflation(k, interval) == pytest.approx(variance(interval) / variance(1), rel=1e-9)


def test_held_inflation_doubles_at_half_the_threshold_and_diverges_there():
    assert held_inflation(1e-6, 10**6) == pytest.approx(2, rel=1e-5)
    assert held_inflation(0.01, 199.9999) > 1e5


# Logged reward ---------------------------------------------------------------------------------


@LADDER
@given(mean=RATES, log_c=st.floats(-2, 4))
def test_difficulty_moments_are_those_of_the_beta_distribution(mean, log_c):
    mix = PromptDifficulty(mean, 10**log_c)
    beta = stats.beta(*mix.shapes)
    assert beta.mean() == pytest.approx(mean)
    assert beta.var() == pytest.approx(mean * (1 - mean) / (1 + 10**log_c), rel=1e-9)


@pytest.mark.parametrize(("mean", "concentration"), [(0, 1), (1, 1), (0.5, 0), (0.5, -1)])
def test_impossible_difficulty_is_refused(mean, concentration):
    with pytest.raises(ValueError, match="mean must lie"):
        PromptDifficulty(mean, concentration)


@pytest.mark.parametrize("share", [0.03, 1.0])
def test_shares_that_no_right_and_wrong_makes_are_refused(share):
    with pytest.raises(ValueError, match=r"must lie above 0\.0577"):
        PromptDifficulty.of_silent_groups(0.3, share, 8)
