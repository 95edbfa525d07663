"""Sentences of an answer that were false or empty: each is made here and read."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from simulated_runs import Plan, made_up_posterior, with_runs

from advisor.advice import (
    Cost,
    advise,
    gpu_time,
    launch_notes,
    percent,
    say_of_answer,
)
from advisor.common import Kind, Note, note, stated

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


# Bounds ----------------------------------------------------------------------------------------


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
    assert "reward over what was piloted: " in first_contact.next_pilot.reason


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


# Sentences -------------------------------------------------------------------------------------


def test_what_is_left_is_priced_from_the_step_that_is_named():
    """Two prices of one plan must be one number: those of so many whole steps."""
    cost = Cost(steps=300, completions=38400, tokens=None, gpu_hours=None)
    said = SimpleNamespace(
        kind="recommendation", steps=300, steps_to_95=262.97, cost=cost, checkpoints=()
    )
    assert "by step 263; the steps after that cost 4,736 completions." in say_of_answer(
        "rest", said
    )


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
    assert "The gentlest, to compare: " in said.text
    assert re.search(r"reward \S+ after \d+ steps if it stays stable,", said.text)


# Names of the pilots' trainer ------------------------------------------------------------------


def of_trainer(posterior, name):
    return with_runs(posterior, framework=name)


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


# Cautions --------------------------------------------------------------------------------------


def test_a_pilot_that_fell_below_others_that_live_is_named():
    ordered = [Plan(1e-4), Plan(3e-4), Plan(2e-3, collapse=20)]
    odd = [Plan(1e-4, collapse=20), Plan(3e-4), Plan(1e-3)]
    texts = [str(advise(made_up_posterior(plans)).text) for plans in (ordered, odd)]
    assert "although pilots at higher rates lived" not in texts[0]
    assert "fell at learning rate 0.0001, although pilots at higher rates lived" in texts[1]


def test_what_is_later_than_nearly_all_of_the_gain_alone_is_called_the_end(advice):
    late, early = (
        say_of_answer("rest", advice.model_copy(update={"checkpoints": (at, advice.steps)}))
        for at in (int(advice.steps_to_95) + 1, int(advice.steps_to_95) - 1)
    )
    assert "Nothing more is expected after step" in late
    assert "Nothing more" not in early
    assert "evaluate the checkpoints" in early


def test_pilots_at_the_ceiling_are_named_before_a_longer_run():
    posterior = made_up_posterior([Plan(1e-4), Plan(3e-4), Plan(1e-3)])
    assert "gains next to nothing" not in advise(posterior).text
    top = {"last_reward": 0.995, "logged_rewards": (0.995,) * 30, "logged_steps": (*range(30),)}
    assert "gains next to nothing" in advise(with_runs(posterior, **top)).text
