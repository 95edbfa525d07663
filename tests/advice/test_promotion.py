"""The advised run goes on from a pilot where it is one, and is told why where it cannot."""

from __future__ import annotations

import pytest
from decisions import UNTIMED, changed
from simulated_runs import Plan, made_up_posterior, with_meta, with_runs

from advisor.advice import advise, export
from advisor.advice.promotion import promotion
from advisor.forecast import Target

PLANS = (Plan(1e-4), Plan(1e-4, steps=90), Plan(1e-3, collapse=25), Plan(3e-4))


@pytest.fixture(scope="module")
def posterior():
    return with_runs(made_up_posterior(PLANS, draws=800), assumed=())


def asked(posterior, settings, steps=300):
    run = posterior.meta.runs[0]
    return promotion(
        posterior, Target(run.task, run.model, run.parameters), settings, steps, UNTIMED
    )


def test_the_longest_pilot_of_the_settings_goes_on_and_only_the_rest_is_paid(posterior):
    found = asked(posterior, PLANS[0].completed)
    assert (found.pilot, found.step, found.why_not) == ("run1", 90, None)
    whole = UNTIMED(PLANS[0].completed, 300).completions
    assert found.left.completions == pytest.approx(whole * 210 / 300)
    assert "checkpoint at step 90" in found.text
    own = asked(with_runs(posterior, framework="TRL async"), PLANS[0].completed)
    assert "resume_from_checkpoint: <its output_dir>/checkpoint-90" in own.text


def test_no_pilot_goes_on_that_died_is_over_or_had_other_settings(posterior):
    assert asked(posterior, PLANS[2].completed) is None  # it collapsed
    assert asked(posterior, PLANS[0].completed, steps=60) is None  # they are as long as the run
    assert asked(posterior, changed(PLANS[0].completed, learning_rate=2e-4)) is None


def with_settings(posterior, **updates):
    runs = tuple(
        run.model_copy(update={"settings": changed(run.settings, **updates)})
        for run in posterior.meta.runs
    )
    return with_meta(posterior, runs=runs)


def test_a_schedule_that_is_over_and_a_setting_that_differs_are_said(posterior):
    linear = with_settings(posterior, schedule="linear", planned_steps=90)
    settings = changed(PLANS[0].completed, schedule="linear")
    assert (
        "cannot go on: its learning rate followed a linear schedule" in asked(linear, settings).text
    )
    assert "linear schedule over 90 steps;" in asked(linear, settings).text
    # One that was planned for the advised run, and stopped, is its beginning.
    stopped = with_settings(posterior, schedule="linear", planned_steps=300)
    assert "is the beginning of this run" in asked(stopped, settings).text
    unplanned = with_settings(posterior, schedule="linear", planned_steps=None)
    assert "schedule over the pilot's own length;" in asked(unplanned, settings).text
    found = asked(posterior, changed(PLANS[0].completed, kl_coefficient=0.04))
    assert found.why_not == "its kl_coefficient differs"


def test_that_a_rate_was_constant_is_said_to_be_assumed_where_no_log_tells(posterior):
    settings = PLANS[0].completed
    assert "assumed" not in asked(posterior, settings).text
    untold = made_up_posterior(PLANS, draws=800)
    assert "is assumed to have been constant)." in asked(untold, settings).text
    first, longest, *others = untold.meta.runs
    longest = longest.model_copy(update={"assumed": ()})
    stated = with_meta(untold, runs=(first, longest, *others))
    assert "assumed" not in asked(stated, settings).text


def test_refreshes_are_counted_where_the_trainer_counts_them(posterior):
    verl = with_runs(with_settings(posterior, epochs_per_refresh=2), framework="verl")
    found = asked(verl, changed(PLANS[0].completed, epochs_per_refresh=2))
    assert found.resume.endswith("/global_step_45")


def test_answer_and_config_say_which_pilot_goes_on(posterior):
    rate = PLANS[0].learning_rate
    found = advise(posterior, learning_rates=(rate,), level=0.05, weigh_pilots=False, steps=300)
    assert found.promotion.pilot == "run1"
    assert found.promotion.text in found.summary
    assert found.promotion.text in export(found, "trl").replace("\n# ", " ")
    other = advise(posterior, learning_rates=(2e-4,), level=0.05, weigh_pilots=False, steps=300)
    assert other.promotion is None


def test_a_config_has_the_kl_weight_of_most_pilots_and_says_that_they_differ(posterior):
    weights = (0.05, 0.0, 0.01, 0.0)
    runs = tuple(
        run.model_copy(update={"settings": changed(run.settings, kl_coefficient=weight)})
        for run, weight in zip(posterior.meta.runs, weights, strict=True)
    )
    told = with_meta(posterior, runs=runs)
    found = advise(told, learning_rates=(2e-4,), level=0.05, weigh_pilots=False, steps=300)
    assert found.settings.kl_coefficient == 0.0
    config = export(found, "trl")
    assert "beta: 0.0\n" in config
    assert "differ in kl_coefficient (0, 0.01, 0.05)" in config
    assert "Here it is 0." in config
    other = found.model_copy(update={"settings": changed(found.settings, kl_coefficient=0.05)})
    assert "algo.kl.init_coef 0.05" in export(other, "openrlhf")
    assert "Here it is 0.05." in export(other, "openrlhf")


def test_a_pilot_that_has_fallen_does_not_go_on(posterior):
    run = posterior.meta.runs[1]
    steps = tuple(float(step) for step in range(1, 91))
    fell = tuple(0.8 if step < 60 else 0.5 for step in steps)
    remembered = {"logged_steps": steps, "thinned": 1}
    fallen = with_runs(posterior, **remembered, logged_rewards=fell)
    assert "its reward fell from 0.8 after step" in asked(fallen, run.settings).text
    calm = with_runs(posterior, **remembered, logged_rewards=tuple(0.8 for _ in steps))
    assert asked(calm, run.settings).why_not is None
