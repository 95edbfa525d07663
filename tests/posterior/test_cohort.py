"""Runs as arrays: bins and their weights, clocks, exposure, references, bounds, refusals."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import Plan, rising

from advisor.dynamics import policy_steps, schedule_factors
from advisor.errors import InputError
from advisor.posterior.fitting import cohort_of
from advisor.runs.cohort import CLOCK_EXPONENTS, MAX_BINS, Cohort, build_cohort, clock_table

LADDER = settings(derandomize=True, database=None, deadline=None, max_examples=60)


def build(*runs, collapse=None, healthy=None):
    return build_cohort(runs, collapse or {}, healthy or {})


def of(plan, rows=None, **updates):
    """Cohort of one run under a plan."""
    reward = rising(plan.steps if rows is None else rows)
    return build(plan.run(reward, **updates))


def direct_clock(plan, rows):
    """S of every logged row by adding up, one optimizer step after another."""
    settings = plan.completed
    interval, lag = plan.minibatches * plan.epochs, settings.lag
    factors = schedule_factors(
        settings.schedule,
        rows * plan.logging,
        warmup_steps=settings.warmup_steps,
        planned_steps=plan.steps,
    )
    table = np.zeros((rows, CLOCK_EXPONENTS.size))
    for row in range(rows):
        window = range(row * plan.logging, (row + 1) * plan.logging)
        for done in window:
            used = max((done // interval) * interval - lag, 0)
            for column, exponent in enumerate(CLOCK_EXPONENTS):
                whole = int(used)
                clock = sum(factors[:whole] ** exponent)
                if used > whole:
                    clock += (used - whole) * factors[whole] ** exponent
                table[row, column] += clock / plan.logging
    return table


# Bins ------------------------------------------------------------------------------------------


def test_bins_average_equal_shares_of_the_rows():
    cohort = of(Plan(steps=60))
    assert cohort.reward.size == MAX_BINS == 20
    np.testing.assert_allclose(cohort.reward, rising(60).reshape(20, 3).mean(axis=1))
    np.testing.assert_allclose(cohort.step, np.arange(1, 61).reshape(20, 3).mean(axis=1))
    assert not cohort.run_of_bin.any()


@LADDER
@given(rows=st.integers(3, 90))
def test_every_row_counts_once(rows):
    cohort = of(Plan(steps=rows))
    sizes = np.array([part.size for part in np.array_split(np.arange(rows), min(20, rows))])
    assert cohort.reward.size == sizes.size
    assert sizes @ cohort.reward == pytest.approx(rising(rows).sum())
    assert sizes @ cohort.step == pytest.approx(rows * (rows + 1) / 2)


def test_rows_without_a_reward_are_left_out():
    reward = rising(40)
    reward[::4] = np.nan
    cohort = build(Plan(steps=40).run(reward))
    kept = np.flatnonzero(np.isfinite(reward))
    parts = np.array_split(kept, 20)
    np.testing.assert_allclose(cohort.reward, [reward[part].mean() for part in parts])
    np.testing.assert_allclose(cohort.step, [part.mean() + 1 for part in parts])


def test_bins_of_several_runs_follow_each_other():
    cohort = build(
        Plan(steps=60).run(rising(60), "a"), Plan(1e-3, steps=7).run(rising(7, end=0.7), "b")
    )
    assert cohort.run_of_bin.tolist() == [0] * 20 + [1] * 7
    assert [run.id for run in cohort.runs] == ["a", "b"]
    np.testing.assert_allclose(cohort.reward[20:], rising(7, end=0.7))


def test_noise_is_bernoulli_over_new_completions():
    plan = Plan(steps=60, group_size=8, prompts=16)
    cohort = build(plan.run(np.linspace(0.3, 0.7, 60)))
    level = np.convolve(cohort.reward, np.ones(3) / 3, mode="valid")
    bernoulli = level * (1 - level)
    np.testing.assert_allclose(cohort.noise_per_prompt[1:-1], bernoulli / (3 * 16))
    np.testing.assert_allclose(cohort.noise_per_completion[1:-1], bernoulli / (3 * 16 * 8))
    edge = cohort.reward[:2].mean()
    assert cohort.noise_per_prompt[0] == pytest.approx(edge * (1 - edge) / (3 * 16))


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_noise_of_an_all_right_or_all_wrong_bin_is_not_zero(level):
    reward = np.concatenate([np.full(30, level), np.full(30, 0.5)])
    cohort = build(Plan(steps=60).run(reward))
    assert cohort.noise_per_prompt[0] == pytest.approx(0.02 * 0.98 / (3 * 16))


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        ({"epochs": 3}, 3.0),
        ({"minibatches": 3}, 1.0),
        ({"epochs": 16}, 3.0),  # 3 rows of one batch: one batch of information, never less
        ({"logging": 5}, 1 / 5),
        ({"logging": 6, "epochs": 3}, 1 / 2),
        ({"prompts": 32.0}, 1 / 2),
    ],
)
def test_information_of_a_bin(change, factor):
    base = Plan(steps=60)
    rows = rising(60)
    plain = build(base.run(rows)).noise_per_prompt
    changed = build(replace(base, **change).run(rows)).noise_per_prompt
    np.testing.assert_allclose(changed, factor * plain)


@pytest.mark.parametrize(("epochs", "logging"), [(1, 1), (3, 1), (1, 4)])
def test_stated_noise_is_the_scatter_of_simulated_rewards(epochs, logging):
    rng = np.random.default_rng(30)
    plan = Plan(group_size=8, prompts=16, epochs=epochs, logging=logging)
    level, means, stated = 0.4, [], []
    for _ in range(300):
        batches = rng.binomial(8 * 16, level, (60 // epochs, logging)).mean(axis=1) / (8 * 16)
        cohort = build(
            plan.run(np.repeat(batches, epochs)), collapse={"run": 1.0}
        )  # called collapsed, so that a flat run is not refused
        means.append(cohort.reward)
        stated.append(cohort.noise_per_completion)
    scatter = np.var(means, axis=0).mean()
    assert np.mean(stated) == pytest.approx(scatter, rel=0.05)
    # The controls: counting repeated batches as new, or a window as one row, is far off.
    if epochs > 1:
        assert np.mean(stated) / epochs < 0.5 * scatter
    if logging > 1:
        assert np.mean(stated) * logging > 2 * scatter


# Clocks ----------------------------------------------------------------------------------------


@LADDER
@given(
    minibatches=st.integers(1, 5),
    epochs=st.integers(1, 3),
    lag=st.sampled_from([None, 1.0, 2.5, 7.0]),
    logging=st.integers(1, 4),
    schedule=st.sampled_from([None, "linear", "cosine"]),
    warmup=st.integers(0, 10),
    rows=st.integers(3, 30),
)
def test_clock_equals_one_that_is_added_up(
    minibatches, epochs, lag, logging, schedule, warmup, rows
):
    plan = Plan(
        minibatches=minibatches,
        epochs=epochs,
        lag=lag,
        logging=logging,
        schedule=schedule,
        warmup=warmup,
        steps=120,
    )
    cohort = build(plan.run(rising(rows)))
    direct = direct_clock(plan, rows)
    parts = np.array_split(np.arange(rows), min(20, rows))
    np.testing.assert_allclose(
        cohort.clock, [direct[part].mean(axis=0) for part in parts], atol=1e-9
    )


def test_rewards_of_sixteen_steps_per_refresh_belong_to_the_policy_before_them():
    plan = Plan(minibatches=16, steps=40)
    cohort = of(plan, 20)
    np.testing.assert_array_equal(cohort.clock[:, 0], [0] * 16 + [16] * 4)
    mean = of(replace(plan, steps=48)).clock[:, 0]
    used = policy_steps(np.arange(1, 49), 16)
    parts = np.array_split(np.arange(48), 20)
    np.testing.assert_allclose(mean, [used[part].mean() for part in parts])
    # Reading the row as current would put the last bin at step 47 instead of 32.
    assert mean[-1] == 32


def test_logging_window_speaks_for_the_policies_in_it():
    cohort = of(Plan(logging=10, steps=100), 10)
    # Rows 10, 20 ... average the policies of steps 0 to 9, 10 to 19 ...
    np.testing.assert_allclose(cohort.clock[:, 2], np.arange(4.5, 100, 10))
    np.testing.assert_allclose(cohort.step, np.arange(10, 101, 10))


def test_logged_learning_rate_overrules_the_schedule():
    factors = np.linspace(1.0, 0.1, 30)
    logged = 3e-4 * factors
    logged[7] = np.nan
    plan = Plan(steps=30)
    reward = rising(30)
    cohort = build(plan.run(reward, series={"reward": reward, "learning_rate": logged}))
    clock = np.concatenate([[0], np.cumsum(factors[:, None] ** CLOCK_EXPONENTS, axis=0)[:-1, 0]])
    parts = np.array_split(np.arange(30), 20)
    np.testing.assert_allclose(cohort.clock[:, 0], [clock[part].mean() for part in parts])
    assert cohort.exposure[0] == pytest.approx(np.sum(factors**2))
    one = np.where(np.arange(30) == 3, 1e-5, np.nan)
    alone = build(plan.run(reward, series={"reward": reward, "learning_rate": one}))
    assert alone.exposure[0] == 30


def test_forecast_and_fit_share_one_clock():
    plan = Plan(schedule="cosine", warmup=5, steps=50)
    table = clock_table(plan.completed, 50)
    cohort = build(plan.run(rising(20)))
    np.testing.assert_allclose(cohort.clock, table[:20])


# Exposure and collapse -------------------------------------------------------------------------


def test_exposure_counts_steps_at_the_squared_rate():
    constant = of(Plan(steps=40))
    assert constant.exposure.tolist() == [40]
    linear = of(Plan(schedule="linear", steps=40))
    assert linear.exposure[0] == pytest.approx(np.sum(np.linspace(1, 0.025, 40) ** 2))
    assert of(Plan(schedule="linear", steps=40, logging=4), 10).exposure == linear.exposure


def test_exposure_of_a_collapsed_run_ends_with_its_collapse():
    plan = Plan(steps=40)
    reward = np.where(np.arange(40) < 20, rising(40), 0.0)
    cohort = build(
        plan.run(reward, "dead"),
        replace(plan, learning_rate=1e-4).run(rising(40), "alive"),
        collapse={"dead": 23.0, "alive": None},
        healthy={"dead": 18.0, "alive": None},
    )
    assert cohort.exposure.tolist() == [23, 40]
    assert cohort.collapsed.tolist() == [1, 0]
    assert cohort.collapse_step == (23.0, None)
    dead = cohort.run_of_bin == 0
    assert cohort.step[dead].max() == 18
    np.testing.assert_allclose(cohort.reward[dead], rising(40)[:18])


def test_run_that_was_never_healthy_still_tells_its_start():
    reward = np.concatenate([[np.nan, 0.31], np.zeros(38)])
    cohort = build(Plan(steps=40).run(reward), collapse={"run": 6.0}, healthy={"run": 0.0})
    assert cohort.reward.tolist() == [0.31]
    assert cohort.step.tolist() == [2.0]


# Groups, references, what is assumed -----------------------------------------------------------


def test_reference_is_the_geometric_mean_of_the_pilots():
    cohort = build(
        Plan(1e-4, 4, prompts=8).run(rising(), "a"),
        Plan(1e-3, 16, prompts=32).run(rising(end=0.7), "b"),
        Plan(1e-3, 64, prompts=128, model="big", parameters=4e5).run(rising(end=0.6), "c"),
    )
    reference = cohort.reference
    assert reference.learning_rate == pytest.approx(1e-8 ** (1 / 3) * 1e-2 ** (1 / 3))
    assert reference.group_size == pytest.approx(16)
    assert reference.prompts_per_step == pytest.approx(32)
    # Over models, not runs: two runs of one model do not pull it.
    assert reference.parameters == pytest.approx(2e5)
    np.testing.assert_allclose(cohort.log_group, np.log([1 / 4, 1, 4]), atol=1e-12)
    np.testing.assert_allclose(cohort.log_rate.sum(), 0, atol=1e-12)
    np.testing.assert_allclose(cohort.group_log_parameters, np.log([2, 1 / 2]))
    np.testing.assert_allclose(cohort.covariates.log_parameters, np.log([1 / 2, 1 / 2, 2]))


def test_groups_are_pairs_of_task_and_model():
    plans = [
        Plan(model="b", task="sort"),
        Plan(model="a", task="sort", parameters=2e5),
        Plan(model="b", task="mod"),
        Plan(model="b", task="sort", group_size=16),
    ]
    runs = [plan.run(rising(end=0.8 - 0.1 * i), str(i)) for i, plan in enumerate(plans)]
    cohort = build(*runs)
    assert cohort.groups == (("mod", "b"), ("sort", "a"), ("sort", "b"))
    assert cohort.group_of_run.tolist() == [2, 1, 0, 2]
    assert cohort.tasks == ("mod", "sort")
    assert cohort.task_of_group.tolist() == [0, 1, 1]
    assert cohort.group_parameters.tolist() == [1e5, 2e5, 1e5]
    assert cohort.longest == 60


def test_nameless_runs_pool_and_defaults_are_said_once():
    cohort = build(
        Plan(model=None, task=None).run(rising(), "a"),
        Plan(1e-3, model=None, task=None).run(rising(end=0.7), "b"),
    )
    assert cohort.groups == (("task", "model"),)
    for what in ("task = 'task' assumed", "model = 'model' assumed", "momentum = 0.9 assumed"):
        assert sum(what in note for note in cohort.notes) == 1
    assert all(run.hyperparameters.momentum == 0.9 for run in cohort.runs)


def test_importance_ratio_decides_correction_and_clipping():
    cohort = build(
        Plan(ratio=False).run(rising(), "a"),
        Plan(ratio=True).run(rising(end=0.7), "b"),
        Plan().run(rising(end=0.6), "c"),
    )
    assert cohort.corrected.tolist() == [0, 1, 1]
    assert cohort.clipped.tolist() == [0, 1, 1]


def test_mean_age_and_refresh_factors():
    cohort = of(Plan(minibatches=4, epochs=2, lag=3.0, momentum=0.5))
    assert cohort.mean_age.tolist() == [6.5]
    assert (cohort.minibatches[0], cohort.epochs[0], cohort.momentum[0]) == (4, 2, 0.5)


def test_copy_is_left_out_with_a_note():
    first, other = Plan().run(rising(), "first"), Plan().run(rising(end=0.7), "other")
    cohort = build(first, Plan().run(rising(), "again"), other)
    assert [run.id for run in cohort.runs] == ["first", "other"]
    assert "run 'again' repeats 'first' and was left out" in cohort.notes
    # A console prints four digits of the same numbers; a third of a per cent is another run.
    for moved, runs in ((1e-4, 1), (2e-3, 2)):
        almost = rising()
        almost[-1] += moved
        assert len(build(first, Plan().run(almost, "again")).runs) == runs


# Bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "floor", "ceiling"),
    [
        (0.2, 0.8, 0.0, 1.0),
        (0.0, 1.0, 0.0, 1.0),
        (0.5, 2.5, 0.0, 2.5 + 0.25 * 2.5),
        (-1.0, 0.6, -1.0, 1.0),
        (-2.0, 2.0, -2.0, 3.0),
        (-5.0, -1.0, -5.0, 1.0),
    ],
)
def test_bounds_are_inferred_and_said(low, high, floor, ceiling):
    reward = np.linspace(low, high, 60)
    cohort = build(Plan().run(reward))
    assert (cohort.floor, cohort.ceiling) == pytest.approx((floor, ceiling))
    scaled = (reward.reshape(20, 3).mean(axis=1) - floor) / (ceiling - floor)
    np.testing.assert_allclose(cohort.reward, scaled)
    assert np.all((cohort.reward >= 0) & (cohort.reward <= 1))
    assert any(f"reward floor {floor:g} assumed" in note for note in cohort.notes)
    said = next(note for note in cohort.notes if f"reward ceiling {ceiling:g} assumed" in note)
    assert ("lie in [0, 1]" in said) == (low >= 0 and high <= 1)


def test_given_bounds_are_used_for_all_runs_and_not_called_assumed():
    cohort = build(
        Plan().run(rising(), "a", reward_floor=-1.0, reward_ceiling=2.0),
        Plan(1e-3).run(rising(end=0.7), "b"),
    )
    assert (cohort.floor, cohort.ceiling) == (-1.0, 2.0)
    assert not any("reward floor" in note or "reward ceiling" in note for note in cohort.notes)
    np.testing.assert_allclose(cohort.reward[0], (rising()[:3].mean() + 1) / 3)


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        ({"reward_ceiling": 0.7}, "0.2", "0.788"),
        ({"reward_floor": 0.3}, "0.2", "0.788"),
    ],
)
def test_rewards_outside_given_bounds_are_refused(bounds, low, high):
    with pytest.raises(InputError, match=rf"rewards run from {low} to {high}\d*, outside"):
        of(Plan(), **bounds)


@pytest.mark.parametrize("name", ["reward_floor", "reward_ceiling"])
def test_runs_on_two_scales_are_refused(name):
    value = {"reward_floor": -1.0, "reward_ceiling": 2.0}[name]
    runs = [
        Plan().run(rising(), "a", **{name: value}),
        Plan().run(rising(end=0.7), "b", **{name: 2 * value}),
    ]
    with pytest.raises(InputError, match=f"runs differ in {name}") as caught:
        build(*runs)
    assert caught.value.key == name


# Refusals --------------------------------------------------------------------------------------


def test_no_run_is_refused():
    with pytest.raises(InputError, match="no run to fit"):
        build()


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0])
def test_constant_reward_is_refused(level):
    with pytest.raises(InputError, match="is the same in every row in the only run") as caught:
        build(Plan().run(np.full(60, level)))
    assert caught.value.key == "reward"
    with pytest.raises(InputError, match="in all 2 runs"):
        build(Plan().run(np.full(60, level), "a"), Plan(steps=50).run(np.full(50, level), "b"))


def test_reward_that_only_scatters_is_refused():
    rng = np.random.default_rng(31)
    flat = [Plan().run(0.5 + (0.02 + 0.01 * i) * np.tile([1, -1], 30), str(i)) for i in range(3)]
    with pytest.raises(InputError, match="moved by no more than its noise in all 3 runs"):
        build(*flat)
    moving = Plan().run(rising() + 0.03 * rng.standard_normal(60), "moving")
    assert len(build(*flat, moving).runs) == 4
    # A collapse is information too.
    assert build(*flat, collapse={"1": 30.0}).collapsed.sum() == 1


def test_share_of_flat_runs_that_pass_is_that_of_two_standard_errors():
    rng = np.random.default_rng(32)

    def passes(drift):
        count = 0
        for _ in range(400):
            try:
                build(Plan().run(0.5 + drift + 0.03 * rng.standard_normal(60)))
                count += 1
            except InputError:
                pass
        return count / 400

    # Two-sided 2 sigma: 4.6 %, and a little more since the noise is estimated.
    assert passes(np.zeros(60)) < 0.09
    assert passes(np.linspace(0, 0.1, 60)) > 0.95


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("learning_rate", "the learning rate is not known"),
        ("group_size", "the group size is not known"),
        ("prompts_per_step", "the number of prompts per optimizer step is not known"),
    ],
)
def test_unknown_setting_is_named(name, words):
    run = Plan().run(rising(), "mine", path="logs/mine.jsonl")
    run = run.with_updates(hyperparameters=run.hyperparameters.model_copy(update={name: None}))
    with pytest.raises(InputError) as caught:
        build(run)
    assert (caught.value.key, caught.value.path) == (name, "logs/mine.jsonl")
    assert f"run 'mine' cannot be fitted yet: {words}" in str(caught.value)
    assert f"{name} = ..." in str(caught.value)


def test_unknown_size_is_named():
    with pytest.raises(
        InputError, match=r"run 'run' .* the size of the model is not known"
    ) as caught:
        of(Plan(parameters=None))
    assert caught.value.key == "parameters"


@pytest.mark.parametrize("task", ["sort", "mod"])
def test_one_model_of_two_sizes_is_refused(task):
    runs = [
        Plan(parameters=1e5).run(rising(), "a"),
        Plan(parameters=2e5, task=task).run(rising(end=0.7), "b"),
    ]
    with pytest.raises(InputError, match="model 'tiny-s' is given with 2 sizes") as caught:
        build(*runs)
    assert caught.value.key == "parameters"


# What is fitted --------------------------------------------------------------------------------


def test_collapsed_run_is_cut_before_it_falls():
    curve = rising(60)
    curve[30:] = 0.0
    cohort = cohort_of([Plan().run(curve, "dead"), Plan(1e-4).run(rising(60), "alive")])
    assert cohort.collapsed.tolist() == [1, 0]
    assert 30 <= cohort.exposure[0] <= 35
    assert cohort.step[cohort.run_of_bin == 0].max() <= 30
    assert cohort.exposure[1] == 60


@pytest.mark.parametrize("low", [-5.0, -1.0])
def test_rising_run_of_negative_rewards_is_no_collapse(low):
    cohort = cohort_of([Plan().run(np.linspace(low, low / 5, 60))])
    assert not cohort.collapsed.any()
    assert cohort.floor == low
    falling = np.concatenate([np.linspace(low, 0.0, 30), np.full(30, low)])
    assert cohort_of([Plan().run(falling)]).collapsed.all()


def test_given_floor_of_one_run_judges_all():
    # From .5 to .1 above 0 is a collapse; above -10 it is not.
    curve = np.concatenate([rising(30, 0.2, 0.5), np.full(30, 0.1)])
    runs = [Plan().run(curve, "a"), Plan(1e-4).run(rising(), "b")]
    assert cohort_of(runs).collapsed.tolist() == [1, 0]
    low = [runs[0], runs[1].with_updates(reward_floor=-10.0)]
    assert cohort_of(low).collapsed.tolist() == [0, 0]


def test_two_runs_of_one_id_are_refused():
    with pytest.raises(InputError, match="two runs have the id 'run'") as caught:
        cohort_of([Plan().run(rising()), Plan().run(rising(end=0.7))])
    assert caught.value.key == "id"


# Digest ----------------------------------------------------------------------------------------

BASE = Plan(minibatches=2, steps=40)


def digest(plan=BASE, *, reward=None, collapse=None, **updates):
    curve = rising(40) if reward is None else reward
    step = {"run": collapse}
    return build(plan.run(curve, **updates), collapse=step, healthy=step).digest


def test_digest_is_that_of_the_data_alone():
    cohort = of(BASE)
    assert digest() == cohort.digest == digest(path="elsewhere.jsonl")
    assert len(cohort.digest) == 64
    names = [field.name for field in fields(Cohort)]
    shuffled = Cohort(**{name: getattr(cohort, name) for name in reversed(names)})
    assert shuffled.digest == cohort.digest


@pytest.mark.parametrize(
    "change",
    [
        {"group_size": 16},
        {"prompts": 32.0},
        {"parameters": 2e5},
        {"minibatches": 1},
        {"epochs": 2},
        {"momentum": 0.8},
        {"lag": 1.0},
        {"schedule": "linear"},
        {"ratio": False},
        {"task": "mod"},
        {"model": "other"},
    ],
)
def test_digest_changes_with_every_setting(change):
    assert digest(replace(BASE, **change)) != digest()


def test_digest_changes_with_the_reference_though_the_model_sees_ratios_alone():
    rates = [float(f"{rate:.2g}") for rate in np.geomspace(1e-6, 1e-3, 20)]
    assert len({digest(replace(BASE, learning_rate=rate)) for rate in rates}) == 20


def test_digest_changes_with_rewards_bounds_and_collapse():
    nudged = rising(40)
    nudged[17] += 1e-9
    digests = [
        digest(),
        digest(reward=nudged),
        digest(reward_ceiling=2.0),
        digest(reward_floor=-1.0),
        digest(collapse=30.0),
    ]
    assert len(set(digests)) == len(digests)
