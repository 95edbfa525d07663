"""Pareto-smoothed weights mean the same under every ArviZ."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.model import smoothed_weights


def test_weights_grow_with_the_ratio():
    ratios = 1.5 * np.random.default_rng(0).standard_normal(500)
    weights, k = smoothed_weights(ratios)
    assert weights.sum() == pytest.approx(1.0)
    assert k == pytest.approx(0.46, abs=0.03)
    # Signs differ between ArviZ 0.23 and 1.x: with the wrong one this correlation is negative.
    assert np.corrcoef(weights, np.exp(ratios))[0, 1] > 0.99


def test_a_heavy_tail_is_told_from_a_light_one():
    rng = np.random.default_rng(1)
    light = smoothed_weights(0.3 * rng.standard_normal(1000))[1]
    heavy = smoothed_weights(3.0 * rng.standard_cauchy(1000))[1]
    assert light < 0.5 < 0.7 < heavy


def test_equal_ratios_are_equal_weights():
    weights, k = smoothed_weights(np.full(50, -3.0))
    assert np.all(weights == 1 / 50)
    assert k == 0.0


def test_too_few_draws_are_not_trusted():
    weights, k = smoothed_weights(np.log(np.array([1.0, 2.0, 5.0])))
    np.testing.assert_allclose(weights, [0.125, 0.25, 0.625])
    assert k > 0.7
