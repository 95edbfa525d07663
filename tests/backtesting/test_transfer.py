"""Leave one model out: what is fitted, what is forecast, and what it is compared with."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import (
    Plan,
    made_up_posterior,
    rising,
)

from advisor.backtesting import transfer
from advisor.backtesting.cases import ELSEWHERE
from advisor.errors import InputError
from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.predictive import new_run_reward
from advisor.model.sampling import Sampling

METHODS = [
    "advisor",
    "mean of the pilots",
    "nearest, last value",
    "nearest, exponential",
    "nearest, hill",
    "nearest, stretched",
]
SIZES = {"tiny-s": 1e5, "tiny-m": 4e5}
RATES = np.geomspace(1e-5, 1e-2, 10)


def plans(model, count=10, task="sort"):
    return [
        Plan(rate, 8, model=model, parameters=SIZES[model], task=task) for rate in RATES[:count]
    ]


def finished(model, count=10, height=0.6, task="sort"):
    runs = []
    for index, plan in enumerate(plans(model, count, task)):
        noise = 0.02 * np.random.default_rng(index).standard_normal(60)
        curve = rising(60, end=height + 0.02 * index, time=10.0) + noise
        runs.append(plan.run(curve, f"{task}-{model}-{index}"))
    return runs


BOTH = [*finished("tiny-s"), *finished("tiny-m", height=0.3)]


@pytest.mark.evidence
def test_each_model_is_forecast_from_the_other_without_and_with_two_pilots(fits):
    found = transfer(BOTH, seen=0.5, priors="uninformative", sampling=Sampling(draws=7))
    assert (found.left_out, found.failed) == ((), ())
    given = [dict.fromkeys(SIZES, 0) for _ in fits]
    for count, (runs, priors, sampling) in zip(given, fits, strict=True):
        assert (priors.name, sampling) == ("uninformative", Sampling(draws=7))
        # Short parts of the pilots.
        assert {run.step[-1] for run in runs} == {30}
        for run in runs:
            count[run.model] += 1
    expected = [(ELSEWHERE, 0), (ELSEWHERE, 2)]
    assert [(c["tiny-m"], c["tiny-s"]) for c in given[:2]] == expected
    assert [(c["tiny-s"], c["tiny-m"]) for c in given[2:]] == expected
    # The two pilots of its own are forecast in neither case, all others in both.
    for cohort, fitted in (("tiny-s", fits[1][0]), ("tiny-m", fits[3][0])):
        own = {run.id for run in fitted if run.model == cohort}
        every = {run.id for run in BOTH if run.model == cohort}
        for count in (0, 2):
            asked = {p.run for p in found.predictions if cohort in p.cohort and p.pilots == count}
            assert asked == every - own
    target = {run.id: run.reward[54:].mean() for run in BOTH}
    for p in found.predictions:
        assert p.target == pytest.approx(target[p.run])
        assert p.seen == 0.5
    assert {p.method for p in found.predictions} == set(METHODS)


@pytest.mark.evidence
def test_scores_stand_by_the_pilots_of_its_own(fits):
    found = transfer(BOTH)
    document = json.loads(found.to_json())
    assert list(document["by_pilots"]) == ["0", "2"]
    assert document["methods"] == document["by_pilots"]["0"] == found.methods("0")
    assert list(document["methods"]) == METHODS
    assert document["methods"]["advisor"]["runs"] == 16
    line = json.loads(found.lines().splitlines()[0])
    assert line["pilots"] == 0


@pytest.mark.evidence
def test_nothing_of_a_run_that_is_forecast_is_seen(fits):
    """Another curve of it changes the target alone."""
    first = transfer(BOTH)
    asked = next(p.run for p in first.predictions)
    other = [
        run.with_updates(series={"reward": run.reward[::-1]}) if run.id == asked else run
        for run in BOTH
    ]
    for one, two in zip(first.predictions, transfer(other).predictions, strict=True):
        if one.run == asked:
            assert one.quantiles == two.quantiles
            assert one.target != two.target


@pytest.mark.evidence
def test_many_pilots_are_cut_into_sets_of_eight(fits):
    many = [
        run.with_updates(id=f"{run.id}-{copy}", series={"reward": run.reward + 0.001 * copy})
        for copy in range(2)
        for run in finished("tiny-s")
    ]
    transfer([*many, *finished("tiny-m", count=5)])
    sizes = [
        sorted((sum(run.model == model for run in runs) for model in SIZES), reverse=True)
        for runs, *_ in fits
    ]
    # Forecasts of the medium model from twenty small runs (8, 8 and 4), then the other way round.
    assert sizes == [[5, 0], [5, 2], [8, 0], [8, 2], [8, 0], [8, 2], [4, 0], [4, 2]]
    pilots = [run.id for runs, *_ in fits[2::2] for run in runs]
    assert len(pilots) == len(set(pilots)) == 20


@pytest.mark.evidence
def test_baselines_look_at_the_nearest_settings_and_at_all_pilots(fits):
    found = transfer(BOTH)
    medians = {
        method: {p.run: p.median for p in found.predictions if p.method == method and p.pilots == 0}
        for method in METHODS
    }
    pilots = {run.hyperparameters.learning_rate: run for run in fits[0][0]}
    for run in finished("tiny-s"):
        if run.id in medians["advisor"] and run.hyperparameters.learning_rate in pilots:
            twin = pilots[run.hyperparameters.learning_rate]
            assert medians["nearest, last value"][run.id] == pytest.approx(
                twin.reward[-3:].mean(), abs=0.005
            )
    of_small = [medians["mean of the pilots"][p] for p in medians["advisor"] if "tiny-s" in p]
    assert len(set(of_small)) == 1
    every = np.mean([run.reward[-3:].mean() for run in fits[0][0]])
    assert of_small[0] == pytest.approx(every, abs=0.03)


@pytest.mark.evidence
def test_the_advisor_forecasts_the_settings(fits):
    """By the rate law, which the made-up posterior holds, a hotter run is further in the end."""
    found = transfer(BOTH)
    mine = {p.run: p.median for p in found.predictions if p.method == "advisor" and p.pilots == 2}
    rate = {run.id: run.hyperparameters.learning_rate for run in BOTH}
    cold = [p for p in sorted(mine, key=rate.get) if "tiny-s" in p and rate[p] < 3e-4]
    assert len(cold) > 2
    assert [mine[p] for p in cold] == sorted(mine[p] for p in cold)


def test_models_with_few_runs_are_forecast_without_pilots_of_their_own(fits):
    found = transfer([*finished("tiny-s", count=4), *finished("tiny-m", count=2)])
    asked = {(p.run.split("-")[2], p.pilots) for p in found.predictions}
    assert asked == {("m", 0), ("s", 0), ("s", 2)}


@pytest.mark.evidence
def test_tasks_with_one_model_are_left_out_and_said(fits):
    found = transfer([*BOTH, *finished("tiny-s", task="mod", count=3)])
    assert found.left_out == tuple(
        f"mod-tiny-s-{index}: no other model was trained on its task" for index in range(3)
    )
    with pytest.raises(InputError, match="no task has runs of two models") as caught:
        transfer([*finished("tiny-s"), *finished("tiny-m", task="mod")])
    assert "pilots.toml" in str(caught.value)
    with pytest.raises(InputError, match="no run can be asked about"):
        transfer([])


@pytest.mark.evidence
def test_fits_that_fail_count_for_no_method(fits):
    stuck = [*finished("tiny-s", task="stuck"), *finished("tiny-m", task="stuck")]
    found = transfer([*BOTH, *stuck])
    assert found.failed == tuple(
        f"stuck / {model} from others 1, {count} pilots of its own"
        for model in SIZES
        for count in (0, 2)
    )
    assert not any("stuck" in p.cohort for p in found.predictions)


# A run that nobody has begun -------------------------------------------------------------------

PILOTS = [
    Plan(1e-4, 8),
    Plan(3e-4, 8),
    Plan(1e-3, 16),
    Plan(3e-4, 8, model="tiny-m", parameters=4e5),
]
TARGET = Target("sort", "tiny-s", 1e5)
ASKED = np.arange(55.0, 61.0)
NEVER = {"hazard.level": -60.0}


def forecast(plan, posterior=None, target=TARGET, **options):
    posterior = posterior or moved_to()
    return new_run_reward(posterior, target, plan.completed, ASKED, **options)


def moved_to(population=NEVER):
    """A posterior in which no run collapses, but for what is said."""
    return made_up_posterior(PILOTS, width=0.05, draws=2000, moved={**NEVER, **population})


def test_forecast_is_the_expected_reward_with_noise():
    posterior = moved_to()
    plan = Plan(3e-4, 8)
    found = forecast(plan, posterior)
    expected = Forecaster(posterior, TARGET).reward(plan.completed, ASKED - 1).mean(axis=1)
    assert np.median(found) == pytest.approx(np.median(expected), abs=0.02)
    assert found.std() > expected.std()


def test_noise_is_that_of_finite_batches_and_of_wander():
    quiet = {"log_misfit": -9.0, "log_run_plateau_spread": -9.0, "log_run_rate_spread": -9.0,
             "log_run_shape_spread": -9.0, "log_run_loss_spread": -9.0}  # fmt: skip
    posterior = moved_to(quiet)
    few, many = (
        forecast(replace(Plan(3e-4, 8), prompts=prompts), posterior).std() for prompts in (2, 2000)
    )
    assert few > 3 * many
    wander = forecast(replace(Plan(3e-4, 8), prompts=2000), moved_to(quiet | {"log_misfit": -2.0}))
    assert wander.std() > 2 * many


def test_a_run_that_may_collapse_may_end_at_nothing():
    plan = Plan(3e-4, 8)
    start = np.median(Forecaster(moved_to(), TARGET).group.start)
    below = {
        level: np.mean(forecast(plan, moved_to({"hazard.level": level})) < start)
        for level in (-60.0, float(np.log(np.log(2) / 60)), 10.0)
    }
    lives, half, dies = below.values()
    assert lives < 0.1
    assert dies > 0.95
    # The hazard is that of the reference; the run is within a factor of two of it.
    assert lives + 0.2 < half < dies - 0.1
    # Of a run that has collapsed nothing at all may be left, although its target is a mean.
    assert np.mean(forecast(plan, moved_to({"hazard.level": 10.0})) == 0) > 0.1


def test_a_model_without_pilots_is_less_certain():
    posterior = moved_to()
    known = forecast(Plan(3e-4, 8), posterior)
    new = forecast(Plan(3e-4, 8), posterior, Target("sort", "tiny-l", 1e5))
    assert new.std() > 1.15 * known.std()


def test_forecasts_repeat_and_stay_within_bounds():
    plan = Plan(3e-4, 8)
    posterior = made_up_posterior(PILOTS, bounds=(-2.0, 6.0), draws=200)
    one, two, other = (forecast(plan, posterior, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert np.any(one != other)
    assert one.min() >= -2
    assert one.max() <= 6
