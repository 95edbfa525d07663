"""The search finds what trying everything finds."""

from __future__ import annotations

import pytest
from decisions import LEVEL, again, decision, exhaustive, searched
from simulated_runs import made_up_posterior

from advisor.advice import AXES, Lattice

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
    assert best.stability.probability >= LEVEL
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
def test_what_a_lost_run_costs_counts_below_the_line(landscape):
    """Without any level asked for, the highest reward of a run that lives is not what is taken."""
    evaluate, lattice, optimum = landscape
    everything = again(evaluate)
    boldest = max(map(everything, lattice), key=lambda one: one.reward)
    free = exhaustive(everything, lattice, 0.0)
    assert optimum.value <= free.value
    assert boldest.value < free.value
    assert free.stability.probability > boldest.stability.probability
