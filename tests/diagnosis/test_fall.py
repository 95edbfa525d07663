"""A fall: its levels, its onset, and how often noise alone makes one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from made_runs import COLOURS, FEW, MOST_FALSE, falling, noise, rate, rising

from advisor.diagnosis import find_collapse, find_final_fall
from advisor.diagnosis.levels import Fall, find_fall

SURE = 4.0


def steps(rows, every=1):
    return np.arange(1.0, rows + 1) * every


def judge(reward, floor=0.0, every=1):
    reward = np.asarray(reward, dtype=float)
    return find_final_fall(steps(reward.size, every), reward, floor)


def test_fall_worked_out_by_hand():
    fall = find_fall(steps(40, 10), np.array([0.8] * 20 + [0.5] + [0.2] * 19))
    assert fall.onset_step == 210
    assert (fall.before, fall.after) == pytest.approx((0.8, 0.2))
    assert fall.z > 2 * SURE


def test_standard_errors_are_those_of_student():
    fall = Fall(1, before=1.0, after=0.0, error=0.1, freedom=np.inf)
    assert fall.z == pytest.approx(10)
    # Ten standard errors with four degrees of freedom are as rare as 3.4 of a normal variable.
    assert fall._replace(freedom=4).z == pytest.approx(3.4, abs=0.1)
    assert fall._replace(before=0.0, after=1.0).z == pytest.approx(-10)
    assert fall._replace(error=0.0).z == 0.0


@pytest.mark.parametrize("length", [1, 5, 12])
@pytest.mark.parametrize("rows", [40, 100, 300])
def test_onset_is_found(rows, length):
    def is_close(seed):
        onset = int(np.random.default_rng(seed).integers(rows // 3, rows - 10 - length))
        verdict, fall = judge(falling(rows, onset, length=length) + 0.05 * noise(seed, rows))
        return verdict.unstable and abs(fall.onset_step - (onset + 1)) <= 2 + length / 3

    assert rate(is_close, range(30)) >= 0.9


def test_a_run_lost_and_regained_falls_from_its_last_good_stretch():
    reward = np.concatenate([falling(30, 20), np.full(30, 0.8), np.full(15, 0.05)])
    verdict, fall = judge(reward + 0.03 * noise(2, 75))
    assert verdict.unstable
    assert 59 <= fall.onset_step <= 61


@FEW
@given(
    reward=arrays(float, st.integers(10, 120), elements=st.floats(-10, 10)),
    every=st.sampled_from([1, 5, 1000]),
    floor=st.sampled_from([0.0, -10.0, 5.0]),
)
def test_an_onset_lies_inside_the_run(reward, every, floor):
    verdict, fall = judge(reward, floor, every)
    assert every <= fall.onset_step <= reward.size * every
    assert np.isfinite([fall.before, fall.after, fall.error, fall.z]).all()
    if verdict.unstable:
        assert every <= verdict.onset_step <= reward.size * every
        assert fall.before > fall.after


# What noise does -------------------------------------------------------------------------------


def flat(seed, rows, correlation, size):
    return np.maximum(0.0, 0.3 + size * noise(seed, rows, correlation))


@pytest.mark.parametrize("rows", [40, 100])
@pytest.mark.parametrize("colour", COLOURS)
def test_noise_is_no_collapse(colour, rows):
    assert rate(lambda s: judge(flat(s, rows, COLOURS[colour], 0.1))[0].unstable) <= MOST_FALSE


def test_a_slow_rise_is_no_collapse():
    noisy = [rising(100, 0.2, 0.5) + 0.1 * noise(seed, 100, 0.6) for seed in range(200)]
    assert np.mean([judge(np.maximum(0, reward))[0].unstable for reward in noisy]) <= MOST_FALSE


def test_the_definition_alone_would_fail_that_check():
    def is_low(seed):
        return find_collapse(steps(100), flat(seed, 100, 0.6, 0.1), 0.0).unstable

    assert rate(is_low) > 0.1


@pytest.mark.parametrize("colour", COLOURS)
def test_a_collapse_in_the_same_noise_is_found(colour):
    def is_found(seed):
        onset = int(np.random.default_rng(seed).integers(30, 80))
        reward = falling(100, onset, 0.8, 0.1) + 0.1 * noise(seed, 100, COLOURS[colour])
        return judge(np.maximum(0, reward))[0].unstable

    assert rate(is_found, range(60)) >= 0.95


def test_what_falls_dead_needs_no_small_noise():
    # Dips of slow noise, and then nothing any more: no row before lay so low.
    def is_found(seed, dead_before=0):
        reward = np.maximum(0.2, 0.75 + 0.2 * noise(seed, 40, 0.7))
        reward[31:] = np.abs(0.01 * noise(seed + 1, 9))
        reward[10 : 10 + dead_before] = 0.0
        return judge(reward)[0].unstable

    found = rate(is_found, range(60))
    assert found >= 0.75
    # Where it lay so low before, the last time may be another dip.
    assert rate(lambda seed: is_found(seed, 3), range(60)) < found / 2


@pytest.mark.parametrize("top", [12, 30])
@pytest.mark.parametrize("start", [0.0, 0.02])
def test_a_run_that_began_at_nothing_may_fall_to_nothing(start, top):
    # A steep rise fits no level; what it leaves over is no noise.
    climb = np.concatenate([np.full(5, start), np.linspace(start, 0.8, top), np.zeros(25)])
    verdict, fall = judge(climb)
    assert verdict.unstable
    assert fall.onset_step == pytest.approx(top + 6, abs=3)
