"""Cheaper, safer, faster, best piloted: each is what its name says."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from decisions import LEVEL, STEPS, again, decision
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.advice import CostModel
from advisor.advice.trade_offs import best_piloted, trade_offs

TIMED = CostModel(fixed=5.0, generated=0.1, trained=0.05, source="made up")


# Cheaper, safer, faster ------------------------------------------------------------------------


def goal_of(evaluate, planned):
    start, end = evaluate.forecaster.outcome(planned, [0, STEPS]).mean(axis=0)
    return start + 0.95 * (end - start)


def named_beside(evaluate, chosen, other, level):
    """What is named where one other configuration was tried."""
    parts = ("forecaster", "steps_to", "seconds_to", "prepare_curves", "cost")
    given = {name: getattr(evaluate, name) for name in parts}
    asked = SimpleNamespace(tried=[chosen, other], **given)
    goal = goal_of(evaluate, chosen.planned)
    return [one.name for one in trade_offs(asked, chosen, level, goal)]


@pytest.fixture(scope="module", params=range(6))
def weighed(request):
    """Everything on offer, a configuration that is advised, and what is named beside it."""
    evaluate, lattice = decision(
        made_up_posterior(seed=request.param, width=0.4, draws=100),
        cost=TIMED if request.param % 2 else CostModel(source="unknown"),
    )
    tried = [evaluate(settings) for settings in lattice]
    chosen = max((e for e in tried if e.is_feasible(LEVEL)), key=lambda e: e.value)
    goal = goal_of(evaluate, chosen.planned)
    # One that is both is named once.
    named = {
        name: other
        for other in trade_offs(evaluate, chosen, LEVEL, goal)
        for name in other.name.split(" and ")
    }
    return evaluate, tried, chosen, goal, named


@pytest.mark.parametrize(
    ("paid", "chance", "reward", "named"),
    [
        (79, 0.9, 0.0, {"cheaper"}),
        (81, 0.9, 0.0, set()),
        (79, 0.89, 0.0, set()),  # not stable enough
        (79, 0.9, -0.049, {"cheaper"}),
        (79, 0.9, -0.051, set()),
        (100, 0.931, 0.0, {"safer"}),
        (100, 0.929, 0.0, set()),
        (100, 0.931, -0.051, set()),
        (79, 0.931, 0.0, {"cheaper and safer"}),
    ],
)
def test_terms_of_a_trade_off(posterior, paid, chance, reward, named):
    # Beside one that costs 100 completions and is stable with 0.92; a twin of it but for these.
    evaluate, lattice = decision(posterior)
    chosen = evaluate(next(iter(lattice)))

    def twin(chance, paid, reward=0.0):
        stable = chosen.stability.model_copy(update={"probability": chance})
        cost = chosen.cost.model_copy(update={"completions": float(paid)})
        reward = chosen.reward + reward
        return replace(chosen, stability=stable, cost=cost, reward=reward)

    other, chosen = twin(chance, paid, reward), twin(0.92, 100)
    assert set(named_beside(evaluate, chosen, other, LEVEL)) == named


@pytest.mark.parametrize(("factor", "is_named"), [(0.79, True), (0.81, False)])
def test_terms_of_the_faster_one(factor, is_named):
    # The same curve at steps that take less time: half as many prompts, which do nothing here.
    still = made_up_posterior(moved={"rate.prompts_per_step": 0.0, "plateau_loss.batch": 0.0})
    evaluate, lattice = decision(still, cost=CostModel(fixed=0.0, generated=1.0, source="made up"))
    settings = next(s for s in lattice if s.learning_rate > 3e-4)
    chosen = evaluate(settings)
    less = settings.model_copy(update={"prompts_per_step": factor * settings.prompts_per_step})
    # Of the same reward, price and chance, so that time alone is weighed.
    other = replace(chosen, settings=less, planned=evaluate(less).planned)
    assert named_beside(evaluate, chosen, other, 0.0) == (["faster"] if is_named else [])


# The best pilot --------------------------------------------------------------------------------


def test_best_pilot_of_the_target_is_that_which_would_earn_most(posterior):
    evaluate, _ = decision(posterior)
    best = best_piloted(evaluate, posterior)
    own = [again(evaluate)(plan.completed) for plan in (PLANS[3], PLANS[4])]
    wanted = max(own, key=lambda e: e.reward * e.stability.probability)
    assert (best.reward, best.stability) == (wanted.reward, wanted.stability)


def test_best_pilot_of_a_new_model_is_any(posterior):
    evaluate, _ = decision(posterior)
    evaluate.forecaster.target = replace(evaluate.forecaster.target, model="another")
    fresh = again(evaluate)
    best = best_piloted(fresh, posterior)
    alive = [fresh(plan.completed) for plan in PLANS if plan.collapse is None]
    top = max(e.reward * e.stability.probability for e in alive)
    assert best.reward * best.stability.probability == top


def test_gentlest_pilot_stands_for_all_where_none_lived():
    plans = [Plan(9e-3, collapse=20), Plan(2e-2, collapse=9)]
    posterior = made_up_posterior(plans)
    evaluate, _ = decision(posterior)
    assert best_piloted(evaluate, posterior).settings.learning_rate == 9e-3
