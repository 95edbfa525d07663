"""Beyond what pilots support a run is off its curve, by what longer runs came to elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit
from simulated_runs import Plan, made_up_posterior, with_meta, with_priors

from advisor.forecast import SUPPORT, Forecaster, Target, final_reward
from advisor.model import AS_THE_CURVE, Extrapolation, load_priors

PLAN = Plan(3e-4)
TIMES = (2.0, 3.0, 10.0)
"""Lengths of a run over that of the longest pilot."""


@pytest.fixture(scope="module")
def posterior():
    return made_up_posterior([Plan(1e-4), PLAN, Plan(1e-3)], draws=1000)


def forecaster(posterior, gain):
    told = Extrapolation(gain=gain, groups=1, runs=1, source="Made up for this test.")
    run = posterior.meta.runs[1]
    told = with_priors(posterior, extrapolation=told)
    return Forecaster(told, Target(run.task, run.model, run.parameters))


def levels(posterior, gain):
    steps = [int(times * posterior.meta.longest) for times in TIMES]
    return forecaster(posterior, gain).scaled_reward(PLAN.completed, steps)


def test_log_odds_move_with_the_headroom_gained_and_only_beyond_support(posterior):
    curve, moved = levels(posterior, 0.0), levels(posterior, 0.8)
    assert np.array_equal(curve[:, :2], moved[:, :2])
    start = forecaster(posterior, 0.0).group.start
    gained = np.clip((curve[:, 2] - start) / (1 - start), 0, 1)
    assert np.ptp(gained) > 0.1
    shift = logit(moved[:, 2]) - logit(curve[:, 2])
    assert shift == pytest.approx(0.8 * np.log(TIMES[2] / SUPPORT) * gained, rel=1e-6, abs=1e-9)


def test_a_curve_does_not_break_where_support_ends(posterior):
    steps = np.array([1.0, 1.005, 1.01, 3.0, 3.03, 8.0]) * 1000 * SUPPORT
    long = with_meta(posterior, longest=1000.0)
    curve, moved = (forecaster(long, gain).scaled_reward(PLAN.completed, steps) for gain in (0, 1))
    start = forecaster(long, 0).group.start[:, None]
    gained = np.clip((curve - start) / (1 - start), 0, 1)
    shift = np.median((logit(moved) - logit(curve)) / gained, axis=0)
    slope = np.diff(shift) / np.diff(np.log(steps))
    assert slope[0] < slope[1] < 0.1
    assert slope[3] == pytest.approx(1.0, abs=0.05)
    assert shift[[3, 5]] == pytest.approx(np.log([3.0, 8.0]), rel=1e-6)


def test_a_run_that_does_not_move_stays_where_it_is(posterior):
    still = PLAN.completed.model_copy(update={"learning_rate": 1e-12})
    steps = [int(TIMES[2] * posterior.meta.longest)]
    curve, moved = (forecaster(posterior, gain).scaled_reward(still, steps) for gain in (0.0, 0.8))
    assert moved == pytest.approx(curve, abs=1e-3)


def test_a_long_run_at_a_low_rate_comes_no_further_than_its_pilots(posterior):
    """In steps it is beyond them; on the clock of its updates it is not."""
    slow = PLAN.completed.model_copy(update={"learning_rate": 1e-6})
    steps = [int(TIMES[2] * posterior.meta.longest)]
    assert steps[0] > 3 * SUPPORT * posterior.meta.longest
    assert forecaster(posterior, 0.8).beyond(slow, steps) == 0
    curve, kept = (forecaster(posterior, gain).scaled_reward(slow, steps) for gain in (0.0, 0.8))
    assert np.array_equal(curve, kept)
    rise = np.median(curve) - np.median(forecaster(posterior, 0.0).group.start)
    assert rise > 0.02  # it moves, so that the correction had something to move


def test_end_of_a_long_run_is_corrected_and_that_of_a_short_one_is_not(posterior):
    def end(gain, times):
        steps = int(times * posterior.meta.longest)
        return final_reward(forecaster(posterior, gain), PLAN.completed.planned_over(steps), steps)

    assert np.array_equal(end(0.8, 2.5), end(0.0, 2.5))
    assert np.median(end(0.8, 10)) > np.median(end(0.0, 10)) + 0.01


def test_which_presets_correct_long_runs():
    found = load_priors("small_models").extrapolation
    assert found.gain > 0
    assert found.groups >= 50
    assert found.times == 40
    for name in ("full_finetuning", "lora"):
        known = load_priors(name).extrapolation
        assert (known.gain, known.times) == (0, 12.5)
    for name in ("theory", "uninformative"):
        assert load_priors(name).extrapolation == AS_THE_CURVE
    assert AS_THE_CURVE.times == SUPPORT
