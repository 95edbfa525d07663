"""Asking for settings one knows: the same numbers as the search's, for one or for many at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from decisions import STEPS, changed, decision, timed
from simulated_runs import PLANS, with_meta

from advisor.advice import Budget, Evaluator, Request, learn_cost, what_if, what_if_rows
from advisor.advice.evaluate import base_settings
from advisor.common import DEFAULT_SEED
from advisor.errors import InputError
from advisor.forecast import Forecaster, final_reward, named_target, pilots_of, stability


@pytest.fixture(scope="module")
def forecaster(posterior):
    return Forecaster(posterior, named_target(posterior), seed=DEFAULT_SEED)


def asked_of(forecaster, at_step=None, **changes):
    """Table of a forecaster that is kept, for changes of the first pilot's settings."""
    posterior, target = forecaster.posterior, forecaster.target
    changes = {"steps": STEPS, **changes}
    base = pilots_of(posterior, target)[0].settings
    rows = what_if_rows(forecaster, learn_cost(posterior, target), base, changes, at_step)
    return pd.DataFrame(rows)


def test_a_change_on_the_way_lies_between_none_and_one_from_the_start(forecaster):
    own = pilots_of(forecaster.posterior, forecaster.target)[0].settings.learning_rate
    rates = [own, own / 10]
    fresh = asked_of(forecaster, learning_rate=rates)["reward"]
    kept, slowed = asked_of(forecaster, STEPS // 2, learning_rate=rates)["reward"]
    assert kept == fresh[0]  # to change nothing is no change
    assert fresh[1] < slowed < fresh[0]
    late = asked_of(forecaster, STEPS - 1, learning_rate=own / 10)["reward"][0]
    assert slowed < late
    assert late == pytest.approx(fresh[0], abs=0.01)


def test_a_run_that_goes_on_warms_up_no_more(forecaster):
    base = pilots_of(forecaster.posterior, forecaster.target)[0].settings
    warm = base.model_copy(update={"warmup_steps": STEPS // 2})
    cost = learn_cost(forecaster.posterior, forecaster.target)
    cold, gone_on = (
        what_if_rows(forecaster, cost, of, {"steps": STEPS}, STEPS - STEPS // 4)[0]["p_tolerance"]
        for of in (base, warm)
    )
    assert gone_on == cold


def test_both_parts_of_a_changed_run_are_paid(forecaster):
    own = pilots_of(forecaster.posterior, forecaster.target)[0].settings.group_size
    whole = asked_of(forecaster, group_size=[own, 2 * own])["completions"]
    half = asked_of(forecaster, STEPS // 2, group_size=2 * own)["completions"][0]
    assert half == pytest.approx(whole.mean(), rel=0.01)


@pytest.mark.parametrize("at_step", [0, STEPS, 2 * STEPS])
def test_a_run_changes_before_its_end(forecaster, at_step):
    with pytest.raises(InputError, match=f"can change at step {at_step}"):
        asked_of(forecaster, at_step, learning_rate=1e-4)


def test_numbers_are_those_of_the_search(posterior, forecaster):
    evaluate, lattice = decision(posterior)
    some = list(lattice)[::37]
    table = asked_of(
        forecaster,
        learning_rate=[s.learning_rate for s in some],
        group_size=[s.group_size for s in some],
        minibatches_per_refresh=[s.minibatches_per_refresh for s in some],
        epochs_per_refresh=[s.epochs_per_refresh for s in some],
        steps=[evaluate(s).planned.planned_steps for s in some],
    )
    assert len(table) == len(some)
    for settings, row in zip(some, table.to_dict(orient="records"), strict=True):
        found = evaluate(settings)
        assert row["reward"] == found.reward
        assert row["p_stable"] == found.stability.probability
        assert row["p_refresh"] == found.stability.refresh
        assert row["p_tolerance"] == found.stability.tolerance
        assert row["p_fluctuation"] == found.stability.fluctuation
        assert row["p_stable_low"] == found.stability.low
        assert row["p_stable_high"] == found.stability.high
        assert row["completions"] == found.cost.completions
        assert row["refresh_interval"] == settings.refresh_interval
        draws = final_reward(forecaster, evaluate(settings).planned, row["steps"])
        assert [row["reward_low"], row["reward_high"]] == pytest.approx(
            np.quantile(draws, [0.1, 0.9]).tolist()
        )


def test_what_is_not_named_is_that_of_the_targets_first_pilot(posterior, forecaster):
    (row,) = asked_of(forecaster).to_dict(orient="records")
    first = PLANS[3]
    assert row["learning_rate"] == first.learning_rate
    assert row["group_size"] == first.group_size
    assert (row["minibatches_per_refresh"], row["epochs_per_refresh"]) == (1, 2)
    assert row["steps"] == STEPS
    assert (row["refresh_interval"], row["gpu_hours"]) == (2, None)
    base = pilots_of(posterior, forecaster.target)[0].settings
    planned = changed(base, planned_steps=STEPS)
    assert row["p_stable"] == stability(forecaster, planned, STEPS).probability


def test_price_is_that_of_the_pilots_or_as_given():
    posterior = timed()
    evaluate, _ = decision(posterior, cost=learn_cost(posterior, named_target(posterior)))
    (row,) = what_if(posterior, steps=STEPS).to_dict(orient="records")
    base = pilots_of(posterior, named_target(posterior))[0].settings
    assert row["gpu_hours"] == pytest.approx(evaluate(base).cost.gpu_hours)
    dear = learn_cost(posterior, named_target(posterior), gpus=2, seconds_per_step=3600.0)
    request = Request(gpus=2, seconds_per_step=3600.0)
    same = Evaluator(evaluate.forecaster, evaluate.objective, Budget(steps=STEPS), dear)
    hours = what_if(posterior, request, steps=STEPS)["gpu_hours"][0]
    assert hours == pytest.approx(same(base).cost.gpu_hours)
    assert hours > STEPS


@pytest.mark.parametrize(
    ("asked", "problem", "key"),
    [
        ({"learning_rate": 0.0}, "learning_rate 0 cannot be", "learning_rate"),
        ({"learning_rate": -1e-4}, "learning_rate -0.0001 cannot be", "learning_rate"),
        ({"learning_rate": [1e-4, float("nan")]}, "learning_rate nan cannot be", "learning_rate"),
        ({"learning_rate": float("inf")}, "learning_rate inf cannot be", "learning_rate"),
        ({"group_size": 1}, "group_size 1 cannot be", "group_size"),
        ({"group_size": 8.5}, "group_size 8.5 cannot be", "group_size"),
        ({"minibatches_per_refresh": 0}, "cannot be", "minibatches_per_refresh"),
        ({"epochs_per_refresh": float("nan")}, "cannot be", "epochs_per_refresh"),
        ({"steps": 0}, "steps 0 cannot be", "steps"),
        ({"steps": 10.5}, "steps 10.5 cannot be", "steps"),
        (
            {"learning_rate": [1e-4, 2e-4], "group_size": [8, 16, 32]},
            r"do not broadcast: .*learning_rate \(2,\), group_size \(3,\)",
            "steps, learning_rate, group_size",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(forecaster, asked, problem, key):
    with pytest.raises(InputError, match=problem) as caught:
        asked_of(forecaster, **asked)
    assert caught.value.argument == key
    assert caught.value.advice


def test_what_nothing_is_computed_from_is_that_of_all_pilots_that_tell_it(posterior):
    """The first pilot's log may lack what an export repeats; where others differ, nobody knows."""
    told = [
        {"precision": "bf16"},
        {"max_prompt_length": 512, "loss_averaging": "token", "precision": "fp16"},
        {"max_prompt_length": 512, "loss_averaging": "sequence"},
    ]
    target = named_target(posterior)
    first = pilots_of(posterior, target)[0]
    runs = tuple(
        first.model_copy(update={"settings": first.settings.model_copy(update=more)})
        for more in told
    )
    base = base_settings(with_meta(posterior, runs=runs), target)
    assert (base.max_prompt_length, base.loss_averaging, base.precision) == (512, None, "bf16")
