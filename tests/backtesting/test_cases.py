"""Finished runs cut into what is seen and what is asked, and which runs cannot be asked about."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, rising

from advisor.backtesting import make_cases

COHORT = 10
FEWEST = 4
LEAST_ROWS = 20


def finished(count, rows=100, plan=None, path=None, prefix="run", **updates):
    """Runs of one task and model; each rises to a height of its own."""
    return [
        (plan or Plan()).run(
            rising(rows, end=0.6 + 0.01 * index),
            f"{prefix}{index}",
            path=path or f"{prefix}{index}.jsonl",
            **updates,
        )
        for index in range(count)
    ]


def ids(cohort):
    return {case.seen.id for case in cohort.cases}


# Cut -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("logging", [1, 5])
def test_a_run_is_cut_into_what_is_seen_and_its_last_tenth(seen, logging):
    runs = finished(4, plan=Plan(logging=logging))
    (cohort,), left_out = make_cases(runs, seen)
    assert left_out == []
    assert len(cohort.cases) == 4
    last = 100 * logging
    for case in cohort.cases:
        (run,) = (run for run in runs if run.id == case.seen.id)
        np.testing.assert_array_equal(case.seen.step, run.step[: round(100 * seen)])
        np.testing.assert_array_equal(case.seen.reward, run.reward[: round(100 * seen)])
        assert case.seen.step[-1] == seen * last
        np.testing.assert_array_equal(case.steps, run.step[90:])
        assert case.target == run.reward[90:].mean()
        # What happens later is not in it.
        assert case.seen.reward.max() < case.target


def test_the_held_out_outcome_is_that_of_evaluations_in_the_last_tenth():
    """Control: a run without any there has none."""
    step, reward = np.array([50.0, 85.0, 95.0, 100.0]), np.array([0.1, 0.2, 0.6, 0.8])
    for kept, came in ((4, pytest.approx(0.7)), (2, None)):
        (run,) = finished(1)
        run = run.with_updates(eval_step=step[:kept], eval_reward=reward[:kept])
        ((cohort,), _) = make_cases([run], 0.25)
        assert cohort.cases[0].held_out == came


def test_steps_count_rather_than_rows():
    """A log that is dense at first: a quarter of the steps is more than a quarter of the rows."""
    step = np.concatenate([np.arange(1.0, 51.0), np.arange(60.0, 201.0, 10.0)])
    reward = rising(step.size)
    runs = [Plan().run(reward + 0.01 * i, f"run{i}", step=step) for i in range(4)]
    (cohort,), _ = make_cases(runs, 0.25)
    for case in cohort.cases:
        assert case.seen.step[-1] == 50
        assert case.steps.tolist() == [190, 200]


def test_nothing_of_the_rest_is_left_in_what_is_seen():
    runs = [
        run.with_updates(
            series={**run.series, "entropy": np.arange(100.0)},
            parts={"format": np.arange(100.0)},
            eval_step=np.array([0.0, 20.0, 25.0, 26.0, 100.0]),
            eval_reward=np.array([0.1, 0.2, 0.3, 0.4, 0.5]),
        )
        for run in finished(4)
    ]
    (cohort,), _ = make_cases(runs, 0.25)
    for case in cohort.cases:
        assert {values.size for values in case.seen.series.values()} == {25}
        assert case.seen.series["entropy"].max() == case.seen.parts["format"].max() == 24
        assert case.seen.eval_step.tolist() == [0, 20, 25]
        assert case.seen.eval_reward.tolist() == [0.1, 0.2, 0.3]


def test_settings_and_names_are_kept():
    plan = Plan(1e-3, 16, 2, schedule="linear", warmup=5, steps=100)
    runs = finished(4, plan=plan, reward_floor=-1.0, reward_ceiling=2.0)
    (cohort,), _ = make_cases(runs, 0.25)
    for case in cohort.cases:
        assert case.seen.hyperparameters == plan.settings
        assert (case.seen.reward_floor, case.seen.reward_ceiling) == (-1.0, 2.0)
        assert (case.seen.task, case.seen.model) == ("sort", "tiny-s")


def test_rewards_that_are_lost_do_not_count():
    reward = rising(100)
    reward[::2] = np.nan
    runs = [Plan().run(reward + 0.01 * index, f"run{index}") for index in range(4)]
    (cohort,), _ = make_cases(runs, 0.5)
    for case in cohort.cases:
        (run,) = (run for run in runs if run.id == case.seen.id)
        assert case.target == pytest.approx(np.mean(run.reward[91::2]), rel=1e-14)
        assert case.steps.size == 10


# Cohorts ---------------------------------------------------------------------------------------


def test_runs_of_other_tasks_and_models_are_forecast_apart():
    runs = [
        *finished(4, prefix="a"),
        *finished(4, prefix="b", plan=Plan(task="mod")),
        *finished(4, prefix="c", plan=Plan(model="tiny-m")),
    ]
    cohorts, left_out = make_cases(runs, 0.25)
    assert left_out == []
    assert {cohort.name: len(cohort.cases) for cohort in cohorts} == {
        "sort / tiny-s 1": 4,
        "mod / tiny-s 1": 4,
        "sort / tiny-m 1": 4,
    }
    for cohort in cohorts:
        pairs = {(case.seen.task, case.seen.model) for case in cohort.cases}
        assert len(pairs) == 1
        assert cohort.name.startswith(" / ".join(next(iter(pairs))))


@pytest.mark.parametrize("rest", [1, FEWEST])
def test_large_groups_are_cut_into_cohorts_and_what_is_left_over_is_a_smaller_one(rest):
    cohorts, left_out = make_cases(finished(2 * COHORT + rest), 0.25)
    assert [len(cohort.cases) for cohort in cohorts] == [COHORT, COHORT, rest]
    assert [cohort.name[-2:] for cohort in cohorts] == [" 1", " 2", " 3"]
    assert left_out == []
    seen = [name for cohort in cohorts for name in ids(cohort)]
    assert len(seen) == len(set(seen)) == 2 * COHORT + rest


def test_runs_are_shuffled_the_same_way_each_time():
    runs = finished(2 * COHORT)
    first, second = (make_cases(runs, 0.25)[0] for _ in range(2))
    assert [ids(cohort) for cohort in first] == [ids(cohort) for cohort in second]
    # Shuffled: a cohort is not the sweep in the order of its files.
    assert ids(first[0]) != {f"run{index}" for index in range(COHORT)}


def test_runs_of_one_file_each_are_put_together():
    cohorts, left_out = make_cases(finished(FEWEST), 0.25)
    assert left_out == []
    assert len(cohorts) == 1
    # Files with enough runs of their own stay apart.
    runs = [*finished(4, prefix="a", path="one.csv"), *finished(5, prefix="b", path="two.csv")]
    cohorts, _ = make_cases(runs, 0.25)
    assert sorted(len(cohort.cases) for cohort in cohorts) == [4, 5]
    for cohort in cohorts:
        assert len({case.seen.path for case in cohort.cases}) == 1
    # Two files of one task and model do not share a name.
    assert {cohort.name for cohort in cohorts} == {"sort / tiny-s 1", "sort / tiny-s 2"}


def test_cohorts_do_not_turn_on_what_is_seen():
    """Rolling origin: the same runs are forecast together from each share."""
    runs = finished(2 * COHORT)
    # Too short for a tenth: left out there, and in the same place of the others.
    runs[3] = runs[3].with_updates(
        step=4 * runs[3].step[:25], series={"reward": runs[3].reward[:25]}
    )
    asked = {share: make_cases(runs, share) for share in (0.1, 0.25, 0.5)}
    names = {share: [ids(cohort) for cohort in cohorts] for share, (cohorts, _) in asked.items()}
    assert names[0.25] == names[0.5]
    assert [members - {"run3"} for members in names[0.25]] == names[0.1]
    assert asked[0.1][1] == ["run3: 2 rewards in its first 10% (a forecast needs 3)"]


def few(model, task="sort", folder="runs", **updates):
    """Two runs of a model, a file each."""
    plan = Plan(model=model, task=task)
    runs = finished(2, prefix=f"{folder}-{model}", plan=plan)
    return [
        run.with_updates(path=f"{folder}/{run.id}.jsonl", **{"task": task, **updates})
        for run in runs
    ]


def test_models_with_few_runs_share_a_cohort_with_others_of_their_task():
    (cohort,), left_out = make_cases([*few("tiny-s"), *few("tiny-m"), *few("tiny-l")], 0.25)
    assert left_out == []
    assert cohort.name == "sort / 3 models 1"
    assert len(cohort.cases) == 6
    # But not where they have enough of their own.
    cohorts, _ = make_cases([*finished(FEWEST, prefix="own"), *few("tiny-m")], 0.25)
    assert [cohort.name for cohort in cohorts] == ["sort / tiny-s 1", "sort / tiny-m 1"]


@pytest.mark.parametrize(
    "other",
    [
        few("tiny-m", task="mod"),
        few("tiny-m", folder="elsewhere"),
        few("tiny-m", hyperparameters=Plan().settings.model_copy(update={"adapter": "lora"})),
    ],
    ids=["task", "folder", "adapter"],
)
def test_models_stay_apart_where_something_else_differs(other):
    cohorts, left_out = make_cases([*few("tiny-s"), *other], 0.25)
    assert (len(cohorts), left_out) == (2, [])
    assert {run_is_lora(cohort.cases[0].seen) for cohort in cohorts} == {
        run_is_lora(run) for run in other
    } | {False}


def run_is_lora(run):
    return run.hyperparameters.adapter == "lora"


def test_models_of_tasks_without_a_name_stay_apart():
    """Nothing says that it is the same task."""
    cohorts, _ = make_cases([*few("tiny-s", task=None), *few("tiny-m", task=None)], 0.25)
    assert [cohort.name for cohort in cohorts] == ["task / tiny-s 1", "task / tiny-m 1"]


def scaled(runs, factor, shift=0.0):
    return [run.with_updates(series={"reward": factor * run.reward + shift}) for run in runs]


def test_rewards_on_different_scales_stay_apart():
    runs = [*finished(4), *scaled(finished(4, prefix="wide"), 40.0, -10.0)]
    cohorts, left_out = make_cases(runs, 0.25)
    assert left_out == []
    narrow, wide = cohorts
    assert (ids(narrow), narrow.bounds) == ({f"run{i}" for i in range(4)}, (0.0, 1.0))
    assert ids(wide) == {f"wide{i}" for i in range(4)}
    assert wide.bounds == (-2.0, max(run.reward.max() for run in runs))
    assert narrow.name != wide.name


def test_a_run_that_never_learned_stays_with_the_others():
    """It shows only part of their scale."""
    runs = [*scaled(finished(3), 2.5), *finished(1, prefix="flat")]
    (cohort,), _ = make_cases(runs, 0.25)
    assert ids(cohort) == {"run0", "run1", "run2", "flat0"}
    assert cohort.bounds[1] < 3.0


def test_bounds_are_those_that_the_runs_state():
    (cohort,), _ = make_cases(finished(4, reward_floor=-1.0, reward_ceiling=2.0), 0.25)
    assert cohort.bounds == (-1.0, 2.0)
    (cohort,), _ = make_cases(finished(4), 0.25)
    assert cohort.bounds == (0.0, 1.0)


# Left out --------------------------------------------------------------------------------------


def unusable(why, **updates):
    (run,) = finished(1, prefix="odd")
    return pytest.param(run.with_updates(**updates), why, id=why)


UNKNOWN = Plan().settings.model_copy(update={"learning_rate": None, "group_size": None})
LATE = np.where(np.arange(100) < 23, np.nan, rising(100))
LOST = np.where(np.arange(100) < 88, rising(100), np.nan)
NAN = np.where(np.arange(100) < LEAST_ROWS - 1, rising(100), np.nan)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        unusable(
            "only evaluations, no train reward",
            step=np.zeros(0),
            series={},
            eval_step=np.arange(3.0),
            eval_reward=np.zeros(3),
        ),
        unusable("a copy of run0", copy_of="run0"),
        unusable(
            "stale samples are not corrected by an importance ratio",
            hyperparameters=Plan(minibatches=4, ratio=False).settings,
        ),
        unusable("needs learning_rate, group_size", hyperparameters=UNKNOWN),
        unusable("needs parameters", parameters=None),
        unusable(
            f"only {LEAST_ROWS - 1} rows", step=np.arange(1.0, 20.0), series={"reward": rising(19)}
        ),
        unusable(f"only {LEAST_ROWS - 1} rows", series={"reward": NAN}),
        unusable("2 rewards in its first 25% (a forecast needs 3)", series={"reward": LATE}),
        unusable("no reward in its last tenth", series={"reward": LOST}),
        unusable(
            "2 rewards in its first 25% (a forecast needs 3)",
            step=np.concatenate([[1.0, 2.0], np.arange(50.0, 148.0)]),
        ),
        unusable("only 2 rows", step=np.array([1.0, 2.0]), series={"reward": np.array([0.1, 0.9])}),
    ],
)
def test_run_that_cannot_be_asked_about_is_left_out_and_said(run, why):
    cohorts, left_out = make_cases([*finished(FEWEST), run], 0.25)
    assert left_out == [f"odd0: {why}"]
    assert [ids(cohort) for cohort in cohorts] == [{f"run{index}" for index in range(FEWEST)}]


@pytest.mark.parametrize("ratio", [True, None, False])
def test_a_ratio_is_asked_for_only_where_samples_age(ratio):
    cohorts, left_out = make_cases(finished(4, plan=Plan(ratio=ratio)), 0.25)
    assert (len(cohorts), left_out) == (1, [])


def test_least_rows_are_enough():
    (cohort,), left_out = make_cases(finished(4, rows=LEAST_ROWS), 0.25)
    assert left_out == []
    assert all(case.seen.step.size == 5 for case in cohort.cases)
    assert all(case.steps.tolist() == [19, 20] for case in cohort.cases)


def test_one_run_is_a_cohort():
    (cohort,), left_out = make_cases(finished(1), 0.25)
    assert (ids(cohort), cohort.name, left_out) == ({"run0"}, "sort / tiny-s 1", [])


def test_short_runs_are_left_out_where_that_is_asked():
    runs = [*finished(4), *finished(1, rows=50, prefix="short")]
    (cohort,), left_out = make_cases(runs, 0.25, least_steps=100)
    assert ids(cohort) == {f"run{index}" for index in range(4)}
    assert left_out == ["short0: only 50 optimizer steps"]
    # Steps, not rows.
    sparse = finished(1, rows=50, prefix="sparse", plan=Plan(logging=4))
    (cohort,), left_out = make_cases(sparse, 0.25, least_steps=100)
    assert (ids(cohort), left_out) == ({"sparse0"}, [])


def test_every_run_is_asked_about_or_said_to_be_left_out():
    """Also those that a cut into cohorts leaves over."""
    for count in range(1, 2 * COHORT + 5):
        cohorts, left_out = make_cases(finished(count), 0.25)
        asked = set().union(*map(ids, cohorts))
        assert len(asked) + len(left_out) == count, count
