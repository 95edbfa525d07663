"""Inertial onset and the decay of a Gamma spectrum of stiffness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import gamma

from advisor.theory import inertial_time, spectrum_decay

LADDER = settings(max_examples=100)
MOMENTA = st.floats(0, 0.999)


def summed(steps, momentum):
    """Steps of progress when every velocity is built up one step at a time."""
    return sum(1 - momentum**j for j in range(1, steps + 1))


def averaged(x, dispersion):
    """E[exp(-w x)] over w ~ Gamma with mean 1 and variance ``dispersion``, by quadrature."""
    modes = gamma(1 / dispersion, scale=dispersion)
    # Over probabilities, so that a density that is infinite at 0 needs no care.
    return quad(lambda share: np.exp(-modes.ppf(share) * x), 0, 1, limit=200, epsabs=1e-9)[0]


# Inertia ---------------------------------------------------------------------------------------


@LADDER
@given(steps=st.integers(0, 300), momentum=MOMENTA)
def test_inertial_time_is_the_sum_of_what_each_velocity_has_built_up(steps, momentum):
    assert inertial_time(steps, momentum) == pytest.approx(summed(steps, momentum), abs=1e-7)


def test_without_momentum_time_is_time():
    time = np.linspace(0, 500, 101)
    np.testing.assert_allclose(inertial_time(time, 0.0), time, atol=1e-8)


def test_inertia_worked_out_by_hand():
    np.testing.assert_allclose(inertial_time(np.arange(4), 0.5), [0, 0.5, 1.25, 2.125])
    assert 1000 - inertial_time(1000, 0.9) == pytest.approx(9.0)


def test_inertia_check_rejects_a_sum_that_starts_one_step_late():
    late = sum(1 - 0.9**j for j in range(20))
    assert inertial_time(20, 0.9) == pytest.approx(summed(20, 0.9), abs=1e-7)
    assert inertial_time(20, 0.9) != pytest.approx(late, abs=0.1)


# Spectrum --------------------------------------------------------------------------------------

GRID = [(x, d) for x in (0.0, 0.1, 0.7, 2.0, 8.0, 40.0) for d in (0.05, 0.3, 0.85, 1.0, 3.0)]


@pytest.mark.parametrize(("x", "dispersion"), GRID)
def test_decay_is_the_average_exponential_of_a_gamma_spectrum(x, dispersion):
    time, damping = 50.0, 0.8
    stiffness = x * damping / float(inertial_time(time, 0.9))
    left = spectrum_decay(time, stiffness, damping, 0.9, dispersion)
    assert left == pytest.approx(averaged(x, dispersion), abs=1e-6)


def test_spectrum_check_rejects_a_wrong_exponent():
    def miss(power):
        return max(
            abs((1 + d * x) ** (-power(d)) - averaged(x, d))
            for x, d in GRID
            if x > 0 and d in (0.3, 3.0)
        )

    assert miss(lambda d: 1 / d) < 1e-6
    assert miss(lambda d: 1.0) > 0.05
    assert miss(lambda d: 1 / d + 1) > 0.05


def test_special_cases_of_the_curve():
    x = np.linspace(0, 20, 41)
    hill = spectrum_decay(x, 1.0, 1.0, 0.0, 1.0, 1.3)
    np.testing.assert_allclose(hill, 1 / (1 + x**1.3), atol=1e-7)
    stretched = spectrum_decay(x, 1.0, 1.0, 0.0, 1e-7, 1.3)
    np.testing.assert_allclose(stretched, np.exp(-(x**1.3)), atol=1e-6)
    assert np.abs(hill - stretched).max() > 0.1
