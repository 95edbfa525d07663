"""Levels and their errors: by hand, and how often an interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_runs import FEW, noise, rate
from scipy import stats

from advisor.diagnosis.levels import (
    Z95,
    as_normal,
    ends,
    lag_one,
    level,
    since,
    tamed,
    trailing_mean,
    widening,
)


def test_level_by_hand():
    found = level(np.array([1.0, 3.0, 1.0, 3.0]))
    assert found.mean == 2
    assert found.error == pytest.approx(np.sqrt(4 / 3) / 2)  # neighbours differ: nothing to widen
    assert pytest.approx(1.959964) == Z95
    assert found.interval == pytest.approx((2 - Z95 * found.error, 2 + Z95 * found.error))


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


def test_a_huge_value_drowns_its_own_windows_only():
    values = np.full(40, 0.5)
    values[7] = 1e30
    means = trailing_mean(values, 5)
    assert (means[3:8] > 1e29).all()
    np.testing.assert_array_equal(np.delete(means, np.arange(3, 8)), 0.5)
