"""Growth of log-odds: its curve by hand, what it learns from siblings, and its weight in a pool."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.forecast import RewardRows, grown, growth
from advisor.model import load_priors

LAW = load_priors("full_finetuning").growth
BOUNDS = (0.0, 1.0)


SPEED = 0.1


def s_shape(steps, speed=SPEED, start=-3.0, plateau=0.9):
    """The law by small Euler steps, apart from the code that is tested."""
    odds, shares, taught = start, [], growth.teaching(8)
    for step in range(1, int(max(steps)) + 1):
        for _ in range(10):
            share = 1 / (1 + np.exp(-odds))
            odds += 0.1 * speed * np.interp(odds, growth.ODDS, taught) * (1 - share / plateau)
        if step in steps:
            shares.append(1 / (1 + np.exp(-odds)))
    return np.array(shares)


def rows(last, *, noise=0.02, seed=0, **law):
    steps = np.arange(1, last + 1)
    shares = s_shape(set(steps.tolist()), **law)
    shares = shares + noise * np.random.default_rng(seed).standard_normal(last)
    return RewardRows.of(steps, shares, BOUNDS, 8)


def test_all_groups_teach_at_a_half_and_few_at_the_ends():
    taught = growth.teaching(8)
    assert taught[growth.ODDS.size // 2] == 1 == taught.max()
    assert taught[0] < 0.02
    np.testing.assert_allclose(taught, taught[::-1], rtol=1e-6)
    assert (growth.teaching(32) >= taught - 1e-9)[: growth.ODDS.size // 2].all()


def test_the_path_is_that_of_small_steps():
    times, odds = growth.path(
        np.array([-3.0, np.log(SPEED), np.log(9.0)]), 200.0, growth.teaching(8)
    )
    by_hand = s_shape({50, 100, 150, 200})
    there = np.interp([50, 100, 150, 200], times, 1 / (1 + np.exp(-odds)))
    np.testing.assert_allclose(there, by_hand, atol=0.01)
    assert by_hand[0] < 0.2 < 0.8 < by_hand[-1] < 0.9


def test_a_late_rise_is_foretold_and_its_width_holds():
    """Controls: a run that stays flat, and the reward's own units."""
    came = s_shape({300})[0]
    seen = rows(55)
    assert np.mean(seen.share[-10:]) < 0.25
    draws = grown(seen, 300, (), LAW, np.random.default_rng(0))
    low, middle, high = np.quantile(draws, [0.1, 0.5, 0.9])
    assert low < came < high
    assert middle > np.mean(seen.share[-10:]) + 0.2
    flat = RewardRows.of(np.arange(1, 91), 0.3 + 0.02 * np.sin(np.arange(90)), BOUNDS, 8)
    level = grown(flat, 300, (), LAW, np.random.default_rng(0))
    assert abs(np.median(level) - 0.3) < 0.15
    scaled = RewardRows.of(np.array(seen.step), -2 + 4 * np.array(seen.share), (-2.0, 2.0), 8)
    np.testing.assert_allclose(scaled.share, seen.share, atol=1e-9)


def test_siblings_tell_the_speed_before_the_run_has_shown_it():
    """Control: slow siblings."""
    seen = rows(20, noise=0.01)
    fast = [rows(300, seed=seed) for seed in (1, 2)]
    slow = [rows(300, seed=seed, speed=0.004) for seed in (1, 2)]
    ends = [
        np.quantile(grown(seen, 300, of, LAW, np.random.default_rng(0)), [0.1, 0.5, 0.9])
        for of in ((), fast, slow)
    ]
    came = s_shape({300})[0]
    assert np.ptp(ends[1]) < np.ptp(ends[0])
    assert abs(ends[1][1] - came) < abs(ends[0][1] - came)
    assert ends[2][1] < ends[1][1] - 0.2


def test_a_fit_finds_the_speed_of_a_whole_run():
    prior = (LAW.log_speed, LAW.plateau), (LAW.log_speed_spread, LAW.plateau_spread)
    (_, log_speed, plateau), root = growth.fitted(rows(300), *prior)
    assert log_speed == pytest.approx(np.log(SPEED), abs=0.3)
    assert 1 / (1 + np.exp(-plateau)) == pytest.approx(0.9, abs=0.04)
    assert (np.diag(root) > 0).all()
