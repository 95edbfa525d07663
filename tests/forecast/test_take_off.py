"""An upper tail where runs that stood so have risen, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.forecast import analogues, take_off
from advisor.model import load_priors

RULE = load_priors("theory").take_off
BOUNDS = (0.0, 1.0)
RISE = 0.25
ENDS = np.linspace(0.05, 0.25, 1000)


def seen_of(level=0.1, gain=0.05, end=1000.0, rows=100):
    rng = np.random.default_rng(1)
    reward = level + gain * (np.linspace(0, 1, rows) - 1) + 0.01 * rng.standard_normal(rows)
    return analogues.describe(
        np.arange(rows) + 1.0, reward, end, analogues.RunKind(True, 1.5e9, False, 1e-6)
    )


def share_of_rises(ends, seen):
    return float(np.mean(ends > seen.level + RISE))


def test_a_forecast_that_knows_of_no_rise_is_given_some():
    seen = seen_of()
    tailed = take_off.with_take_off(ENDS, seen, BOUNDS, RULE)
    odds = float(
        np.array([getattr(RULE, name) for name in take_off.TERMS])
        @ take_off.take_off_terms(seen, BOUNDS)
    )
    wanted = RULE.trust / (1 + np.exp(-odds))
    assert share_of_rises(tailed, seen) == pytest.approx(wanted, abs=0.002)
    assert tailed.size == ENDS.size
    assert np.all(np.diff(tailed) >= 0)
    assert tailed.max() <= 1
    assert np.median(tailed) - np.median(ENDS) < 0.03


def test_one_that_says_enough_or_a_run_near_the_ceiling_is_left_as_it_is():
    rising = np.linspace(0.1, 0.9, 1000)
    np.testing.assert_array_equal(take_off.with_take_off(rising, seen_of(), BOUNDS, RULE), rising)
    high = np.linspace(0.85, 0.95, 1000)
    np.testing.assert_array_equal(
        take_off.with_take_off(high, seen_of(level=0.9), BOUNDS, RULE), high
    )
    doubting = RULE.model_copy(update={"trust": 0.0})
    np.testing.assert_array_equal(take_off.with_take_off(ENDS, seen_of(), BOUNDS, doubting), ENDS)


def test_more_is_expected_of_a_run_that_rises_and_has_far_to_go():
    def tail(**how):
        seen = seen_of(**how)
        return share_of_rises(
            take_off.with_take_off(ENDS - 0.1 + seen.level, seen, BOUNDS, RULE), seen
        )

    assert tail(gain=0.05) > tail(gain=-0.05)
    assert tail(end=1000) > tail(end=150)
    assert tail(level=0.1) > tail(level=0.6)


def test_the_scale_of_a_reward_does_not_matter():
    seen = seen_of()
    reward = analogues.describe(
        np.arange(100) + 1.0, 10 * np.linspace(0.05, 0.1, 100), 1e3, analogues.RunKind(False)
    )
    plain = analogues.describe(
        np.arange(100) + 1.0, np.linspace(0.05, 0.1, 100), 1e3, analogues.RunKind(False)
    )
    ends = take_off.with_take_off(10 * ENDS, reward, (0.0, 10.0), RULE)
    np.testing.assert_allclose(ends, 10 * take_off.with_take_off(ENDS, plain, BOUNDS, RULE))
    assert not np.allclose(ends, 10 * take_off.with_take_off(ENDS, seen, BOUNDS, RULE))
