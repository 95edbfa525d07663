"""Slowing down: fluctuations that grow and last longer, against surrogates."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import make, noise, rising

from advisor.runs.diagnosis.dynamical_instability import (
    RARE_RISE,
    dynamical_instability,
    find_slowing,
)


def slowing(seed, rows=400):
    """Autoregressive noise whose correlation goes from 0.1 to 0.97."""
    rng, level, out = np.random.default_rng(seed), 0.0, np.zeros(rows)
    for row in range(rows):
        level = (0.1 + 0.87 * row / rows) * level + 0.03 * rng.normal()
        out[row] = level
    return 0.6 + out


@pytest.mark.evidence
def test_it_is_found_more_often_than_by_chance_and_by_no_means_always():
    found = [find_slowing(slowing(seed)) for seed in range(60)]
    told = [one for one in found if one is not None]
    assert 10 <= len(told) <= 50
    assert all(
        one.chance <= RARE_RISE and min(one.variance, one.autocorrelation) > 0.5 for one in told
    )
    backwards = [find_slowing(slowing(seed)[::-1].copy()) for seed in range(60)]
    assert not any(backwards)


@pytest.mark.evidence
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
@pytest.mark.parametrize("trend", [np.full(200, 0.5), rising(200)])
def test_stationary_noise_says_nothing(correlation, trend):
    found = [find_slowing(trend + 0.05 * noise(s, 200, correlation)) for s in range(300)]
    assert sum(one is not None for one in found) <= 5


def test_growing_variance_alone_is_not_slowing():
    # A share that moves towards one half is sampled with more noise: no dynamics.
    def sampled(seed):
        share = rising(200, 0.02, 0.5, 0.5)
        return np.random.default_rng(seed).binomial(64, share) / 64

    assert sum(find_slowing(sampled(seed)) is not None for seed in range(200)) <= 6


@pytest.mark.parametrize("rows", [0, 1, 59])
def test_few_rows_say_nothing(rows):
    assert find_slowing(noise(1, rows) if rows else np.zeros(0)) is None
    assert find_slowing(np.full(100, 0.5)) is None


def test_the_card_tells_it_and_warns_of_nothing():
    seed = next(s for s in range(60) if find_slowing(slowing(s)) is not None)
    card = dynamical_instability(make(slowing(seed)))
    assert card.status == "INFO"
    assert any("variance and autocorrelation" in line for line in card.witnesses)
    assert card.change == ""


def test_only_what_came_before_a_fall_is_looked_at():
    # A fall is a burst of variance that lasts.
    reward = np.r_[0.8 + 0.02 * noise(1, 150), 0.05 + 0.02 * noise(2, 80)]
    card = dynamical_instability(make(reward))
    assert not any("autocorrelation" in line for line in card.witnesses)
