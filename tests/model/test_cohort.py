"""Runs as arrays: bins and their weights, clocks, exposure, references, bounds, refusals."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_runs import Plan, rising

from advisor.common import Kind, kinds
from advisor.errors import InputError
from advisor.model import CLOCK_EXPONENTS, Cohort, build_cohort, clock_table, cohort_of
from advisor.model.cohort import _edges
from advisor.runs import Trainer
from advisor.theory import schedule_factors

MAX_BINS = 14

BINARY = Plan(steps=60, group_size=8, prompts=16.0)

LADDER = settings(max_examples=60)


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


def binned(values):
    """Means of the bins of a run of so many rows."""
    return np.array([values[part].mean(axis=0) for part in _edges(len(values))])


def sizes_of(rows):
    return np.array([part.size for part in _edges(rows)])


def level_of(cohort, rows):
    """Mean over a bin and its neighbours, by rows."""
    total = np.convolve(cohort.reward * sizes_of(rows), np.ones(3), mode="same")
    return total / np.convolve(sizes_of(rows), np.ones(3), mode="same")


@LADDER
@given(rows=st.integers(0, 3000))
def test_bins_share_the_rows_and_grow(rows):
    parts = _edges(rows)
    assert len(parts) == min(MAX_BINS, rows)
    if not rows:
        return
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(rows))
    sizes = sizes_of(rows)
    assert sizes.min() >= 1
    # But for rounding no bin is shorter than the one before.
    assert np.all(np.diff(sizes) >= -1)


@LADDER
@given(rows=st.integers(3, 90))
def test_every_row_counts_once(rows):
    cohort = of(Plan(steps=rows))
    sizes = sizes_of(rows)
    assert cohort.reward.size == sizes.size
    assert sizes @ cohort.reward == pytest.approx(rising(rows).sum())
    assert sizes @ cohort.step == pytest.approx(rows * (rows + 1) / 2)


def test_rows_without_a_reward_are_left_out():
    reward = rising(40)
    reward[::4] = np.nan
    cohort = build(Plan(steps=40).run(reward))
    kept = np.flatnonzero(np.isfinite(reward))
    np.testing.assert_allclose(cohort.reward, binned(reward[kept]))
    np.testing.assert_allclose(cohort.step, binned(kept + 1.0))


def test_noise_is_bernoulli_over_new_completions():
    plan = Plan(steps=60, group_size=8, prompts=16)
    cohort = build(plan.run(np.linspace(0.3, 0.7, 60)))
    level, rows = level_of(cohort, 60), sizes_of(60)
    np.testing.assert_allclose(cohort.noise_per_prompt, level * (1 - level) / (rows * 16))
    np.testing.assert_allclose(cohort.noise_per_completion, cohort.noise_per_prompt / 8)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_noise_of_an_all_right_or_all_wrong_bin_is_not_zero(level):
    reward = np.concatenate([np.full(30, level), np.full(30, 0.5)])
    cohort = build(Plan(steps=60).run(reward))
    assert cohort.noise_per_prompt[0] == pytest.approx(0.02 * 0.98 / (sizes_of(60)[0] * 16))


@pytest.mark.parametrize(
    ("change", "steps_per_row"),
    [
        ({"epochs": 3}, 1 / 3),
        ({"minibatches": 3}, 1.0),
        ({"epochs": 16}, 1 / 16),
        ({"logging": 5}, 5.0),
        ({"logging": 6, "epochs": 3}, 2.0),
        ({"prompts": 32.0}, 2.0),
    ],
)
def test_information_of_a_bin(change, steps_per_row):
    base, rows = Plan(steps=60), sizes_of(60)
    plain = build(base.run(rising(60))).noise_per_prompt
    changed = build(replace(base, **change).run(rising(60))).noise_per_prompt
    # A few rows of one batch are one batch of information, never less.
    least = 1.0 if "prompts" not in change else 0.0
    np.testing.assert_allclose(changed, plain * rows / np.maximum(rows * steps_per_row, least))


# Noise that the logs tell ----------------------------------------------------------------------


def with_spread(spread, silent=None, *, plan=BINARY, rows=60, level=None, scale=1.0):
    """Cohort of one run that logged the spread within its groups."""
    reward = scale * (np.linspace(0.3, 0.7, rows) if level is None else level)
    series = {"reward": reward, "reward_std_within_group": np.broadcast_to(spread, rows)}
    if silent is not None:
        series["silent_group_share"] = np.broadcast_to(silent, rows)
    return build(plan.run(reward, series=series, reward_floor=0.0, reward_ceiling=scale))


def chance_of(cohort):
    level = level_of(cohort, 60)
    return level * (1 - level)


def split(cohort, within):
    """Variance of bins with this variance within groups, of 16 prompts and 8 completions each."""
    prompts = sizes_of(60) * 16
    return within / (prompts * 8) + (chance_of(cohort) - within) / prompts


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_logged_spread_replaces_the_split_that_is_learned(scale):
    spread = 0.35
    cohort = with_spread(scale * spread, 0.0, scale=scale)
    # The variance within groups is the square of what was logged.
    np.testing.assert_allclose(cohort.noise_known, split(cohort, spread**2))
    assert not cohort.noise_per_completion.any()
    assert not cohort.noise_per_prompt.any()
    unlogged = build(BINARY.run(np.linspace(0.3, 0.7, 60)))
    assert not unlogged.noise_known.any()
    assert unlogged.noise_per_prompt.all()


@pytest.mark.parametrize(("share", "tells"), [(0.25, True), (0.8, True), (0.8, False)])
def test_known_noise_is_the_scatter_of_simulated_groups(share, tells):
    """Difficulty of prompts leaves this share of p(1-p) within groups."""
    rng, level = np.random.default_rng(35), 0.4
    size = share / (1 - share)
    means, stated = [], []
    for _ in range(200):
        prompt = rng.beta(level * size, (1 - level) * size, (60, 16))
        right = rng.binomial(8, prompt) / 8
        spread = np.sqrt(right * (1 - right) * 8 / 7)
        silent = np.mean(spread == 0, axis=1) if tells else None
        cohort = build_cohort(
            [
                BINARY.run(
                    right.mean(axis=1),
                    series={
                        "reward": right.mean(axis=1),
                        "reward_std_within_group": spread.mean(axis=1),
                        **({} if silent is None else {"silent_group_share": silent}),
                    },
                )
            ],
            {"run": 1.0},
            {},
        )
        means.append(cohort.reward)
        stated.append(cohort.noise_known)
    scatter = np.var(means, axis=0).mean()
    assert np.mean(stated) == pytest.approx(scatter, rel=0.1)
    # The controls: one share for all tasks is far off for one of them.
    for other in (0.25, 0.8):
        wrong = level * (1 - level) * (other / 8 + 1 - other) * np.mean(1 / (16 * sizes_of(60)))
        assert (abs(wrong / scatter - 1) < 0.2) == (other == share)


# Evaluations -----------------------------------------------------------------------------------

TESTS = {"eval_step": np.array([0.0, 10.0, 30.0, 60.0])}


def evaluated(plan=BINARY, reward=(0.1, 0.2, np.nan, 0.4), **updates):
    given = {**TESTS, "eval_reward": np.array(reward), **updates}
    return plan.run(rising(plan.steps), **given)


def test_evaluation_tests_the_policy_after_its_steps():
    """Unlike a train reward, which scores the policy before the last refresh."""
    plan = replace(BINARY, minibatches=8, schedule="linear")
    cohort = build(evaluated(plan))
    assert cohort.run_of_eval.tolist() == [0, 0, 0]
    np.testing.assert_allclose(cohort.eval_reward, [0.1, 0.2, 0.4])
    table = clock_table(plan.completed, 60)
    np.testing.assert_allclose(cohort.eval_clock, table[[0, 10, 60]])
    assert cohort.clock[-1, 0] < table[60, 0]


@pytest.mark.parametrize(
    ("reward", "bounds", "wanted"),
    [
        ((0.1, 0.2, 0.3, 0.4), {}, (0.0, 1.0)),
        # Within the train reward's bounds: on its scale.
        ((0.1, 0.2, 0.3, 0.4), {"reward_floor": -1.0, "reward_ceiling": 2.0}, (-1.0, 2.0)),
        # Beyond them: a scale of its own, of at least [0, 1].
        ((-0.5, 0.2, 0.3, 0.4), {}, (-0.5, 1.0)),
        ((10.0, 20.0, np.nan, 40.0), {}, (0.0, 50.0)),
        ((-2.0, 0.0, 1.0, 6.0), {}, (-2.0, 8.0)),
    ],
)
def test_bounds_of_the_held_out_reward(reward, bounds, wanted):
    cohort = build(evaluated(reward=reward, **bounds))
    assert (cohort.eval_floor, cohort.eval_ceiling) == pytest.approx(wanted)
    finite = np.array(reward)[np.isfinite(reward)]
    scaled = (finite - wanted[0]) / (wanted[1] - wanted[0])
    np.testing.assert_allclose(cohort.eval_reward, scaled)
    assert np.all((cohort.eval_reward >= 0) & (cohort.eval_reward <= 1))
    # The train reward keeps its own.
    low, high = bounds.get("reward_floor", 0.0), bounds.get("reward_ceiling", 1.0)
    assert (cohort.floor, cohort.ceiling) == (low, high)


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
    np.testing.assert_allclose(cohort.clock, binned(direct), atol=1e-9)


def test_logged_learning_rate_overrules_the_schedule():
    factors = np.linspace(1.0, 0.1, 30)
    logged = 3e-4 * factors
    logged[7] = np.nan
    plan = Plan(steps=30)
    reward = rising(30)
    cohort = build(plan.run(reward, series={"reward": reward, "learning_rate": logged}))
    clock = np.concatenate([[0], np.cumsum(factors[:, None] ** CLOCK_EXPONENTS, axis=0)[:-1, 0]])
    np.testing.assert_allclose(cohort.clock[:, 0], binned(clock))
    assert cohort.exposure[0] == pytest.approx(np.sum(factors**2))
    one = np.where(np.arange(30) == 3, 1e-5, np.nan)
    alone = build(plan.run(reward, series={"reward": reward, "learning_rate": one}))
    assert alone.exposure[0] == 30


# Exposure and collapse -------------------------------------------------------------------------


def test_exposure_counts_steps_at_the_squared_rate():
    constant = of(Plan(steps=40))
    assert constant.exposure.tolist() == [40]
    linear = of(Plan(schedule="linear", steps=40))
    assert linear.exposure[0] == pytest.approx(np.sum(np.linspace(1, 0.025, 40) ** 2))
    assert of(Plan(schedule="linear", steps=40, logging=4), 10).exposure == linear.exposure


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
    assert "run 'again' repeats 'first' and was left out" in map(str, cohort.notes)
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
    np.testing.assert_allclose(cohort.reward, (binned(reward) - floor) / (ceiling - floor))
    assert np.all((cohort.reward >= 0) & (cohort.reward <= 1))
    lines = list(map(str, cohort.notes))
    assert any(f"reward floor {floor:g} assumed" in line for line in lines)
    said = next(line for line in lines if f"reward ceiling {ceiling:g} assumed" in line)
    assert ("lie in [0, 1]" in said) == (low >= 0 and high <= 1)
    assert (Kind.CEILING_DOUBTED in kinds(cohort.notes)) == (high > 1)


@pytest.mark.parametrize(("high", "is_likely"), [(78.0, True), (3.0, False), (140.0, False)])
def test_percentages_are_asked_for(high, is_likely):
    cohort = build(Plan().run(np.linspace(0.2 * high, high, 60)))
    (said,) = (str(one) for one in cohort.notes if one.kind is Kind.CEILING_DOUBTED)
    assert ("100 for percentages" in said) == is_likely


def test_given_bounds_are_used_for_all_runs_and_not_called_assumed():
    cohort = build(
        Plan().run(rising(), "a", reward_floor=-1.0, reward_ceiling=2.0),
        Plan(1e-3).run(rising(end=0.7), "b"),
    )
    assert (cohort.floor, cohort.ceiling) == (-1.0, 2.0)
    assert {Kind.REWARD_FLOOR, Kind.REWARD_CEILING}.isdisjoint(kinds(cohort.notes))
    np.testing.assert_allclose(cohort.reward[0], (binned(rising())[0] + 1) / 3)


@pytest.mark.parametrize("bounds", [{"reward_ceiling": 0.7}, {"reward_floor": 0.3}])
def test_rewards_outside_given_bounds_are_refused(bounds):
    with pytest.raises(InputError, match=r"rewards 0.2 to 0.788\d*, outside") as no:
        build(Plan().run(rising(), "good"), Plan().run(rising() * 0 + 0.5, "fine", **bounds))
    assert "run 'good'" in str(no.value)
    assert (no.value.key, no.value.path) == (next(iter(bounds)), "good.jsonl")


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


def test_shares_beside_percent_are_refused():
    shares, percent = rising(), 100 * rising(end=0.7)
    with pytest.raises(InputError, match=r"up to 0\.78.*they are on different scales") as no:
        build(Plan().run(shares, "shares"), Plan(1e-3).run(percent, "percent"))
    assert (no.value.key, no.value.path) == ("reward", "percent.jsonl")
    assert "run 'shares'" in str(no.value)
    assert "run 'percent'" in str(no.value)


# Refusals --------------------------------------------------------------------------------------


def test_reward_that_only_scatters_is_fitted_and_said_to_tell_nothing_but_slowness():
    rng = np.random.default_rng(31)
    flat = [Plan().run(0.5 + (0.02 + 0.01 * i) * np.tile([1, -1], 30), str(i)) for i in range(3)]
    assert Kind.NONE_MOVED in kinds(build(*flat).notes)
    moving = Plan().run(rising() + 0.03 * rng.standard_normal(60), "moving")
    assert Kind.NONE_MOVED not in kinds(build(*flat, moving).notes)
    # A collapse is information too.
    assert Kind.NONE_MOVED not in kinds(build(*flat, collapse={"1": 30.0}).notes)


def test_pilots_none_of_which_rises_are_named_beside_one_that_does():
    falling = [Plan(rate).run(rising(end=0.2, start=0.6), f"{rate:g}") for rate in (1e-4, 3e-4)]
    assert Kind.NONE_ROSE in kinds(build(*falling).notes)
    assert Kind.NONE_ROSE not in kinds(build(*falling, Plan(1e-3).run(rising(), "up")).notes)
    # A rise that was lost again is a rise.
    peak = np.concatenate([rising(30), rising(30, start=0.8, end=0.1)])
    assert Kind.NONE_ROSE not in kinds(build(*falling, Plan(1e-3).run(peak, "lost")).notes)


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


def test_all_that_runs_lack_is_asked_for_at_once_in_the_words_of_the_trainer():
    runs = [
        Plan().run(rising(end=end), name, path=f"logs/{name}.jsonl")
        for name, end in (("a", 0.8), ("b", 0.7))
    ]
    bare = {"group_size": None, "prompts_per_step": None}
    runs = [
        run.with_updates(
            hyperparameters=run.hyperparameters.model_copy(update=bare), framework="verl"
        )
        for run in runs
    ]
    with pytest.raises(InputError) as caught:
        build(*runs)
    assert caught.value.key == "group_size, prompts_per_step"
    text = str(caught.value)
    assert "2 of 2 runs cannot be fitted yet" in text
    assert "[defaults]\n  # group_size = ...  # verl: actor_rollout_ref.rollout.n" in text
    assert "prompts_per_step = ...  # verl: actor.ppo_mini_batch_size" in text
    assert ".hydra/config.yaml" in text


@pytest.mark.parametrize(
    ("parameters", "rate", "adapter", "is_asked"),
    [
        (7e9, 1e-4, None, True),
        (7e9, 1e-4, "lora", False),
        (7e9, 1e-4, "full", False),
        (7e9, 1e-5, None, False),
        (5e8, 1e-4, None, False),
    ],
)
def test_an_adapter_is_asked_for_at_rates_of_lora(parameters, rate, adapter, is_asked):
    run = Plan(rate, parameters=parameters).run(rising(), "mine")
    known = run.hyperparameters.model_copy(update={"adapter": adapter})
    run = run.with_updates(hyperparameters=known)
    assert ("adapter" in run.questions) == is_asked
    assert run.needs == {}
    if is_asked:
        assert 'adapter = ...  # "lora" or "full"' in Trainer.asked_of([run]).text
        (told,) = [one for one in map(str, build(run).notes) if one.startswith("adapter = full")]
        assert "this learning rate or name is typical of LoRA" in told
    else:
        assert len(build(run).runs) == 1


def test_the_coefficient_of_a_kl_term_is_asked_for():
    """TRL computes the term where its coefficient is not 0: that it is 0 is no default then."""
    run = Plan(1e-5).run(rising(), "mine").with_updates(framework="TRL")
    unknown = run.hyperparameters.model_copy(update={"kl_coefficient": None})
    run = run.with_updates(hyperparameters=unknown)
    assert "kl_coefficient" not in run.questions
    run = run.with_updates(series={**run.series, "kl": np.full(run.step.size, 0.01)})
    assert "kl_coefficient = ...  # TRL: beta" in Trainer.asked_of([run]).text
    (line,) = [one for one in map(str, build(run).notes) if one.startswith("kl_coefficient")]
    assert line.startswith("kl_coefficient = 0 assumed, but the log has a KL term")
    assert "kl_coefficient" not in run.with_updates(framework="OpenRLHF").questions


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


def test_digest_changes_with_rewards_bounds_and_collapse():
    nudged = rising(40)
    nudged[17] += 1e-9
    digests = [
        digest(),
        digest(reward=nudged),
        digest(reward_ceiling=2.0),
        digest(reward_floor=-1.0),
        digest(collapse=30.0),
        digest(eval_step=np.array([10.0]), eval_reward=np.array([0.3])),
        digest(eval_step=np.array([11.0]), eval_reward=np.array([0.3])),
        digest(eval_step=np.array([10.0]), eval_reward=np.array([0.31])),
        digest(series={"reward": rising(40), "reward_std_within_group": np.full(40, 0.3)}),
    ]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(("level", "is_kept"), [(0.03, False), (0.45, True)])
def test_held_out_rewards_of_two_keys_that_lie_apart_are_left_out(level, is_kept):
    """An accuracy beside a reward from -1 to 1 is no second sample of it."""
    steps, rewards = np.array([10.0, 20.0, 30.0]), np.array([0.4, 0.5, 0.6])
    logged = ((1e-4, "val/reward@8", rewards), (3e-4, "val/acc@8", np.full(3, level)))
    runs = []
    for rate, key, value in logged:
        run = Plan(rate).run(rising(60) * (0.9 + 100 * rate), f"run {rate}")
        found = {"eval_step": steps, "eval_reward": value}
        runs.append(run.with_updates(**found, keys_read={"eval_reward": key}))
    cohort = cohort_of(runs)
    assert len(cohort.runs) == 2
    assert (cohort.eval_reward.size > 0) == is_kept
    assert (Kind.HELD_OUT_APART in kinds(cohort.notes)) != is_kept
