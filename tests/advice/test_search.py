"""The search finds what trying everything finds."""

from __future__ import annotations

import numpy as np
import pytest
from decisions import LEVEL, STEPS, again, decision, exhaustive, searched
from simulated_runs import made_up_posterior

from advisor.advice import AXES, Budget, Lattice, Objective

TOLERANCE = 0.01
"""Of the reward range: rewards nearer than this are called equal anyway. Of a price: its share."""


@pytest.fixture(scope="module", params=[1, 2, 3])
def landscape(request):
    evaluate, lattice = decision(made_up_posterior(seed=request.param, width=0.5))
    return evaluate, lattice, exhaustive(again(evaluate), lattice, LEVEL)


def best_of(landscape, seed, trials):
    evaluate, lattice, _ = landscape
    return searched(again(evaluate), lattice, seed, trials)[0]


@pytest.mark.evidence
@pytest.mark.parametrize("seed", range(5))
def test_search_finds_what_trying_everything_finds(landscape, seed):
    assert len(landscape[1]) > 300
    best, optimum = best_of(landscape, seed, 300), landscape[2]
    assert best.stability.least >= LEVEL
    assert optimum.reward - TOLERANCE <= best.reward <= optimum.reward


@pytest.mark.evidence
def test_search_check_rejects_too_few_trials(landscape):
    shortfalls = []
    for seed in range(5):
        evaluate, lattice, optimum = landscape
        fresh = again(evaluate)
        searched(fresh, lattice, seed, 15)
        feasible = [e.reward for e in fresh.tried[:15] if e.is_feasible(LEVEL)]
        shortfalls.append(optimum.reward - max(feasible, default=optimum.reward - 1))
    assert max(shortfalls) > TOLERANCE


@pytest.mark.evidence
def test_what_was_piloted_is_tried_whatever_the_sampler_draws(landscape):
    evaluate, lattice, _ = landscape
    fresh = again(evaluate)
    best, _ = searched(fresh, lattice, trials=1)
    tried = {e.settings: e for e in fresh.tried}
    offered = set(lattice)
    runs = fresh.forecaster.posterior.meta.runs
    piloted = {
        lattice.fixed.model_copy(update=run.settings.model_dump(include=set(AXES))) for run in runs
    }
    inside = piloted & offered
    assert inside
    assert inside <= set(tried)
    assert all(tried[one].value <= best.value for one in inside if tried[one].is_feasible(LEVEL))


@pytest.mark.evidence
def test_neighbours_of_the_best_are_tried_until_none_is_better(landscape):
    evaluate, lattice, _ = landscape
    fresh = again(evaluate)
    best, _ = searched(fresh, lattice, trials=15)
    tried = {e.settings for e in fresh.tried}
    for name, choices in lattice.axes.items():
        at = choices.index(getattr(best.settings, name))
        for other in choices[max(0, at - 1) : at + 2]:
            neighbour = best.settings.model_copy(update={name: other})
            assert neighbour in tried
            assert not fresh(neighbour).is_feasible(LEVEL) or fresh(neighbour).value <= best.value


def dearer(kind, quantile, goal, steps, width=0.5):
    """Worst share by which a search for a goal pays more than need be, over several seeds."""
    found = []
    for seed in (0, 3):
        evaluate, lattice = decision(
            made_up_posterior(seed=seed, width=width),
            objective=Objective(kind=kind, goal=goal, quantile=quantile),
            budget=Budget(steps=steps),
            goal=goal,
        )
        optimum = exhaustive(evaluate, lattice, LEVEL)
        found += [
            searched(again(evaluate), lattice, start)[0].value / optimum.value - 1
            for start in range(3)
        ]
    return max(found)


