"""What is known before any pilot counts, and a language model keeps what was piloted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from decisions import changed
from simulated_runs import PLANS, Plan, made_up_posterior, with_priors

from advisor.advice import AXES, Request, Search, advise
from advisor.advice.answer import _against_the_forecast, p_better, prepare, searched
from advisor.advice.trade_offs import best_piloted
from advisor.common import Kind, kinds, silent
from advisor.errors import InputError
from advisor.forecast import Forecaster, Target, shift_of, shifts_of
from advisor.model import KnownOptimum, load_priors

OWN = PLANS[1].completed


RULE = load_priors("theory").decision
DECADES = np.linspace(-1, 1, 5)


def known(projects=1, **settings):
    return KnownOptimum(projects=projects, source="stated by a test", **settings)


def shifts(means, spread=0.2, projects=10**6, axis="learning_rate", rule=RULE):
    """Shift at DECADES of forecasts with these means and this spread."""
    noise = spread * np.random.default_rng(0).standard_normal(4000)
    ends = np.asarray(means)[:, None] + noise - noise.mean()
    found = shifts_of(ends, DECADES, axis, known(projects, **{axis: 1.0}), rule)
    return np.interp(DECADES, *found)


def test_flat_forecasts_move_towards_what_is_known_and_most_from_above():
    low, below, at, above, high = shifts(np.full(5, 0.5))
    assert at > max(below, above) > 0 > max(low, high)
    assert high < low - 0.03
    assert sum((low, below, at, above, high)) == pytest.approx(0, abs=0.002)
    # No run is known to die of a large group.
    assert abs(np.subtract(*shifts(np.full(5, 0.5), axis="group_size")[[0, 4]])) < 0.01


def test_sharp_forecasts_move_the_optimum_from_what_is_known():
    means = np.array([0.9, 0.6, 0.3, 0.1, 0.05])
    assert (means + shifts(means, spread=0.02)).argmax() == 0
    # Blunt ones do not.
    assert (means / 9 + shifts(means / 9, spread=0.6)).argmax() != 0


def with_known(posterior, **settings):
    return with_priors(posterior, known_optimum=known(**settings))


def test_stacked_settings_move_as_each_does_and_none_where_nothing_is_known():
    posterior = made_up_posterior()
    run = posterior.meta.runs[0]
    target = Target(run.task, run.model, run.parameters)
    told = Forecaster(with_known(posterior, learning_rate=1e-3, refresh_interval=2), target)
    rates = np.array([1e-4, 1e-3, 3e-3])
    each = [float(shift_of(told, changed(OWN, learning_rate=rate), 100)) for rate in rates]
    same = dict.fromkeys(AXES, 1) | {name: np.full(3, getattr(OWN, name)) for name in AXES}
    stacked = OWN.model_copy(update=same | {"learning_rate": rates})
    assert shift_of(told, stacked, 100) == pytest.approx(each)
    assert len(set(each)) == 3
    assert not shift_of(Forecaster(posterior, target), stacked, 100).any()
    alone = Forecaster(with_known(posterior, learning_rate=1e-3), target)
    tenth = shift_of(alone, changed(OWN, learning_rate=1e-4), 100)
    assert tenth == pytest.approx(np.interp(-1, *alone.known_shifts["learning_rate", 100]))


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
    decision = posterior.meta.priors.decision.model_copy(update=rule)
    return with_priors(posterior, decision=decision)


def question_of(parameters, **fields):
    request = Request(steps=90, weigh_pilots=False, level=0.05, **fields)
    return prepare(of_model(parameters), request, Search(), silent)


def test_what_was_piloted_is_offered_as_it_was_run_and_kept_among_equals():
    question = question_of(1.5e9, indifference=1.0)
    piloted = {run.settings.learning_rate for run in question.forecaster.posterior.meta.runs}
    assert piloted < set(question.lattice.axes["learning_rate"])
    assert searched(question).chosen.settings.learning_rate in piloted
    told = {"known": {"learning_rate": 1e-5}, "projects": 50}
    free = searched(question_of(1.5e9, indifference=0.0, **told)).chosen
    assert free.settings.learning_rate not in piloted


def test_a_rate_that_a_warm_up_never_reached_is_not_kept_as_piloted():
    plans = [Plan(rate, steps=30, parameters=1.5e9) for rate in (1e-6, 3e-6)]
    plans.append(Plan(1e-5, steps=30, warmup=90, parameters=1.5e9))
    request = Request(steps=90, weigh_pilots=False, level=0.05, indifference=1.0)
    question = prepare(made_up_posterior(plans, draws=1000), request, Search(), silent)
    found = searched(question)
    assert found.chosen.settings.learning_rate < 1e-5
    assert best_piloted(found.at_end, question.forecaster.posterior).settings.warmup_steps == 0


def test_the_reason_names_what_would_end_higher_farther_from_what_is_known():
    told = {"known": {"learning_rate": 1e-8}, "projects": 50, "learning_rates": (1e-6, 3e-6)}
    chosen = searched(question_of(1.5e9, **told))
    assert chosen.chosen.settings.learning_rate == 1e-6
    assert chosen.limit.kind == "known"
    assert chosen.limit.gain > 0
    assert chosen.limit.freed_by == f"--learning-rates {chosen.limit.value:g}"
    assert "the known rate counted" in str(chosen.limit)
    del told["known"], told["projects"]
    assert searched(question_of(1.5e9, **told)).chosen.settings.learning_rate == 3e-6


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
    # Nor is it named against an answer that could not have chosen it.
    offered = {"learning_rates": (3e-5, 6e-5)} | known
    far = advise(posterior, steps=90, level=0.05, weigh_pilots=False, **offered)
    assert Kind.KNOWN_RATE_DOES not in kinds(far.notes)
    bare = advise(of_model(1.5e9), steps=90, level=0.05, weigh_pilots=False)
    assert not {Kind.KNOWN_RATE_DOES, Kind.KNOWN_RATE_BEATEN} & kinds(bare.notes)


def test_the_chance_to_be_better_is_paired_and_symmetric():
    question = question_of(1.5e9)
    at_end = question.evaluator()
    one, other = (at_end(changed(question.fixed, learning_rate=rate)) for rate in (1e-5, 3e-5))
    assert p_better(one, one) == 0.5
    assert p_better(one, other) == pytest.approx(1 - p_better(other, one))


@pytest.mark.parametrize(
    ("stable", "beaten", "decides"), [(0.97, 0.6, True), (0.91, 0.6, False), (0.97, 0.4, False)]
)
def test_the_known_rate_is_said_to_decide_only_where_it_does(stable, beaten, decides):
    """A higher end that its own risk outweighs, or that is worth more with it, is none."""
    question = question_of(1.5e9, known={"learning_rate": 2e-6}, projects=9)
    decision = searched(question)
    own = decision.chosen
    sure = own.stability.model_copy(update={"probability": 0.96})
    chosen = replace(own, stability=sure, reward=0.5)
    other = SimpleNamespace(
        reward=0.52, stability=SimpleNamespace(probability=stable), settings=own.settings
    )
    other.p_beaten = beaten
    leader = SimpleNamespace(is_followed=True, fell_from=None, reward=0.0, settings=None)
    decision = replace(decision, chosen=chosen)
    found = _against_the_forecast(question, decision, leader, [other])
    assert (Kind.KNOWN_RATE_DECIDES in kinds(found)) == decides
