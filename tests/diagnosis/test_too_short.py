"""Length of a log: rows, and whether the reward moved beyond its noise."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import make, noise, rate, rising

from advisor.diagnosis import JUDGES, diagnose

too_short = JUDGES["too_short"]


@pytest.mark.parametrize("rows", [0, 1, 2, 9])
def test_few_rows_warn(rows):
    card = too_short(make(rising(rows) if rows else np.zeros(0)))
    assert (card.status, card.number) == ("WARNING", rows)
    assert card.headline.startswith(f"{rows} rows")


@pytest.mark.parametrize("value", [0.0, -7.3, 1.0])
def test_a_constant_did_not_move(value):
    run = make(np.full(300, value))
    card = too_short(run)
    assert (card.status, card.number) == ("INFO", pytest.approx(0.0, abs=1e-9))
    # The rate is not to blame, and no card says so.
    assert not any("threefold" in one.change for one in diagnose(run).cards)


def test_a_run_that_surely_gained_nothing_learned_nothing():
    # Groups with spread, as in a loop that gives advantages to the wrong completions.
    flat = make(0.03 + 0.01 * noise(1, 90))
    card = too_short(flat)
    assert (card.status, card.title) == ("WARNING", "Nothing learned")
    assert card.headline.startswith("90 rows and no gain: 0.0318 at the start")
    assert diagnose(flat).headline.startswith("Nothing learned: 90 rows and no gain")
    # Noise that hides a gain, and a level with little left to gain, say nothing of the kind.
    for reward in (0.3 + 0.3 * noise(1, 90), 0.93 + 0.01 * noise(1, 90)):
        assert too_short(make(reward)).status == "INFO"
        assert diagnose(make(reward)).headline == "no change beyond noise so far"


def test_a_run_whose_held_out_reward_rises_has_learned():
    """Control: held-out rewards that stand still, too."""
    flat, step = make(0.03 + 0.01 * noise(1, 90)), np.arange(10.0, 91.0, 10)
    for gain, kind in ((0.3, "flat"), (0.0, "learned_nothing")):
        held = {"eval_step": step, "eval_reward": 0.1 + gain * step / 90 + 0.01 * noise(2, 9)}
        assert too_short(flat.model_copy(update=held)).kind == kind


def test_noise_seldom_moves():
    # At 95 %, one in twenty does; short ends of correlated rows cost a little more.
    assert rate(lambda s: too_short(make(noise(s, 200))).status == "PASS") <= 0.1
    assert rate(lambda s: too_short(make(noise(s, 200, 0.6))).status == "PASS") <= 0.15


def test_a_rise_in_the_same_noise_is_seen():
    moved = [too_short(make(2 * rising(200, 0, 2) + noise(s, 200))).status for s in range(60)]
    assert moved.count("PASS") >= 57


def test_a_rise_within_the_first_fifth_is_no_noise():
    rises = 0.04 + 0.8 * (1 - np.exp(-np.arange(66) / 6)) + 0.02 * noise(3, 66)
    card = too_short(make(rises))
    assert (card.kind, card.status) == ("moved", "PASS")
    still = np.random.default_rng(1).normal(0.5, 0.1, (200, 66))
    assert np.mean([too_short(make(one)).kind == "moved" for one in still]) < 0.1