@pytest.mark.evidence
@pytest.mark.parametrize("quantile", [None, 0.1])
def test_search_for_the_fastest_finds_what_trying_everything_finds(quantile):
    assert dearer("fastest", quantile, 0.65, 1000) <= TOLERANCE


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("quantile", "steps"),
    [(None, 1000), (0.1, 1000), (0.1, STEPS)],
)
def test_search_for_the_cheapest_finds_what_trying_everything_finds(quantile, steps):
    # Within 180 steps one configuration in twenty reaches the goal as surely as asked.
    assert dearer("cheapest", quantile, 0.6 if steps == STEPS else 0.65, steps) <= TOLERANCE


@pytest.mark.evidence
@pytest.mark.parametrize("seed", range(3))
def test_small_lattice_is_tried_in_full(landscape, seed):
    evaluate, lattice, _ = landscape
    rates = lattice.axes["learning_rate"][seed::4]
    few = Lattice(tuple(point for point in lattice if point.learning_rate in rates))
    fresh = again(evaluate)
    best, nearest = searched(fresh, few, seed, trials=len(few))
    assert [e.settings for e in fresh.tried] == list(few)
    assert best == exhaustive(again(evaluate), few, LEVEL)
    assert nearest in fresh.tried
    # The control: one trial fewer, and it is searched.
    fewer = again(evaluate)
    searched(fewer, few, seed, trials=len(few) - 1)
    assert len(fewer.tried) < len(few)


@pytest.mark.evidence
def test_scattered_choices_are_tried_in_full(landscape):
    # Only the diagonal of a grid of 400 x 400 is on offer.
    evaluate, lattice, _ = landscape
    first = next(iter(lattice))
    diagonal = Lattice(
        tuple(
            first.model_copy(update={"learning_rate": float(rate), "group_size": 4 + at})
            for at, rate in enumerate(np.geomspace(1e-5, 1e-3, 400))
        )
    )
    fresh = again(evaluate)
    best, _ = searched(fresh, diagonal)
    assert [e.settings for e in fresh.tried] == list(diagonal)
    assert best == exhaustive(again(evaluate), diagonal, LEVEL)


@pytest.mark.evidence
def test_constraint_costs_reward(landscape):
    evaluate, lattice, optimum = landscape
    everything = again(evaluate)
    boldest = max(map(everything, lattice), key=lambda one: one.reward)
    assert boldest.reward > optimum.reward
    assert boldest.stability.least < LEVEL


@pytest.mark.evidence
def test_what_a_lost_run_costs_counts_below_the_line(landscape):
    """Without any level asked for, the highest reward of a run that lives is not what is taken."""
    evaluate, lattice, optimum = landscape
    everything = again(evaluate)
    boldest = max(map(everything, lattice), key=lambda one: one.reward)
    free = exhaustive(everything, lattice, 0.0)
    assert optimum.value <= free.value
    assert boldest.value < free.value
    assert free.stability.least > boldest.stability.least


@pytest.mark.evidence
def test_search_without_a_feasible_point_gives_the_safest():
    evaluate, lattice = decision(made_up_posterior(moved={"hazard.level": -3.0}))
    best, nearest = searched(evaluate, lattice, level=0.9999)
    assert best is None
    everything = again(evaluate)
    top = max(everything(settings).stability.least for settings in lattice)
    assert nearest.stability.least == pytest.approx(top, abs=0.01)


def test_search_says_how_far_it_is(posterior):
    evaluate, lattice = decision(posterior)
    said = []
    searched(evaluate, lattice, trials=60, progress=lambda *stage: said.append(stage))
    shares = [share for _, share, _ in said]
    assert shares[:3] == [0, 1 / 3, 2 / 3]
    assert set(shares[3:]) <= {1.0}, "past the end while the neighbours are tried"
    assert all(stage == "Searching configurations" for stage, _, _ in said)


@pytest.mark.evidence
def test_same_seed_same_search(landscape):
    evaluate, lattice, _ = landscape
    orders = []
    for seed in (4, 4, 5):
        fresh = again(evaluate)
        searched(fresh, lattice, seed, trials=60)
        orders.append([e.settings for e in fresh.tried])
    assert orders[0] == orders[1] != orders[2]
