"""Inertial onset and the decay of a Gamma spectrum of stiffness."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import gamma

from advisor.theory import inertial_time, spectrum_decay

LADDER = settings(max_examples=100)
MOMENTA = st.floats(0, 0.999)
DISPERSIONS = st.floats(0.01, 20)


def summed(steps, momentum):
    """Steps of progress when every velocity is built up one step at a time."""
    return sum(1 - momentum**j for j in range(1, steps + 1))


def recursed(steps, momentum, stiffness):
    """Distance left after ``steps`` of the discrete recursion, from 1 at rest."""
    distance, velocity = 1.0, 0.0
    for _ in range(steps):
        velocity = momentum * velocity - (1 - momentum) * stiffness * distance
        distance += velocity
    return distance


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


@LADDER
@given(steps=st.integers(1, 200), momentum=MOMENTA)
def test_inertial_time_is_the_recursion_to_first_order_in_the_stiffness(steps, momentum):
    stiffness = 1e-6
    progress = (1 - recursed(steps, momentum, stiffness)) / stiffness
    assert progress == pytest.approx(summed(steps, momentum), rel=3e-4)
    assert progress == pytest.approx(float(inertial_time(steps, momentum)), rel=3e-4, abs=1e-7)


@pytest.mark.evidence
@LADDER
@given(momentum=MOMENTA, time=st.floats(0, 1e5))
def test_inertial_time_starts_at_zero_and_lags_by_at_most_the_memory_of_the_momentum(
    momentum, time
):
    assert inertial_time(0.0, momentum) == 0
    lag = time - inertial_time(time, momentum)
    assert -1e-9 <= lag <= momentum / (1 - momentum) + 1e-6
    assert inertial_time(time + 0.1, momentum) > inertial_time(time, momentum)


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


@LADDER
@given(x=st.floats(0.01, 30), dispersion=DISPERSIONS, onset=st.floats(0.5, 2))
def test_onset_counts_progress_by_a_power_of_it(x, dispersion, onset):
    left = spectrum_decay(100.0, x / 100, 1.0, 0.0, dispersion, onset)
    plain = spectrum_decay(100.0, x**onset / 100, 1.0, 0.0, dispersion)
    assert left == pytest.approx(plain, rel=1e-6)
    assert spectrum_decay(100.0, x / 100, 1.0, 0.0, dispersion, 1.0) == pytest.approx(
        spectrum_decay(100.0, x / 100, 1.0, 0.0, dispersion), rel=1e-12
    )


def test_special_cases_of_the_curve():
    x = np.linspace(0, 20, 41)
    hill = spectrum_decay(x, 1.0, 1.0, 0.0, 1.0, 1.3)
    np.testing.assert_allclose(hill, 1 / (1 + x**1.3), atol=1e-7)
    stretched = spectrum_decay(x, 1.0, 1.0, 0.0, 1e-7, 1.3)
    np.testing.assert_allclose(stretched, np.exp(-(x**1.3)), atol=1e-6)
    assert np.abs(hill - stretched).max() > 0.1


# PyTensor --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph():
    names = ("time", "stiffness", "damping", "momentum", "dispersion", "onset")
    inputs = [pt.dvector(name) for name in names]
    left = spectrum_decay(*inputs)
    gradients = pytensor.grad(left.sum(), inputs)
    return pytensor.function(inputs, [left, *gradients], mode="FAST_COMPILE")


def test_pytensor_and_numpy_agree(graph):
    rng = np.random.default_rng(20)
    size = 200
    values = [
        rng.uniform(0, 300, size),
        np.exp(rng.uniform(-9, 0, size)),
        rng.uniform(0.1, 1, size),
        np.where(rng.random(size) < 0.2, 0.0, rng.uniform(0, 0.99, size)),
        np.exp(rng.uniform(-4, 3, size)),
        np.exp(rng.uniform(-0.5, 0.5, size)),
    ]
    left, *_ = graph(*values)
    np.testing.assert_allclose(left, spectrum_decay(*values), rtol=1e-12)
    values[-1] = values[-1] * 1.01
    assert np.abs(left - spectrum_decay(*values)).max() > 1e-4


def test_gradient_is_that_of_a_finite_difference(graph):
    rng = np.random.default_rng(21)
    size, step = 50, 1e-6
    values = [
        rng.uniform(1, 100, size),
        rng.uniform(0.005, 0.1, size),
        rng.uniform(0.2, 1, size),
        rng.uniform(0.1, 0.95, size),
        rng.uniform(0.1, 3, size),
        rng.uniform(0.7, 1.5, size),
    ]
    _, *gradients = graph(*values)
    for index, gradient in enumerate(gradients):
        ahead, behind = list(values), list(values)
        ahead[index], behind[index] = values[index] + step, values[index] - step
        slope = (spectrum_decay(*ahead) - spectrum_decay(*behind)) / (2 * step)
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-7)
