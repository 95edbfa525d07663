"""What is maximised: reward, price of a goal, time to a share of the gain, and under which risk."""

from __future__ import annotations

import numpy as np
import pytest
from decisions import LEVEL, STEPS, decision
from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import made_up_posterior

from advisor.advice import Budget, CostModel, Objective, Request, Search, advise, curve_steps
from advisor.errors import InputError
from advisor.forecast import stability

LONG = 400
"""Steps in which most configurations reach the goal."""

TIMED = CostModel(fixed=5.0, generated=0.1, trained=0.05, gpus=8, source="made up")


# Goals -----------------------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[("cheapest", None), ("cheapest", 0.1), ("fastest", None), ("fastest", 0.25)],
    ids=lambda asked: f"{asked[0]}-{asked[1]}",
)
def goal(request):
    """Every configuration on offer, evaluated for a reward of 0.65 within 400 steps."""
    kind, quantile = request.param
    evaluate, lattice = decision(
        made_up_posterior(seed=2, width=0.5),
        objective=Objective(kind=kind, goal=0.65, quantile=quantile),
        budget=Budget(steps=LONG),
        cost=TIMED,
        goal=0.65,
        learning_rates=(3e-5, 1e-4, 2e-4, 4e-4, 8e-4),
        group_sizes=(4, 16, 64),
    )
    for settings in lattice:
        evaluate(settings)
    return evaluate


def reached(evaluate, found, steps):
    """Share of the draws at the goal by each of some steps."""
    planned = found.planned
    return (evaluate.forecaster.outcome(planned, steps) >= evaluate.goal).mean(axis=0)


def test_goal_is_reached_with_the_stated_confidence_at_the_stated_step(goal):
    confidence = goal.objective.confidence
    within = [e for e in goal.tried if e.value > -np.inf]
    assert len(within) > 20
    steps = curve_steps(LONG)
    for found in within:
        by_then = reached(goal, found, [found.cost.steps])[0]
        # Between two steps at which the curve is asked, the share is interpolated.
        draws = len(goal.forecaster.population["log_misfit"])
        assert by_then >= confidence - np.sqrt(confidence * (1 - confidence) / draws)
        # The last batch of rollouts is used up.
        before = steps[steps <= found.cost.steps - found.settings.refresh_interval]
        assert np.all(reached(goal, found, before) < confidence)


def test_goal_is_out_of_reach_only_where_no_step_reaches_it(goal):
    without = [e for e in goal.tried if e.value == -np.inf]
    assert len(without) > 10
    for found in without:
        assert np.all(reached(goal, found, np.arange(0, LONG + 1, 3)) < goal.objective.confidence)
        assert not found.is_feasible(0.01)
        assert found.cost.steps == LONG


def test_price_or_time_of_a_goal_is_what_is_minimised(goal):
    for found in goal.tried:
        settings, steps = found.settings, found.cost.steps
        batch = settings.prompts_per_step * settings.group_size
        seconds = steps * (5 + 0.1 * batch / settings.epochs_per_refresh + 0.05 * batch)
        assert found.cost.gpu_hours == pytest.approx(8 * seconds / 3600)
        if found.value > -np.inf:
            cheapest = goal.objective.kind == "cheapest"
            assert -found.value == pytest.approx(8 * seconds / 3600 if cheapest else seconds)
        assert found.stability == stability(goal.forecaster, goal(settings).planned, steps)


def by_brute_force(evaluate):
    """Least price of 0.65 at P(stable) 0.9, step by step, without interpolation."""
    prices = {}
    for found in evaluate.tried:
        every = np.arange(1, LONG + 1)
        enough = reached(evaluate, found, every) >= evaluate.objective.confidence
        if not enough.any():
            continue
        steps = int(every[np.argmax(enough)])
        chance = stability(evaluate.forecaster, found.planned, steps)
        if chance.probability >= LEVEL:
            price = TIMED(found.settings, steps)
            seconds = price.gpu_hours * 3600 / TIMED.gpus
            prices[found.settings] = (
                price.gpu_hours if evaluate.objective.kind == "cheapest" else seconds
            )
    return prices


