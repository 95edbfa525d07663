"""Coupling: slopes with errors in both series, over a sliding window, with intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import make, noise

from advisor.runs.diagnosis.reward_hacking import couplings, reward_hacking

TRAIN = np.linspace(0.2, 0.8, 200)


def run_with(slope, seed=5, size=0.01):
    held_out = 0.3 + slope * TRAIN[4::10] + size * noise(seed, 20)
    run = make(TRAIN + size * noise(seed + 1000, 200), evals=held_out)
    return run.with_updates(eval_step=np.arange(5.0, 200, 10))


@pytest.mark.parametrize("slope", [0.5, 1.0, -2.0])
def test_it_is_the_slope_with_errors_in_both(slope):
    found = couplings(run_with(slope, size=0.002))
    assert len(found) == 11
    assert (found[0].first_step, found[0].last_step) == (5, 95)
    assert found[-1].last_step == 195
    for one in found:
        assert one.slope == pytest.approx(slope, rel=0.1)
        assert one.interval[0] < one.slope < one.interval[1]


@pytest.mark.parametrize("slope", [0.0, 0.5, -1.0])
def test_its_interval_holds_as_often_as_it_says(slope):
    found = [couplings(run_with(slope, seed, 0.03))[-1].interval for seed in range(300)]
    held = [low <= slope <= high for low, high in filter(None, found)]
    assert len(held) >= 250
    assert 0.90 <= np.mean(held) <= 0.985
    # Another slope lies outside in most.
    other = [low <= slope + 1 <= high for low, high in filter(None, found)]
    assert np.mean(other) <= 0.5


def test_where_nothing_moves_there_is_none():
    held_out = 0.3 + TRAIN[4::10]
    assert couplings(make(np.ones(200), evals=held_out)) == []
    assert couplings(make(TRAIN, evals=np.ones(20))) == []
    assert couplings(make(TRAIN, evals=held_out[:4])) == []
    assert couplings(make(np.full(200, np.nan), evals=held_out)) == []


@pytest.mark.parametrize("row", [40, 60, 90])
def test_a_gain_over_a_gain_of_nothing_is_no_number(row):
    run = make(np.minimum(TRAIN, TRAIN[row]), evals=0.3 + TRAIN[4::10])
    assert abs(couplings(run)[-1].slope) > 1e15
    found = reward_hacking(run)
    assert (found.number, found.interval, found.unit) == (None, None, "")
    assert any("gained nothing beyond its noise" in line for line in found.unknown)
    moved = reward_hacking(run_with(0.5))
    assert moved.number == pytest.approx(0.5, rel=0.2)
    assert not any("gained nothing" in line for line in moved.unknown)


def test_noise_alone_bounds_no_slope_or_a_wide_one():
    found = [
        couplings(make(0.5 + 0.1 * noise(seed, 200), evals=0.5 + 0.1 * noise(seed + 500, 20)))[-1]
        for seed in range(100)
    ]
    told = [one for one in found if one.interval and one.interval[0] * one.interval[1] > 0]
    assert len(told) <= 12
