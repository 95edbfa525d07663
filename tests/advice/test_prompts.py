"""Prompts per step, chosen where pilots told what they do and kept where they did not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from decisions import STEPS, decision
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.advice import advise
from advisor.advice.pilot_choice import is_first_contact
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


def test_pilots_that_differ_in_prompts_alone_are_no_first_contact():
    alike = [Plan(prompts=16.0)] * 3
    assert is_first_contact(made_up_posterior(alike, draws=2))
    assert not is_first_contact(made_up_posterior([*alike, Plan(prompts=32.0)], draws=2))