@pytest.mark.evidence
def test_best_for_a_goal_is_best_by_brute_force(goal):
    prices = by_brute_force(goal)
    best = max((e for e in goal.tried if e.is_feasible(LEVEL)), key=lambda e: e.value)
    least = min(prices.values())
    # Interpolated steps are off by less than the gap in which they lie.
    assert prices[best.settings] <= 1.03 * least
    assert -best.value == pytest.approx(least, rel=0.07)


@pytest.mark.evidence
def test_advice_for_a_goal_is_the_cheapest_that_reaches_it(posterior):
    asked = Request(to_reward=0.7).objective
    # More trials than configurations: all are tried.
    found = advise(posterior, to_reward=0.7, trials=1000, weigh_pilots=False)
    assert found.kind == "recommendation"
    assert found.stability.probability >= LEVEL
    assert found.steps == found.cost.steps < STEPS
    assert found.settings.planned_steps == STEPS
    evaluate, lattice = decision(posterior, objective=asked, goal=0.7)
    feasible = [e for e in map(evaluate, lattice) if e.is_feasible(LEVEL)]
    assert found.cost.paid == min(e.cost.paid for e in feasible)
    # Two thirds of the same reward are to be had for less, a higher one for more.
    less, more = (
        advise(
            posterior,
            to_reward=other,
            trials=1000,
            weigh_pilots=False,
        ).cost.paid
        for other in (0.6, 0.75)
    )
    assert less < found.cost.paid < more


def test_goal_below_the_start_or_above_the_ceiling_is_refused(posterior):
    for wanted in (-1.0, 0.0, 0.1, 1.0, 3.0, float("nan")):
        with pytest.raises(InputError, match="is no goal: the policy starts") as caught:
            advise(posterior, to_reward=wanted)
        assert caught.value.argument == "to_reward"


# Risk ------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=50), st.floats(0.01, 0.5))
def test_value_is_the_mean_or_the_quantile(draws, quantile):
    values = np.array(draws)
    assert Objective().of(values) == pytest.approx(values.mean())
    judged = Objective(quantile=quantile).of(values)
    # Of n draws, the gaps between them are shared out: so many lie below, the rest above.
    gaps = len(draws) - 1
    assert np.sum(values < judged - 1e-9) <= np.ceil(quantile * gaps)
    assert np.sum(values > judged + 1e-9) <= np.ceil((1 - quantile) * gaps)
    assert Objective(quantile=quantile).confidence == 1 - quantile
    assert Objective().confidence == 0.5


# Refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "problem", "key"),
    [
        ({"to_reward": 0.7, "to_share": 0.9}, "two were given", "to_reward, to_share"),
        ({"to_share": 1.0}, "cannot be", "to_share"),
        ({"to_share": 1.5}, "cannot be", "to_share"),
        ({"to_share": 0.0}, "cannot be", "to_share"),
        ({"to_share": float("nan")}, "cannot be", "to_share"),
        ({"risk": 0.0}, "cannot be", "risk"),
        ({"risk": 0.6}, "cannot be", "risk"),
        ({"risk": float("nan")}, "cannot be", "risk"),
    ],
)
def test_objective_that_contradicts_itself_is_refused(posterior, asked, problem, key):
    for refuse in (lambda: Request(**asked), lambda: advise(posterior, **asked)):
        with pytest.raises(InputError, match=problem) as caught:
            refuse()
        assert caught.value.argument == key


def test_requests_make_objectives():
    assert Request().objective == Objective()
    assert Request(to_reward=0.7, risk=0.2).objective == Objective(
        kind="cheapest", goal=0.7, quantile=0.2
    )
    assert Request(to_share=0.9).objective == Objective(kind="fastest", goal=0.9)


@pytest.mark.parametrize("kind", [Request, Search])
def test_unknown_and_mistyped_arguments_are_refused(kind):
    with pytest.raises(InputError, match="there is no argument 'stepz'") as caught:
        kind(stepz=3)
    assert caught.value.argument == "stepz"
    name = "steps" if kind is Request else "trials"
    with pytest.raises(InputError, match="valid integer") as caught:
        kind(**{name: "many"})
    assert caught.value.argument == name
