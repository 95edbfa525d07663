"""Prompts per step, chosen where pilots told what they do and kept where they did not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from decisions import LEVEL, STEPS, decision
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.advice import Budget, Recommendation, Request, advise, default_lattice, export, what_if
from advisor.advice.pilot_choice import decision_of, is_first_contact
from advisor.forecast import named_target, pilots_of

FEW = {"learning_rates": (1e-4, 3e-4), "group_sizes": (8, 16)}
FASTER = {"rate.prompts_per_step": 0.9}
"""Nearly twice the prompts are nearly twice the speed: more of them are worth having."""


def piloted(*prompts: float, moved: dict[str, float] | None = None):
    """Posterior of the usual pilots, of which each took so many prompts in turn."""
    plans = [
        replace(plan, prompts=prompts[index % len(prompts)]) for index, plan in enumerate(PLANS)
    ]
    return made_up_posterior(plans, moved=moved)


@pytest.fixture(scope="module")
def told():
    return piloted(8.0, 16.0, 64.0, moved=FASTER)


@pytest.fixture(scope="module")
def advice(told):
    return advise(told, steps=STEPS, trials=80, indifference=0.0, **FEW)


@pytest.mark.parametrize(
    ("prompts", "offered"),
    [
        ((16.0,), (16.0,)),
        ((48.0,), (48.0,)),
        ((8.0, 16.0, 64.0), (8.0, 16.0, 32.0, 64.0)),
        # The target's first pilot is the fourth: what it took stays on offer.
        ((96.0, 48.0), (48.0, 64.0)),
        ((40.0, 60.0), (60.0,)),
        ((0.5, 2.0), (0.5, 1.0, 2.0)),
    ],
)
def test_the_piloted_range_is_offered_where_pilots_differ(prompts, offered):
    _, lattice = decision(piloted(*prompts))
    assert lattice.axes["prompts_per_step"] == offered
    assert {settings.prompts_per_step for settings in lattice} == set(offered)


def test_what_pilots_did_not_vary_is_never_offered():
    # Were they asked, more prompts would win: the same posterior chooses them where they were.
    posterior = piloted(16.0, moved=FASTER)
    found = advise(posterior, steps=STEPS, trials=40, **FEW)
    others = (*found.alternatives, *found.equal_completions, *found.frontier, *found.recipes)
    assert {one.settings.prompts_per_step for one in (found, *others)} == {16.0}
    assert found.choices["prompts_per_step"] == (16.0,)
    if found.next_pilot is not None:
        assert found.next_pilot.settings.prompts_per_step == 16.0
    assert found.text.count("prompts per step") == 1


@pytest.mark.evidence
def test_more_prompts_are_advised_where_they_are_worth_it(told, advice):
    assert advice.kind == "recommendation"
    assert advice.settings.prompts_per_step == 64.0
    assert advice.choices["prompts_per_step"] == (8.0, 16.0, 32.0, 64.0)
    assert advice.cost.completions == STEPS * 64 * advice.settings.group_size / (
        advice.settings.epochs_per_refresh
    )


@pytest.mark.evidence
def test_texts_table_and_exports_name_them(advice):
    assert ", 64 prompts per step, " in advice.text
    fewer = [one for one in advice.alternatives if one.settings.prompts_per_step != 64.0]
    fewer += [one for one in advice.recipes if one.settings.prompts_per_step != 64.0]
    assert fewer
    for one in fewer:
        (line,) = (line for line in advice.text.splitlines() if line.startswith(f"  {one.name}:"))
        assert f", {one.settings.prompts_per_step:g} prompts per step: " in line
    assert advice.table["prompts per step"].iloc[0] == 64.0
    batch = 64 * advice.settings.minibatches_per_refresh
    assert f"data.train_batch_size={batch}" in export(advice, "verl").replace(" ", "")
    assert Recommendation.model_validate_json(advice.to_json()) == advice


def test_completions_of_a_budget_are_those_of_all_prompts(told):
    evaluate, lattice = decision(told, budget=Budget(completions=200_000), **FEW)
    place = (3e-4, 8, 1, 1)
    steps = {}
    for prompts in lattice.axes["prompts_per_step"]:
        settings = lattice.at((*place, prompts))
        assert settings is not None
        found = evaluate(settings)
        steps[prompts] = found.cost.steps
        assert found.cost.completions == found.cost.steps * prompts * 8
        assert 0 <= 200_000 - found.cost.completions < prompts * 8
    assert steps == {8.0: 3125, 16.0: 1562, 32.0: 781, 64.0: 390}


def test_devices_divide_the_completions_of_every_offered_step(told):
    _, lattice = decision(told, devices=128, learning_rates=(1e-4,), group_sizes=(2, 4, 8, 16))
    # Of these groups only 16 fit with the 8 prompts that are kept; with 16 every prompt count fits.
    assert lattice.axes["group_size"] == (16,)
    assert lattice.axes["prompts_per_step"] == (8.0, 16.0, 32.0, 64.0)
    _, none = decision(told, devices=3, learning_rates=(1e-4,), group_sizes=(6,))
    assert none.axes["prompts_per_step"] == (8.0, 16.0, 32.0, 64.0)
    _, odd = decision(piloted(16.0, 24.0), devices=3, learning_rates=(1e-4,), group_sizes=(4,))
    assert odd.axes["prompts_per_step"] == (24.0,)
    for settings in lattice:
        assert settings.prompts_per_step * settings.group_size % 128 == 0


def test_named_configurations_may_differ_in_prompts_alone(told):
    base = pilots_of(told, named_target(told))[0].settings
    offered = [base.model_copy(update={"prompts_per_step": p}) for p in (8.0, 64.0)]
    found = advise(
        told, choose_from=tuple(offered), steps=STEPS, weigh_pilots=False, indifference=0.0
    )
    assert found.settings.prompts_per_step == 64.0


@pytest.mark.evidence
def test_next_pilots_are_weighed_among_the_choices_of_the_answer(told, advice):
    assert decision_of(told, advice)[1].axes["prompts_per_step"] == (8.0, 16.0, 32.0, 64.0)


def test_pilots_that_differ_in_prompts_alone_are_no_first_contact():
    alike = [Plan(prompts=16.0)] * 3
    assert is_first_contact(made_up_posterior(alike, draws=2))
    assert not is_first_contact(made_up_posterior([*alike, Plan(prompts=32.0)], draws=2))


def test_what_if_takes_prompts(told):
    table = what_if(told, Request(steps=STEPS), prompts_per_step=[8, 64])
    assert table["prompts_per_step"].tolist() == [8.0, 64.0]
    assert table["reward"].is_monotonic_increasing
    assert table["completions"][1] == 8 * table["completions"][0]
    evaluate, lattice = decision(told)
    own = pilots_of(told, evaluate.forecaster.target)[0].settings
    alone = evaluate(own.model_copy(update={"prompts_per_step": 64.0}))
    assert table["reward"][1] == alone.reward
    assert default_lattice(told, own, target=evaluate.forecaster.target).axes == lattice.axes
    assert alone.is_feasible(LEVEL) == (alone.stability.least >= LEVEL)
