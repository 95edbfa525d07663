"""What is known before any pilot counts, and a language model keeps what was piloted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from decisions import changed, utilities
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.advice import Request, Search, advise, trade_offs
from advisor.advice.answer import p_better, prepare, searched
from advisor.advice.trade_offs import best_piloted
from advisor.common import Kind, kinds, silent
from advisor.errors import InputError
from advisor.forecast import Forecaster, Target
from advisor.model import KnownOptimum, load_priors

OWN = PLANS[1].completed


PENALTY = load_priors("theory").decision.loss_per_decade


def known(projects=1, **settings):
    return KnownOptimum(projects=projects, source="stated by a test", **settings)


def test_distance_costs_by_its_square_and_by_how_many_projects_tell():
    at = known(10**6, learning_rate=OWN.learning_rate)
    far = changed(OWN, learning_rate=OWN.learning_rate * 100)
    near = changed(OWN, learning_rate=OWN.learning_rate / 10)
    assert at.squared_decades(OWN) == 0
    assert at.squared_decades(near) == pytest.approx(1, rel=1e-5)
    assert at.squared_decades(far) == pytest.approx(4, rel=1e-5)
    once = known(1, learning_rate=OWN.learning_rate)
    assert once.squared_decades(near) == pytest.approx(0.5)
    both = known(1, learning_rate=OWN.learning_rate, group_size=OWN.group_size * 10)
    assert both.squared_decades(near) == pytest.approx(1)
    priors = load_priors("theory").model_copy(update={"known_optimum": once})
    assert priors.expected_loss(near) == pytest.approx(PENALTY / 2)
    assert load_priors("theory").expected_loss(near) == 0


def test_stacked_settings_lose_what_each_loses():
    posterior = made_up_posterior()
    priors = posterior.meta.priors.model_copy(
        update={"known_optimum": known(learning_rate=1e-3, group_size=4)}
    )
    meta = posterior.meta.model_copy(update={"priors": priors})
    run = meta.runs[0]
    target = Target(run.task, run.model, run.parameters)
    offered = [changed(OWN, learning_rate=rate) for rate in (1e-4, 1e-3, 3e-3)]
    bare = utilities(Forecaster(posterior, target), offered, 100)
    counted = utilities(Forecaster(replace(posterior, meta=meta), target), offered, 100)
    lost = [priors.expected_loss(one) for one in offered]
    assert (bare - counted).mean(axis=1) == pytest.approx(lost)


@pytest.mark.evidence
def test_what_the_user_knows_moves_the_advice_towards_it():
    posterior = made_up_posterior(draws=200)
    free = advise(posterior, weigh_pilots=False)
    rate = free.settings.learning_rate / 10
    told = {"learning_rate": rate}
    surely = advise(posterior, weigh_pilots=False, known=told, projects=50)
    once = advise(posterior, weigh_pilots=False, known=told)
    assert rate <= surely.settings.learning_rate <= once.settings.learning_rate
    assert surely.settings.learning_rate < free.settings.learning_rate
    assert any("from 50 projects" in line for line in surely.assumptions)
    assert not any("known to do best" in line for line in free.assumptions)


@pytest.mark.parametrize(
    "given",
    [
        {"known": {"learning_rate": -1.0}},
        {"known": {"momentum": 0.9}},
        {"known": {"learning_rate": 1e-6}, "projects": 0},
    ],
)
def test_what_cannot_be_known_is_refused_with_what_can(given):
    with pytest.raises(InputError, match="cannot be") as caught:
        Request(**given)
    assert "refresh_interval" in str(caught.value)


def test_presets_of_language_models_know_from_many_repositories_and_others_nothing():
    for name in ("full_finetuning", "lora"):
        told = load_priors(name).known_optimum
        assert told is not None
        assert told.projects > 50
        assert 1e-6 < told.learning_rate < 1e-4
    assert load_priors("small_models").known_optimum is None


def test_adapters_do_best_at_ten_times_the_learning_rate_of_full_fine_tuning():
    full, adapters = (load_priors(name).known_optimum for name in ("full_finetuning", "lora"))
    assert adapters.learning_rate == pytest.approx(10 * full.learning_rate)


def of_model(parameters, **rule):
    plans = [Plan(rate, steps=30, parameters=parameters) for rate in (1e-6, 3e-6, 3e-5)]
    return decided_by(made_up_posterior(plans, draws=1000), **rule)


def decided_by(posterior, **rule):
    """The same posterior under another rule of decision."""
    priors = posterior.meta.priors
    changed = priors.model_copy(update={"decision": priors.decision.model_copy(update=rule)})
    return replace(posterior, meta=posterior.meta.model_copy(update={"priors": changed}))


def question_of(parameters, surely=0.8, **fields):
    request = Request(steps=90, weigh_pilots=False, level=0.05, **fields)
    return prepare(of_model(parameters, surely=surely), request, Search(), silent)


def test_a_language_model_keeps_what_was_piloted_unless_another_is_surely_better():
    question = question_of(1.5e9)
    piloted = {run.settings.learning_rate for run in question.forecaster.posterior.meta.runs}
    kept = searched(question)
    assert kept.chosen.settings.learning_rate in piloted
    free = searched(question_of(1.5e9, surely=0.0)).chosen
    assert free.settings.learning_rate not in piloted
    assert p_better(kept.at_end, free, [kept.chosen])[0] < 0.8


def test_a_language_model_keeps_the_pilot_nearest_to_what_is_known():
    assert searched(question_of(1.5e9, surely=1.0)).chosen.settings.learning_rate == 1e-6
    stated = question_of(1.5e9, surely=1.0, known={"learning_rate": 5e-6}, projects=9)
    assert searched(stated).chosen.settings.learning_rate == 3e-6
    question = question_of(1.5e9, surely=0.5)
    surest = searched(question)
    others = [run.settings for run in question.forecaster.next_run.pilots]
    rivals = surest.at_end.compared(others)
    assert min(p_better(surest.at_end, surest.chosen, rivals)) >= 0.5


def test_a_rate_that_a_warm_up_never_reached_is_not_kept_as_piloted():
    plans = [Plan(rate, steps=30, parameters=1.5e9) for rate in (1e-6, 3e-6)]
    plans.append(Plan(1e-5, steps=30, warmup=90, parameters=1.5e9))
    request = Request(
        steps=90, weigh_pilots=False, level=0.05, known={"learning_rate": 1e-5}, projects=9
    )
    posterior = decided_by(made_up_posterior(plans, draws=1000), surely=1.0)
    question = prepare(posterior, request, Search(), silent)
    found = searched(question)
    assert found.chosen.settings.learning_rate == 3e-6
    assert best_piloted(found.at_end, question.forecaster.posterior).settings.warmup_steps == 0


def test_a_neighbour_that_is_better_by_a_trifle_does_not_unseat_a_pilot():
    # By 0.5 whatever is more likely better than not.
    stated = {"surely": 0.5, "known": {"learning_rate": 1e-6}}
    for indifference, is_kept in ((1.0, True), (0.0, False)):
        question = question_of(1.5e9, **stated, indifference=indifference)
        assert (searched(question).chosen.settings.learning_rate == 1e-6) == is_kept


def test_the_reason_names_what_would_give_more_and_how_surely(monkeypatch):
    question = question_of(1.5e9, surely=1.0, known={"learning_rate": 1e-6}, projects=9)
    kept = searched(question)
    assert kept.limit.kind == "known"
    assert kept.limit.gain > 0
    assert kept.limit.freed_by == f"--learning-rates {kept.limit.value:g}"
    # Not 80 %, which is not below itself.
    monkeypatch.setattr(trade_offs, "p_better", lambda *_: [0.797])
    limit = trade_offs.beaten_too_seldom(kept.at_end, kept.chosen, kept.chosen, 0.8)
    assert "with probability 79.7 % only, and 80 % is asked" in str(limit)


def test_small_models_are_advised_by_the_expected_reward_alone():
    found = [searched(question_of(1e6, surely=one)).chosen.settings for one in (0.8, 0.0)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("worthwhile", "kind", "is_first"),
    [(1.0, Kind.KNOWN_RATE_DOES, True), (0.0, Kind.KNOWN_RATE_BEATEN, False)],
)
def test_an_answer_says_whether_the_known_rate_does_as_well(worthwhile, kind, is_first):
    posterior = decided_by(of_model(1.5e9), worthwhile=worthwhile)
    known = {"known": {"learning_rate": 2e-6}, "projects": 9}
    advice = advise(posterior, steps=90, level=0.05, weigh_pilots=False, **known)
    said = [note for note in advice.notes if note.kind is kind]
    assert len(said) == 1
    assert said[0].values["rate"] == 2e-6
    assert any(str(said[0]) in line for line in str(advice).splitlines()[:3]) == is_first
    # A rate that is not stable enough does not do as well, however high it would end.
    hot = advise(posterior, steps=90, weigh_pilots=False, known={"learning_rate": 3e-2})
    assert Kind.KNOWN_RATE_DOES not in kinds(hot.notes)
    bare = advise(of_model(1.5e9), steps=90, level=0.05, weigh_pilots=False)
    assert not {Kind.KNOWN_RATE_DOES, Kind.KNOWN_RATE_BEATEN} & kinds(bare.notes)


def test_rates_that_the_user_offers_are_kept_to():
    question = question_of(1.5e9, learning_rates=(2e-6, 2e-5))
    assert searched(question).chosen.settings.learning_rate in (2e-6, 2e-5)


def test_the_chance_to_be_better_is_paired_and_symmetric():
    question = question_of(1.5e9)
    at_end = question.evaluator()
    one, other = (at_end(changed(question.fixed, learning_rate=rate)) for rate in (1e-5, 3e-5))
    assert p_better(at_end, one, [one])[0] == 0.5
    assert p_better(at_end, one, [other])[0] == pytest.approx(1 - p_better(at_end, other, [one])[0])
    assert np.isfinite(p_better(at_end, one, [other])[0])
