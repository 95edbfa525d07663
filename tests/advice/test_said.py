"""Sentences of an answer that were false or empty: each is made here and read."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from decisions import decision
from simulated_runs import Plan, made_up_posterior

from advisor.advice import (
    Cost,
    advise,
    explanation_text,
    gpu_time,
    launch_notes,
    level_text,
    percent,
)
from advisor.advice.trade_offs import bound
from advisor.advice.wording import _say, price
from advisor.common import Kind, Note, note, stated

WORTH_A_PILOT = 0.005

# Probabilities beside the level ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("probability", "level", "said"),
    [
        (0.8984, 0.9, "89.8 %"),
        (0.89997, 0.9, "89.997 %"),
        (0.9001, 0.9, "90 %"),
        (0.8, 0.9, "80 %"),
        (0.9946, 0.995, "99 %"),
        (0.9949, 0.995, "99 %"),
        (0.0, 0.9, "under 1 %"),
    ],
)
def test_a_level_that_is_missed_is_not_said_to_be_met(probability, level, said):
    assert percent(probability, level) == said


@pytest.mark.evidence
def test_an_answer_short_of_its_level_shows_by_how_much(infeasible):
    stability = infeasible.stability.model_copy(update={"probability": 0.8984, "by_model": 0.8984})
    said = infeasible.model_copy(update={"stability": stability}).text
    assert "P(stable) is 89.8 %" in said
    assert "if it stays stable" in said
    assert not re.search(r"is 90 %.*; wanted: 90 %", said)


def test_a_strict_level_is_written_as_it_was_asked(posterior):
    said = advise(posterior, level=0.995, weigh_pilots=False, trials=40)
    assert "; wanted: 99.5 %" in said.text
    assert level_text(0.995) == "99.5 %"


# Bounds ----------------------------------------------------------------------------------------


def test_the_end_of_the_search_is_no_bound():
    calm = made_up_posterior([Plan()], moved={"hazard.level": -20.0, "log_misfit": -9.0})
    evaluate, lattice = decision(calm)
    last = lattice.axes["learning_rate"][-1]
    chosen = evaluate(calm.meta.runs[0].settings)
    said = bound(evaluate, lattice, chosen, 0.5)
    assert (said.kind, said.value) == ("none", last)
    assert str(said).startswith(f"Learning rates up to {last:.6g}, the highest tried, keep")


def test_a_bound_names_the_rate_that_breaks_it(first_contact):
    limit, rates = first_contact.limit, first_contact.choices["learning_rate"]
    assert (limit.kind, limit.axis) == ("stability", "learning_rate")
    assert rates.index(limit.values["above"]) == rates.index(limit.value) + 1
    assert f"up to {limit.value:.6g} keep" in first_contact.binding


# Whether another pilot is worth its price -------------------------------------------------------


def test_a_pilot_gains_over_running_what_was_piloted(first_contact):
    """The figure beside the answer showed twice the reward while the pilot was to gain nothing."""
    assert first_contact.kind == "next_pilot"
    assert first_contact.next_pilot.gain > first_contact.next_pilot.loss
    assert "of its range over running what was piloted" in first_contact.next_pilot.reason


def test_a_pilot_that_costs_more_than_it_tells_is_not_asked_for():
    # A pilot as long as the run, of a setting that is as good as any.
    posterior = made_up_posterior(
        [Plan()],
        width=0.02,
        moved={"hazard.level": -20.0, "log_misfit": -9.0, "rate.learning_rate": 0.0},
    )
    said = advise(posterior, steps=60, learning_rates=(3e-4, 3.3e-4))
    assert said.kind == "recommendation"
    assert not said.next_pilot.is_worth_its_price
    assert said.settings.learning_rate == 3e-4
    assert said.limit.kind == "too_few_pilots"
    assert said.limit.values["raises"] <= said.limit.values["loss"]
    # Three pilots are needed all the same before anything is called recommended.
    assert said.title == "Run these 2 pilots first"
    assert "To launch without it: learning_rate=0.0003, " in said.text


@pytest.mark.evidence
def test_beside_an_advice_a_pilot_is_named_where_it_is_worth_its_price():
    wide = made_up_posterior(width=1.0)
    said = advise(wide, level=0.5)
    assert said.next_pilot is not None
    assert said.next_pilot.gain > max(WORTH_A_PILOT, said.next_pilot.loss)


# Sentences -------------------------------------------------------------------------------------


def test_what_is_left_is_priced_from_the_step_that_is_named():
    """Two prices of one plan must be one number: those of so many whole steps."""
    cost = Cost(steps=300, completions=38400, tokens=None, gpu_hours=None)
    said = SimpleNamespace(
        kind="recommendation", steps=300, steps_to_95=262.97, cost=cost, checkpoints=()
    )
    assert "by step 263; the steps after that cost 4,736 completions." in _say("rest", said)


@pytest.mark.evidence
def test_what_is_left_after_the_last_step_is_not_priced(advice):
    said = advice.model_copy(update={"steps_to_95": float(advice.steps)}).text
    assert "the steps after that cost" not in said
    assert f"Cost: {price(advice.cost)}." in said
    # Nor is it said that a reward still rises, which a curve that falls reaches last as well.
    assert "rises" not in said


@pytest.mark.evidence
def test_one_is_not_written_as_many(advice):
    settings = advice.settings.model_copy(update={"prompts_per_step": 1.0})
    said = advice.model_copy(update={"settings": settings, "pilots": 1, "steps": 1}).text
    assert "1 prompt per step, 1 step." in said
    assert "after 1 step" in said
    assert "It rests on 1 pilot of" in said
    assert not re.search(r"\b1 (runs|prompts|pilots|steps|completions)\b", said)
    assert price(Cost(steps=1, completions=1.0, tokens=None, gpu_hours=None)) == "1 completion"


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (0.00374, "13.5 GPU-seconds"),
        (0.05, "3 GPU-minutes"),
        (3.86, "3.86 GPU-hours"),
        (12345.6, "12,346 GPU-hours"),
    ],
)
def test_a_price_has_the_unit_of_its_size(hours, said):
    assert gpu_time(hours) == said


def test_dead_pilots_are_not_the_best_that_was_piloted():
    plans = [Plan(9e-3, collapse=20), Plan(2e-2, collapse=9)]
    said = advise(made_up_posterior(plans, moved={"hazard.level": np.log(0.05)}))
    assert "the pilot with the best forecast" not in said.text
    assert "the pilot with the lowest rate: " in said.text
    assert re.search(r"reward \S+ after \d+ steps if it stays stable,", said.text)


def test_where_the_pilot_is_the_answer_it_stands_before_the_bound(first_contact):
    lines = first_contact.summary.splitlines()
    (bound,) = (at for at, line in enumerate(lines) if line.startswith("Until then, "))
    assert lines.index("") < bound
    assert "num_generations=" not in explanation_text(first_contact)


# Names of the pilots' trainer ------------------------------------------------------------------


def of_trainer(posterior, name):
    runs = tuple(run.model_copy(update={"framework": name}) for run in posterior.meta.runs)
    return replace(posterior, meta=posterior.meta.model_copy(update={"runs": runs}))


@pytest.mark.parametrize(
    ("trainer", "begins"),
    [
        ("verl", "actor_rollout_ref.actor.optim.lr="),
        ("OpenRLHF", "--actor.adam.lr "),
        ("TRL", "learning_rate="),
        ("Tinker", "learning_rate="),
        ("", "learning_rate="),
    ],
)
def test_settings_are_written_as_the_pilots_trainer_calls_them(posterior, trainer, begins):
    said = advise(of_trainer(posterior, trainer), weigh_pilots=False, trials=40)
    assert said.text.startswith(begins)
    assert ("num_generations=" in said.text) == (trainer in ("TRL", ""))
    assert ("group_size=" in said.text.splitlines()[0]) == (trainer == "Tinker")


def test_a_next_pilot_is_written_so_too(posterior):
    said = advise(of_trainer(made_up_posterior([Plan()]), "verl"))
    assert said.kind == "next_pilot"
    assert f"rollout.n={said.next_pilot.settings.group_size} " in said.text
    assert "num_generations" not in said.text


# Assumptions -----------------------------------------------------------------------------------


def assumed(kind: Kind) -> Note:
    texts = {"text": "lost", "name": "lag", "value": "0", "why": "default"}
    return Note(kind=kind, values=texts)


def test_what_can_change_the_answer_stands_first(advice):
    """A log whose rewards are lost, or settings that it speaks against, before any caution."""
    lost, doubted = assumed(Kind.LOST_REWARDS), note(Kind.KL_DOUBTED, value="0", doubt="a KL term")
    caution, default = stated("beware.", Kind.CAUTION), assumed(Kind.SETTING_ASSUMED)
    notes = tuple(sorted((default, caution, doubted, lost), key=lambda one: one.weight))
    said = advice.model_copy(update={"notes": notes, "promotion": None})
    assert launch_notes(said) == [str(lost), str(doubted), str(caution)]


def test_one_pilot_is_never_said_to_support_the_answer():
    run = Plan(1e-3, steps=60)
    one = advise(made_up_posterior([run], draws=400), steps=120, weigh_pilots=False)
    assert one.title == "More pilots are needed"
    assert "upported" not in one.text
