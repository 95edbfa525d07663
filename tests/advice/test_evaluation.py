"""One configuration at a time: cached evaluations, steps of a curve, ties that the price breaks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from decisions import STEPS, again, decision
from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import Plan

from advisor.advice import Budget, Cost, Evaluation, Objective, curve_steps, stacked
from advisor.advice.answer import _cheapest_equal, limiting_factor
from advisor.advice.evaluate import moved_to, steps_to_share
from advisor.forecast import Stability, stabilities_and_draws


def test_configurations_are_evaluated_once_each_and_told_apart(posterior):
    evaluate, lattice = decision(posterior)
    settings = next(iter(lattice))
    assert evaluate(settings) is evaluate(settings.model_copy())
    assert len(evaluate.tried) == 1
    wider = evaluate(settings.model_copy(update={"prompts_per_step": 64.0}))
    assert wider.settings.prompts_per_step == 64
    assert wider.reward != evaluate(settings).reward
    assert len(evaluate.tried) == 2


def test_share_of_the_gain_worked_out_by_hand():
    curve, steps = np.array([0.2, 0.5, 0.7, 0.79, 0.8]), [0, 10, 20, 40, 80]
    assert steps_to_share(curve, steps, 0.5) == pytest.approx(10)
    # 0.77 lies 7/9 of the way from 0.7 to 0.79.
    assert steps_to_share(curve, steps, 0.95) == pytest.approx(20 + 20 * 7 / 9)
    assert steps_to_share(curve[::-1], steps, 0.95) == 80
    assert steps_to_share(np.full(5, 0.4), steps, 0.95) == 80


rising_curves = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12, unique=True).map(sorted)


@given(rising_curves, st.floats(0.0, 1.0))
def test_curve_has_made_the_share_where_it_is_said_to(curve, share):
    values, steps = np.array(curve), 7 * np.arange(len(curve))
    wanted = values[0] + share * (values[-1] - values[0])
    there = steps_to_share(values, steps, share)
    # Its inverse, where the curve is not too flat for floating point.
    assert np.interp(there, steps, values) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


# Equal rewards ---------------------------------------------------------------------------------


def option(group_size, reward, probability):
    """A run of 100 steps, paid in completions."""
    settings = Plan(group_size=group_size).completed
    same = dict.fromkeys(("probability", "low", "high", "by_model", "tolerance"), probability)
    chance = Stability(**same, refresh=1.0, fluctuation=1.0, error=0.0)
    price = Cost(steps=100, completions=1600.0 * group_size, tokens=None, gpu_hours=None)
    worth = np.full(4, reward)
    return Evaluation(settings, settings, reward, chance, price, reward, worth)


def asked(tried, objective=None, span=1.0, budget=None):
    return SimpleNamespace(
        tried=tried,
        budget=budget or Budget(steps=100),
        objective=objective or Objective(),
        forecaster=SimpleNamespace(outcome_range=span),
    )


def test_cheapest_wins_among_equal_rewards():
    best = option(64, 0.800, 0.95)
    tried = [
        best,
        option(32, 0.795, 0.95),
        option(16, 0.791, 0.92),
        option(16, 0.792, 0.94),
        option(8, 0.789, 0.99),  # loses more than a hundredth
        option(4, 0.799, 0.89),  # not stable enough
    ]
    assert _cheapest_equal(asked(tried), best, 0.9, 0.01) is tried[3]
    assert _cheapest_equal(asked([best]), best, 0.9, 0.01) is best
    # A hundredth of the reward range, whatever its units.
    wide = asked(tried, span=10.0)
    assert _cheapest_equal(wide, best, 0.9, 0.01) is tried[4]
    assert _cheapest_equal(asked(tried), best, 0.9, 0.02) is tried[4]
    # Of equal price, the higher worth: P(stable) counts in it already.
    twin, safer = option(16, 0.794, 0.94), option(16, 0.793, 0.99)
    assert _cheapest_equal(asked([*tried, twin, safer]), best, 0.9, 0.01) is twin


def test_nothing_is_equal_where_rewards_alone_count_or_a_price_is_sought():
    best = option(64, 0.800, 0.95)
    tried = [best, option(8, 0.7999, 0.95)]
    assert _cheapest_equal(asked(tried), best, 0.9, 0.01) is tried[1]
    assert _cheapest_equal(asked(tried), best, 0.9, 0.0) is best
    fastest = Objective(kind="fastest", goal=0.9)
    assert _cheapest_equal(asked(tried, fastest), best, 0.9, 0.01) is best


@pytest.mark.parametrize(
    ("known", "unstable", "kind"), [(0.9, 0.95, "stability"), (0.95, 0.9, "known")]
)
def test_an_answer_is_limited_by_what_would_give_most(known, unstable, kind):
    chosen, safe, risky = option(8, 0.8, 0.95), option(16, known, 0.95), option(32, unstable, 0.5)
    evaluate = asked([chosen, safe, risky])
    evaluate.goal = None
    meta = SimpleNamespace(priors=SimpleNamespace(known_optimum=object()))
    evaluate.forecaster.posterior = SimpleNamespace(meta=meta)
    limit = limiting_factor(evaluate, None, chosen, 0.9)
    assert limit.kind == kind
    assert limit.gain == pytest.approx(0.15)


def test_configurations_evaluated_together_have_the_numbers_of_each_alone(posterior):
    evaluate, lattice = decision(posterior)
    forecaster, offered = evaluate.forecaster, list(lattice)[::7]
    assert evaluate.compared(offered) == [again(evaluate)(one) for one in offered]
    assert evaluate.tried == []
    seen = 0
    for places, of, steps in stacked(offered, [STEPS] * len(offered), forecaster.size):
        lives = stabilities_and_draws(forecaster, of, steps)[1]
        curves = forecaster.scaled_reward(of, [1, steps])
        for place, alive, curve in zip(places, lives, curves, strict=True):
            np.testing.assert_array_equal(
                alive, stabilities_and_draws(forecaster, offered[place], steps)[1]
            )
            np.testing.assert_array_equal(
                curve, forecaster.scaled_reward(offered[place], [1, steps])
            )
            seen += 1
    assert seen == len(offered) > 50


def test_a_run_that_falls_stood_at_a_lower_reward_from_its_start_on(posterior):
    evaluate, lattice = decision(posterior)
    run = evaluate(next(iter(lattice)))
    evaluate._curves[run] = np.linspace(0.6, 0.5, curve_steps(run.cost.steps).size)
    assert evaluate.steps_to(run, 0.4) == 0
    assert evaluate.steps_to(run, 0.7) is None


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("ends", [(0.0, 0.0), (0.2, 0.6), (0.0, 1.0), (1.0, 1.0)])
def test_draws_are_moved_to_the_p_stable_that_is_printed(share, ends):
    lives = np.linspace(*ends, 50)
    moved = moved_to(lives[None], np.full((1, 1), share))[0]
    assert moved.mean() == pytest.approx(share, abs=1e-9)
    assert 0 <= moved.min() <= moved.max() <= 1 + 1e-12
    assert np.all(np.diff(moved) >= 0)
