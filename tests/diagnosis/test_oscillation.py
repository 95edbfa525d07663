"""Oscillation: a swing is found with its period, and noise of any colour has none."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import COLOURS, noise, rate, rising

from advisor.runs.diagnosis import dynamical_instability as early_signs
from advisor.runs.diagnosis.dynamical_instability import FEWEST_ROWS, find_oscillation


def search(reward, step=None):
    reward = np.asarray(reward, dtype=float)
    return find_oscillation(np.arange(1.0, reward.size + 1) if step is None else step, reward)


def swing(rows, period, size=0.2):
    return size * np.sin(2 * np.pi * np.arange(rows) / period)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize(("rows", "period"), [(60, 6.0), (200, 11.0), (200, 35.0)])
def test_a_swing_is_found_with_its_period(colour, rows, period):
    def is_found(seed):
        found = search(0.5 + swing(rows, period) + 0.05 * noise(seed, rows, COLOURS[colour]))
        return found is not None and found.period == pytest.approx(period, rel=0.15)

    assert rate(is_found, range(40)) >= 0.95


@pytest.mark.parametrize("rows", [40, 60, 200])
@pytest.mark.parametrize("colour", COLOURS)
def test_noise_has_no_swing(colour, rows):
    # The old rule, a peak over the median, fired in 2 % of 40 white rows.
    assert rate(lambda seed: search(noise(seed, rows, COLOURS[colour]))) <= 0.005


@pytest.mark.parametrize("rows", [40, 200])
def test_the_chance_is_what_it_says(rows, monkeypatch):
    monkeypatch.setattr(early_signs, "RARE", 0.1)
    # Not never: the check above can fail. Taking off the trend costs the lowest frequencies.
    assert 0.02 <= rate(lambda seed: search(noise(seed, rows))) <= 0.15


def test_a_slow_rise_is_no_swing():
    assert rate(lambda seed: search(rising(100) + 0.02 * noise(seed, 100))) <= 0.01
    assert search(rising(100)) is None
    assert search(np.linspace(0, 1, 100)) is None


def test_missing_rows_and_units():
    clean = 0.5 + swing(120, 8) + 0.03 * noise(3, 120)
    plain = search(clean)
    assert search(clean, 10.0 * np.arange(120)).period == pytest.approx(10 * plain.period)
    # What is scaled and moved swings the same.
    moved = search(1e6 * clean - 3e5)
    assert (moved.period, moved.chance) == pytest.approx((plain.period, plain.chance), rel=1e-6)
    holes = np.insert(clean, [5, 50], np.nan)
    step = np.insert(np.arange(120.0), [5, 50], [4.5, 49.5])
    assert search(holes, step) == plain


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e99])
def test_a_constant_has_no_swing(value):
    assert search(np.full(80, value)) is None


def test_rounding_has_no_swing():
    assert search(1.0 + swing(80, 8, 1e-12)) is None
    assert search(1.0 + swing(80, 8, 1e-6)) is not None


def test_a_pure_swing_is_found():
    assert search(swing(200, 8)).period == pytest.approx(8)


def test_too_few_rows():
    assert search(swing(FEWEST_ROWS - 1, 5)) is None
    assert search(swing(FEWEST_ROWS, 5)) is not None
