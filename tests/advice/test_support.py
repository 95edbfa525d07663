"""What is said of settings that no pilot ran: each knob by its name, and no digit of certainty."""

from __future__ import annotations

import pytest
from decisions import DEADLY
from simulated_runs import PLANS, Plan, made_up_posterior, with_meta, with_runs

from advisor.advice import outside, piloted
from advisor.advice.support import cautions, memory_of, silent_groups
from advisor.common import Kind, kinds
from advisor.forecast import Forecaster, Target, stability


def test_every_knob_beyond_the_pilots_is_named(posterior):
    ranges = piloted(posterior)
    low, high = ranges["learning_rate"]
    assert (low, high) == (min(p.learning_rate for p in PLANS), max(p.learning_rate for p in PLANS))
    inside = {name: ends[0] for name, ends in ranges.items()}
    assert outside(inside, ranges) == []
    assert outside({name: ends[1] for name, ends in ranges.items()}, ranges) == []
    for name, (_, most) in ranges.items():
        assert outside({**inside, name: 2 * most + 1}, ranges) == [name]
    assert outside({"learning_rate": low / 2, "group_size": 4096}, ranges) == [
        "learning_rate",
        "group_size",
    ]


def test_a_rate_that_a_warm_up_never_reached_was_not_piloted():
    posterior = made_up_posterior([Plan(1e-4), Plan(1e-2, steps=50, warmup=500)])
    assert posterior.meta.largest_surviving_rate == pytest.approx(1e-3)
    assert piloted(posterior)["learning_rate"] == (1e-4, pytest.approx(1e-3))
    warm = made_up_posterior([Plan(1e-4), Plan(1e-2, steps=50, warmup=49)])
    assert warm.meta.largest_surviving_rate == pytest.approx(1e-2)


@pytest.mark.parametrize(("moved", "steps"), [(DEADLY, 4000), ({}, 100)])
def test_a_living_pilot_that_the_model_calls_impossible_is_a_caution(moved, steps):
    posterior = made_up_posterior([Plan(), Plan(1e-4)], moved=moved)
    forecaster = Forecaster(posterior, Target("sort", "tiny-s", 1e5))
    chance = stability(forecaster, Plan().completed, steps).by_model
    assert (chance < 0.01) == (moved == DEADLY)
    said = cautions(forecaster, steps, {})
    assert (Kind.DOUBTED_PILOT in kinds(said)) == (moved == DEADLY)


@pytest.mark.parametrize(
    ("changed", "times"),
    [
        ({}, None),
        ({"group_size": 4}, None),
        ({"group_size": 16}, 2),
        ({"prompts_per_step": 32.0, "max_completion_length": 512}, 4),
    ],
)
def test_a_step_of_more_tokens_than_any_pilots_may_not_fit(changed, times):
    """Controls: a small model, one that no pilot ran, and an unknown length."""
    large = Plan(parameters=5e8)
    own = large.completed.model_copy(update={"max_completion_length": 256})
    posterior = made_up_posterior([large, Plan(1e-4, parameters=5e8)])
    posterior = with_runs(posterior, settings=own)
    asked = own.model_copy(update=changed)
    (said,) = memory_of(Forecaster(posterior, Target("sort", "tiny-s", 5e8)), asked)
    assert said.kind is (Kind.FITS_AS_PILOTED if times is None else Kind.MAY_NOT_FIT)
    assert times is None or said.values["times"] == pytest.approx(times)
    assert memory_of(Forecaster(posterior, Target("sort", "tiny-s", 1e5)), asked) == []
    assert memory_of(Forecaster(posterior, Target("sort", "another", 5e8)), asked) == []
    unknown = asked.model_copy(update={"max_completion_length": None})
    (least,) = memory_of(Forecaster(posterior, Target("sort", "tiny-s", 5e8)), unknown)
    most = unknown.group_size * unknown.prompts_per_step
    assert (least.kind is Kind.MAY_NOT_FIT) == (most > own.group_size * own.prompts_per_step)


def test_pilots_of_several_kl_coefficients_are_a_caution():
    posterior = made_up_posterior([Plan(), Plan(1e-4)])
    forecaster = Forecaster(posterior, Target("sort", "tiny-s", 1e5))
    assert Kind.PENALTIES_DIFFER not in kinds(cautions(forecaster, 100, {}))
    first, second = posterior.meta.runs
    held = second.settings.model_copy(update={"kl_coefficient": 0.05})
    mixed = with_meta(posterior, runs=(first, second.model_copy(update={"settings": held})))
    (said,) = [
        line
        for line in cautions(Forecaster(mixed, forecaster.target), 100, {})
        if line.kind is Kind.PENALTIES_DIFFER
    ]
    assert "(0, 0.05)" in str(said)


@pytest.mark.parametrize(
    ("reward", "silent", "expected"),
    [
        (0.4, 0.6, {4: 0.7086, 8: 0.6, 16: 0.5094, 32: 0.4333}),  # prompts of two kinds
        (0.004, 0.95, {4: 0.9841, 8: 0.9684, 16: 0.9379, 32: 0.8796}),  # as if all were alike
        (0.2, 0.01, {}),  # partial credit: right and wrong alone make more
        (0.4, None, {}),
        (0.0, 1.0, {}),
        (0.3, 1.0, {}),  # prompts of two kinds, of which nobody knows how many lie between
    ],
)
def test_first_rows_tell_what_other_group_sizes_would_waste(reward, silent, expected):
    posterior = with_meta(made_up_posterior([Plan(), Plan(1e-4)]), floor=0.0, ceiling=1.0)
    posterior = with_runs(posterior, first_reward=reward, first_silent_share=silent)
    assert {run.settings.group_size for run in posterior.meta.runs} == {8}
    forecaster = Forecaster(posterior, Target("sort", "tiny-s", 1e5))
    assert silent_groups(forecaster) == pytest.approx(expected, abs=2e-4)
    said = [
        line
        for line in cautions(forecaster, 100, silent_groups(forecaster))
        if line.kind is Kind.SILENT_GROUPS
    ]
    assert len(said) == (silent == 0.95)
    for line in said:
        assert str(line).startswith(
            "Of the first groups of 8, 97 % scored all the same and taught nothing."
        )
        assert "With groups of 32 it would be 88 %." in str(line)


def test_a_group_size_among_several_is_not_called_the_first():
    posterior = made_up_posterior([Plan(), Plan(1e-4), Plan(3e-4)])
    updates = {"first_reward": 0.004, "first_silent_share": 0.95}
    first, *others = (run.model_copy(update=updates) for run in posterior.meta.runs)
    small = first.settings.model_copy(update={"group_size": 4})
    runs = (first.model_copy(update={"settings": small}), *others)
    posterior = with_meta(posterior, runs=runs, floor=0.0, ceiling=1.0)
    forecaster = Forecaster(posterior, Target("sort", "tiny-s", 1e5))
    assert set(silent_groups(forecaster)) == {4, 8, 16, 32}
    found = cautions(forecaster, 100, silent_groups(forecaster))
    assert Kind.SILENT_GROUPS not in kinds(found)
