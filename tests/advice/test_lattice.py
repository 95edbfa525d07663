"""The configurations on offer: whole, divisible, within reach of the pilots, each once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from decisions import changed, decision
from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.advice import AXES, CostModel, Lattice, advise, default_lattice
from advisor.advice.candidates import Grid, within_reach
from advisor.errors import InputError

RATE_RATIO = 10 ** (1 / 6)

FIXED = PLANS[3].completed
"""What the advice keeps of the first pilot of the target."""


def test_lattice_reaches_a_little_beyond_the_pilots(posterior):
    _, lattice = decision(posterior)
    rates = lattice.axes["learning_rate"]
    # From a third of the gentlest pilot to three times the largest that survived (not the 3e-3
    # that collapsed), six to a decade.
    assert (rates[0], rates[-1]) == (3.3e-5, 3e-3)
    np.testing.assert_allclose(
        np.diff(np.log(rates)), np.log(RATE_RATIO), atol=0.08
    )  # piloted rates in their places
    assert lattice.axes["group_size"] == (4, 8, 16, 32, 64)
    assert lattice.axes["minibatches_per_refresh"] == (1, 2, 4, 8)
    assert lattice.axes["epochs_per_refresh"] == (1, 2)
    everything = list(lattice)
    assert len(everything) == len(lattice) == len(set(everything)) == 13 * 5 * 4 * 2
    for settings in everything:
        kept = settings.model_dump(exclude={*AXES})
        assert kept == FIXED.model_dump(exclude={*AXES})


def test_every_configuration_is_found_by_its_choices(posterior):
    _, lattice = decision(posterior)
    for settings in lattice:
        assert lattice.at(tuple(getattr(settings, name) for name in AXES)) == settings
    assert lattice.at((0.5, 8, 1, 1, 16.0)) is None
    assert lattice.at((1e-3, 8, 1, 1, 32.0)) is None
    scattered = Lattice(tuple(lattice)[::7])
    offered = set(scattered)
    for settings in lattice:
        found = scattered.at(tuple(getattr(settings, name) for name in AXES))
        assert found == (settings if settings in offered else None)


def test_grid_is_the_lattice_of_its_points(posterior):
    evaluate, grid = decision(posterior, group_sizes=(6, 4, 32, 4), cost=TIMED)
    one_by_one = Lattice(tuple(grid))
    assert isinstance(grid, Grid)
    assert not isinstance(one_by_one, Grid)
    assert list(grid) == list(one_by_one)
    assert len(grid) == len(one_by_one) == 13 * 3 * 4 * 2
    assert grid.axes == one_by_one.axes
    rates = grid.axes["learning_rate"]
    for rate in (rates[0], rates[4], 1.0):
        assert list(grid.up_to(rate)) == list(one_by_one.up_to(rate))
    with pytest.raises(InputError, match="no configuration is left"):
        grid.up_to(rates[0] / 2)
    for price in (lambda one: evaluate.cost(one, 1).paid, lambda one: one.refresh_interval):
        for most in (1, 7, 40, len(grid), 10_000):
            found = grid.spread(most, price)
            assert found == one_by_one.spread(most, price)
            assert len(found) == min(most, len(grid))
        assert set(grid.spread(10_000, price)) == set(grid)


TIMED = CostModel(fixed=1.0, generated=0.1, trained=0.01, source="made up")


@st.composite
def cases(draw):
    prompts = draw(st.sampled_from([0.5, 1.0, 3.0, 6.0, 7.5, 16.0, 48.0]))
    devices = draw(st.integers(1, 64))
    sizes = draw(st.lists(st.integers(2, 96), min_size=1, max_size=6))
    return prompts, devices, tuple(sizes)


@given(cases())
def test_completions_of_a_step_divide_among_the_devices(case):
    prompts, devices, sizes = case
    divisible = {size for size in sizes if float(prompts * size / devices).is_integer()}
    given_choices = {"group_sizes": sizes, "learning_rates": (1e-4,), "devices": devices}
    fixed = FIXED.model_copy(update={"prompts_per_step": prompts})
    if not divisible:
        with pytest.raises(InputError, match=f"among {devices} devices") as caught:
            default_lattice(POSTERIOR, fixed, **given_choices)
        assert caught.value.argument == "devices"
        return
    lattice = default_lattice(POSTERIOR, fixed, **given_choices)
    assert {settings.group_size for settings in lattice} == divisible


POSTERIOR = made_up_posterior(draws=2)


def test_devices_bind_everything_that_is_advised(posterior):
    # Groups of 5, 16 and 32 with 16 prompts do not divide among 1024; of 64 they do.
    found = advise(posterior, devices=1024, trials=40)
    assert found.settings.group_size == 64
    for other in found.alternatives:
        completions = other.settings.prompts_per_step * other.settings.group_size
        assert completions % 1024 == 0, other.name


def test_given_choices_are_the_only_ones(posterior):
    found = advise(posterior, group_sizes=(32, 12), learning_rates=(2e-4, 5e-5), trials=40)
    assert found.settings.group_size in (12, 32)
    assert found.settings.learning_rate == 2e-4
    assert (found.limit.kind, found.limit.value) == ("edge_of_rates", 2e-4)
    for other in found.alternatives:
        assert other.settings.group_size in (12, 32)
        assert other.settings.learning_rate in (2e-4, 5e-5)


@pytest.mark.parametrize("name", ["group_sizes", "learning_rates"])
@pytest.mark.parametrize(
    "choices",
    [
        (),
        (0,),
        (8, -1),
        (float("nan"),),
        (float("inf"),),
    ],
)
def test_choices_that_are_none_are_refused(posterior, name, choices):
    with pytest.raises(InputError, match="cannot be") as caught:
        advise(posterior, **{name: choices})
    assert caught.value.argument == name


# The very configurations -----------------------------------------------------------------------


def test_configurations_named_twice_are_refused(posterior):
    once = PLANS[0].completed
    # What tells them apart is nothing that the advice chooses.
    for twin in (once, changed(once, kl_coefficient=0.04)):
        with pytest.raises(InputError, match="differ in nothing that is chosen") as caught:
            advise(posterior, choose_from=[once, PLANS[1].completed, twin])
        assert caught.value.argument == "choose_from"


# Reach -----------------------------------------------------------------------------------------


def test_reach_ends_at_three_times_the_largest_that_survived(posterior):
    _, wide = decision(posterior, learning_rates=(1e-4, 2.9e-3, 3e-3, 3.1e-3, 1e-2))
    assert posterior.meta.largest_surviving_rate == 1e-3
    near = within_reach(wide, posterior.meta)
    assert near.axes["learning_rate"] == (1e-4, 2.9e-3, 3e-3)
    assert set(near) == {settings for settings in wide if settings.learning_rate <= 3e-3}


def test_nothing_is_within_reach_or_out_of_it_where_every_pilot_collapsed():
    plans = [replace(plan, collapse=20) for plan in PLANS]
    posterior = made_up_posterior(plans, draws=2)
    assert posterior.meta.largest_surviving_rate is None
    _, lattice = decision(posterior)
    assert within_reach(lattice, posterior.meta) is lattice
    # The way is down: two decades from the gentlest.
    rates = lattice.axes["learning_rate"]
    assert (rates[0], rates[-1]) == (1e-6, 1e-4)


def test_what_pilots_did_not_vary_is_kept_unless_it_is_named():
    alike = [Plan(3e-4, 8, 4), Plan(1e-3, 8, 4)]
    lattice = default_lattice(made_up_posterior(alike), FIXED)
    assert lattice.axes["group_size"] == (8,)
    assert len({point.refresh_interval for point in lattice}) == 1
    assert len(lattice.axes["learning_rate"]) > 2
    named = default_lattice(made_up_posterior(alike), FIXED, group_sizes=[4, 16])
    assert named.axes["group_size"] == (4, 16)
    varied = default_lattice(made_up_posterior([*alike, Plan(3e-4, 16, 4)]), FIXED)
    assert varied.axes["group_size"] == (4, 8, 16, 32)
