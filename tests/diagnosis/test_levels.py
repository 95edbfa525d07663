"""Levels and their errors: by hand, and how often an interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_runs import FEW, make, noise, rate
from scipy import stats

from advisor.diagnosis import Level
from advisor.diagnosis.levels import (
    Z95,
    as_normal,
    ends,
    lag_one,
    level,
    series_of,
    since,
    tamed,
    trailing_mean,
    widening,
)

ROWS = arrays(float, st.integers(4, 40), elements=st.floats(-1e3, 1e3))


def test_level_by_hand():
    found = level(np.array([1.0, 3.0, 1.0, 3.0]))
    assert found.mean == 2
    assert found.error == pytest.approx(np.sqrt(4 / 3) / 2)  # neighbours differ: nothing to widen
    assert pytest.approx(1.959964) == Z95
    assert found.interval == pytest.approx((2 - Z95 * found.error, 2 + Z95 * found.error))


def test_three_rows_have_no_error():
    assert level(np.array([1.0, 2.0, 3.0])) == Level(2.0, np.inf)
    assert np.isnan(level(np.zeros(0)).mean)
    assert level(np.ones(3)).above(level(np.zeros(9))) == 0.0


@FEW
@given(value=st.floats(-1e90, 1e90), one=st.integers(4, 300), other=st.integers(4, 300))
def test_a_constant_does_not_differ_from_itself(value, one, other):
    assert abs(level(np.full(one, value)).above(level(np.full(other, value)))) < 0.01


def test_two_constants_differ():
    assert level(np.full(9, 0.5)).above(level(np.full(9, 0.4))) > 100


@FEW
@given(one=ROWS, other=ROWS)
def test_difference_turns_its_sign(one, other):
    assert level(one).above(level(other)) == -level(other).above(level(one))


def test_correlation_widens():
    white, dull = noise(1, 4000), noise(1, 4000, 0.6)
    assert widening(lag_one(white)) == pytest.approx(1, abs=0.05)
    assert widening(lag_one(dull)) == pytest.approx(2, abs=0.15)  # sqrt(1.6 / 0.4)
    assert lag_one(dull) == pytest.approx(0.6, abs=0.05)
    assert (lag_one(np.full(9, 0.1)), widening(lag_one(np.full(9, 0.1)))) == (0.0, 1.0)
    assert widening(-0.5) == 1.0
    assert widening(5.0) == pytest.approx(np.sqrt(19))  # capped at 0.9


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.91), (0.6, 0.86)])
def test_the_interval_holds_the_truth(correlation, least):
    def holds(seed):
        low, high = level(noise(seed, 100, correlation)).interval
        return low <= 0 <= high

    assert least <= rate(holds) <= 0.99


def test_without_widening_the_interval_would_not():
    def holds(seed):
        values = noise(seed, 100, 0.6)
        return abs(values.mean()) <= 1.96 * values.std(ddof=1) / 10

    assert rate(holds) < 0.8


def test_series_are_their_finite_values():
    run = make(np.ones(6), entropy=[np.nan, 1, np.inf, 2, 3, 4])
    step, values = series_of(run, "entropy")
    assert (step.tolist(), values.tolist()) == ([2, 4, 5, 6], [1, 2, 3, 4])
    assert series_of(run, "kl") is None
    assert series_of(make(np.ones(4), kl=[1, 2, 3, np.nan]), "kl") is None


def test_since_when():
    step = np.arange(1.0, 41)
    rose = np.where(step > 20, 1.0, 0.0)
    # Means over 4 rows: the first that stays above 0.5 starts at step 19 (0, 0, 1, 1 is at 0.5).
    assert since(step, rose, 0.5) == 19
    assert since(step, 1 - rose, 0.4, below=True) == 20
    assert since(step, np.zeros(40), 0.5) == 40
    assert since(step, np.ones(40), 0.5) == 1


def test_ends_are_a_fifth_but_four_rows():
    first, last = ends(np.arange(100.0))
    assert (first.mean, last.mean) == (9.5, 89.5)
    first, last = ends(np.arange(10.0))
    assert (first.mean, last.mean) == (1.5, 7.5)


def test_rareness_is_that_of_student():
    assert as_normal(3.0, np.inf) == pytest.approx(3.0)
    assert as_normal(6.0, 5) == pytest.approx(stats.norm.isf(stats.t.sf(6.0, 5)))
    assert as_normal(-6.0, 5) == -as_normal(6.0, 5)
    assert 30 < as_normal(1e12, 50) < 40  # the rarest number there is
    assert as_normal(0.0, 3) == 0.0


# Numbers that would overflow --------------------------------------------------------------------


@FEW
@given(values=arrays(float, 20, elements=st.floats()))
def test_tamed_numbers_can_be_squared_and_summed(values):
    kept = tamed(values)
    assert np.array_equal(np.isnan(kept), ~np.isfinite(values))
    squares = np.nansum(kept**2)
    assert np.isfinite(squares)
    assert (squares > 0) == bool((np.abs(values[np.isfinite(values)]) >= 1e-100).any())
    usual = np.abs(values) < 1e100
    assert np.array_equal(kept[usual], np.where(np.abs(values) < 1e-100, 0, values)[usual])


@FEW
@given(values=ROWS, window=st.integers(1, 40))
def test_trailing_mean_is_a_mean(values, window):
    window = min(window, values.size)
    wanted = [values[row : row + window].mean() for row in range(values.size - window + 1)]
    np.testing.assert_allclose(trailing_mean(values, window), wanted, rtol=1e-9, atol=1e-9)


def test_a_huge_value_drowns_its_own_windows_only():
    values = np.full(40, 0.5)
    values[7] = 1e30
    means = trailing_mean(values, 5)
    assert (means[3:8] > 1e29).all()
    np.testing.assert_array_equal(np.delete(means, np.arange(3, 8)), 0.5)
