"""The one interval, and a band of it along a run."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.forecast import Interval, band_of, central, interval_of


def test_interval_is_mean_median_and_central_part():
    found = interval_of(np.arange(101.0) ** 2)
    assert (found.low, found.median, found.high) == pytest.approx((100, 2500, 8100))
    assert found.mean == pytest.approx(np.mean(np.arange(101.0) ** 2))
    assert found.probability == 0.8


def test_interval_is_written_to_so_many_digits():
    found = Interval(mean=0.05, median=0.0456, low=0.0123, high=0.1)
    assert found.written(2) == "0.046 [0.012, 0.1]"


def test_band_is_the_interval_of_every_step():
    draws = np.random.default_rng(0).gamma(2.0, size=(500, 3))
    band = band_of(np.array([1.0, 5.0, 9.0]), draws)
    assert band.step == (1, 5, 9)
    for at in range(3):
        own = interval_of(draws[:, at])
        told = (band.mean[at], band.low[at], band.high[at])
        assert told == pytest.approx((own.mean, own.low, own.high))
    np.testing.assert_array_equal(central(draws)[[0, 2]], [band.low, band.high])
