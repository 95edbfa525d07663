"""A backtest with fits made up: all methods are asked the same, and failures are said."""

from __future__ import annotations

import json

import numpy as np
import pytest
from simulated_runs import Plan, rising

from advisor.backtesting import backtest, make_cases
from advisor.backtesting.backtests import chosen_preset
from advisor.backtesting.scores import score
from advisor.errors import InputError
from advisor.model import Sampling, load_priors, preset_names
from advisor.runs import PartialSettings

METHODS = [
    "advisor",
    "last value",
    "advisor, as a new run",
    "exponential",
    "hill",
    "stretched",
    "ensemble",
]
PLANS = [Plan(rate, group) for rate, group in ((1e-4, 8), (3e-4, 16), (1e-3, 4), (3e-3, 8))]


def finished(task, height=0.6, rows=100):
    runs = []
    for index, plan in enumerate(PLANS):
        noise = 0.02 * np.random.default_rng(index).standard_normal(rows)
        curve = rising(rows, end=height + 0.05 * index, time=20.0) + noise
        runs.append(plan.run(curve, f"{task}{index}", task=task))
    return runs


@pytest.mark.evidence
def test_every_method_is_asked_about_every_run(fits):
    runs = [*finished("sort"), *finished("mod", 0.3)]
    preset = load_priors("uninformative")
    found = backtest(runs, seen=0.3, priors="uninformative", sampling=Sampling(draws=7))
    assert (found.left_out, found.failed) == ((), ())
    asked = {(p.method, p.run) for p in found.predictions}
    assert asked == {(method, run.id) for method in METHODS for run in runs}
    assert len(found.predictions) == len(asked)
    cases = {case.seen.id: case for cohort in make_cases(runs, 0.3)[0] for case in cohort.cases}
    for prediction in found.predictions:
        assert prediction.target == cases[prediction.run].target
        assert prediction.seen == 0.3
        assert prediction.cohort.startswith(prediction.run.rstrip("0123456789"))
    # The fit sees the first part alone, under the priors and with the sampling that were given.
    assert len(fits) == 2
    for seen, priors, sampling in fits:
        assert (priors, sampling) == (preset, Sampling(draws=7))
        assert {run.step[-1] for run in seen} == {30}


@pytest.mark.evidence
def test_forecast_of_a_run_is_that_of_its_own_settings(fits):
    found = backtest(finished("sort"))
    mine = {p.run: p.quantiles[3] for p in found.predictions if p.method == "advisor"}
    assert len(mine) == 4
    # By the rate law, which the made-up posterior holds, a hotter run is further in the end.
    assert mine["sort0"] < mine["sort1"]


@pytest.mark.evidence
def test_curves_do_not_see_the_rest(fits):
    runs = finished("sort")
    other = [
        run.with_updates(
            series={"reward": np.where(run.step <= 25, run.reward, run.reward[::-1] / 2)}
        )
        for run in runs
    ]
    first, second = backtest(runs), backtest(other)
    for one, two in zip(first.predictions, second.predictions, strict=True):
        assert (one.method, one.run, one.quantiles) == (two.method, two.run, two.quantiles)
        assert one.target != two.target


@pytest.mark.evidence
def test_cohort_that_does_not_converge_counts_for_no_method(fits):
    found = backtest([*finished("sort"), *finished("stuck")])
    assert found.failed == ("stuck / tiny-s 1",)
    assert {p.cohort for p in found.predictions} == {"sort / tiny-s 1"}


@pytest.mark.evidence
def test_cohort_whose_first_part_is_flat_does_not_end_the_backtest(fits):
    flat = [
        plan.run(np.full(100, 0.1), f"flat{index}", task="flat") for index, plan in enumerate(PLANS)
    ]
    found = backtest([*flat, *finished("sort")])
    assert {p.cohort for p in found.predictions} == {"sort / tiny-s 1"}
    assert any("flat" in line for line in (*found.failed, *found.left_out))


@pytest.mark.evidence
def test_runs_that_began_as_one_are_asked_about_or_said_to_be_left_out(fits):
    """Two runs that went on from one checkpoint have the same first part."""
    runs = finished("sort")
    twin = runs[3].reward.copy()
    twin[:30] = runs[0].reward[:30]
    runs.append(PLANS[3].run(twin, "branch3", task="sort"))
    found = backtest(runs)
    asked = {p.run for p in found.predictions}
    assert asked >= {"sort1", "sort2", "sort3"}
    for method in METHODS:
        assert {p.run for p in found.predictions if p.method == method} == asked
    missing = {run.id for run in runs} - asked
    assert {line.split(":")[0] for line in found.left_out} == missing


@pytest.mark.evidence
def test_scores_are_pooled_and_by_cohort(fits):
    found = backtest([*finished("sort"), *finished("mod", 0.3)])
    methods = found.methods()
    assert list(methods) == METHODS
    for method, scores in methods.items():
        own = [p for p in found.predictions if p.method == method]
        assert scores["runs"] == len(own) == 8
        assert {key: scores[key] for key in score(own)} == score(own)
        assert scores["cohorts"] == {
            name: score([p for p in own if p.cohort == name])
            for name in ("sort / tiny-s 1", "mod / tiny-s 1")
        }
    document = json.loads(found.to_json())
    nothing = {"left_out": [], "failed": [], "uncurved": []}
    assert document == {"methods": methods, "verdicts": found.verdicts(), **nothing}


@pytest.mark.evidence
def test_what_is_left_out_is_in_the_json(fits):
    short = [run.with_updates(id=f"short{run.id}") for run in finished("sort", rows=19)]
    found = backtest([*finished("sort"), *short, *finished("stuck")])
    document = json.loads(found.to_json())
    assert document["left_out"] == [f"{run.id}: only 19 rows" for run in short]
    assert document["failed"] == ["stuck / tiny-s 1"]


@pytest.mark.evidence
def test_progress_is_told_by_cohort(fits):
    said = []
    backtest([*finished("sort"), *finished("mod")], progress=lambda *stage: said.append(stage))
    assert said == [
        ("Backtesting", 0.0, "2 to do on 1 process, 0 kept"),
        ("Backtesting", 0.5, "1 of 2; sort / tiny-s 1"),
        ("Backtesting", 1.0, "2 of 2; mod / tiny-s 1"),
    ]


def test_nothing_is_fitted_where_nothing_can_be_asked(fits):
    with pytest.raises(InputError, match=r"no run can be asked about \(4 left out; for example so"):
        backtest(finished("sort", rows=19))
    with pytest.raises(InputError, match="no run can be asked about") as caught:
        backtest([])
    assert "Give finished runs with settings and 20 or more logged rewards" in str(caught.value)
    unknown = [run.with_updates(hyperparameters=PartialSettings()) for run in finished("sort")]
    with pytest.raises(InputError, match=r"for example sort0: needs learning_rate, "):
        backtest(unknown)
    assert fits == []


@pytest.mark.evidence
def test_curves_are_bound_as_the_fit_is(fits):
    """Start and plateau of a curve stay within the bounds that the fit gave the rewards."""
    runs = [run.with_updates(reward_floor=0.0, reward_ceiling=1.0) for run in finished("sort")]
    found = backtest(runs, seen=0.1)
    assert {p.bounds for p in found.predictions} == {(0.0, 1.0)}
    for p in found.predictions:
        if p.method in ("exponential", "hill", "stretched", "ensemble"):
            assert -0.1 < p.quantiles[0] <= p.quantiles[-1] < 1.1


# Several shares --------------------------------------------------------------------------------


@pytest.mark.evidence
def test_several_shares_are_asked_of_the_same_cohorts(fits):
    runs = [*finished("sort"), *finished("mod", 0.3)]
    found = backtest(runs, seen=(0.25, 0.1, 0.25))
    assert [{run.step[-1] for run in seen} for seen, *_ in fits] == [{25}, {25}, {10}, {10}]
    document = json.loads(found.to_json())
    assert list(document["by_share"]) == ["0.25", "0.1"]
    for share in (0.25, 0.1):
        alone = json.loads(backtest(runs, seen=share).to_json())
        assert "by_share" not in alone
        assert document["by_share"][f"{share:g}"] == alone["methods"]
    # What a program reads that knows one share only is that of the first.
    assert document["methods"] == document["by_share"]["0.25"]


@pytest.mark.evidence
def test_what_cannot_be_asked_at_one_share_is_said_with_it(fits):
    sparse = [
        run.with_updates(step=5 * run.step[:20], series={"reward": run.reward[:20]})
        for run in finished("sparse")
    ]
    found = backtest([*finished("sort"), *sparse, *finished("stuck")], seen=(0.1, 0.25))
    assert set(found.left_out) == {
        f"{run.id}: 2 rewards in its first 10% (a forecast needs 3)" for run in sparse
    }
    assert found.failed == ("stuck / tiny-s 1 at 10%", "stuck / tiny-s 1 at 25%")
    asked = {(p.seen, p.cohort.split(" ")[0]) for p in found.predictions}
    assert asked == {(0.1, "sort"), (0.25, "sort"), (0.25, "sparse")}


@pytest.mark.parametrize("seen", [0.0, 1.0, -0.1, 25.0, (0.25, 1.5), float("nan")])
def test_a_share_that_is_none_is_refused(fits, seen):
    with pytest.raises(InputError, match="is no share of a run") as caught:
        backtest(finished("sort"), seen=seen)
    assert caught.value.argument == "seen"


# Language models: analogues beside the curve ----------------------------------------------------


@pytest.mark.evidence
def test_a_cohort_without_a_curve_is_forecast_from_runs_like_its_own(fits):
    """A flat cohort and one that does not converge: answers, and why no curve is behind them."""
    large = {"parameters": 7e9}
    rng = np.random.default_rng(4)
    flat = [
        plan.run(0.5 + 0.05 * rng.standard_normal(100), f"flat{k}", task="flat").with_updates(
            **large
        )
        for k, plan in enumerate(PLANS)
    ]
    stuck = [run.with_updates(**large) for run in finished("stuck")]
    found = backtest([*flat, *stuck], priors="theory")
    assert (found.left_out, found.failed) == ((), ())
    assert len(found.uncurved) == 2
    mine = {p.run: p for p in found.predictions if p.method == "advisor"}
    assert set(mine) == {run.id for run in (*flat, *stuck)}
    for run in flat:
        assert mine[run.id].median == pytest.approx(0.5, abs=0.06)
    # Control: of small models, of which there are no analogues, none is answered.
    small = backtest([run.with_updates(parameters=1e5) for run in stuck], priors="theory")
    assert not [p for p in small.predictions if p.method == "advisor"]
    assert len(small.failed) == 1


# Presets ---------------------------------------------------------------------------------------


@pytest.mark.evidence
def test_the_preset_is_that_of_the_adapter_and_size(fits):
    lora = [
        run.with_updates(hyperparameters=run.hyperparameters.model_copy(update={"adapter": "lora"}))
        for run in finished("lora")
    ]
    large = [run.with_updates(parameters=7e9) for run in finished("large")]
    backtest([*finished("sort"), *lora, *large])
    assert {runs[0].task: priors.name for runs, priors, _ in fits} == {
        "sort": "small_models",
        "lora": "lora",
        "large": "full_finetuning",
    }


def test_a_refused_preset_names_those_that_have_not_seen_the_runs():
    runs = finished("sort")
    told = load_priors("theory").model_copy(update={"learned_from": (runs[0].fingerprint,)})
    with pytest.raises(InputError) as caught:
        chosen_preset(runs, told)
    assert caught.value.advice == (
        f"Give `priors` one that has not ({', '.join(preset_names())}), or leave them out"
    )


@pytest.mark.evidence
def test_no_run_is_scored_under_a_preset_that_learned_from_it(fits):
    """Whether it learned from the whole run or from a part of it, as a pilot."""
    runs = finished("sort")
    pilot = runs[2].first_part(0.1)
    for known in (runs[2], pilot):
        preset = load_priors("lora").model_copy(
            update={"name": "team", "learned_from": (known.fingerprint,)}
        )
        with pytest.raises(InputError, match="'team' has learned from run 'sort2': its") as caught:
            backtest(runs, priors=preset)
        assert caught.value.argument == "priors"
        # Without that run it may.
        assert backtest(runs[:2], priors=preset).predictions
    everything = preset.model_copy(update={"learned_from": tuple(run.fingerprint for run in runs)})
    with pytest.raises(InputError, match=r"learned from run 'sort\d' and 3 more"):
        backtest(runs, priors=everything)


@pytest.mark.evidence
def test_each_series_is_scored_against_itself_in_its_own_units(fits):
    """Evaluations are percent, rewards shares: neither is the outcome of the other's forecast."""
    runs = [
        run.with_updates(eval_step=run.step[4::5], eval_reward=100 * run.reward[4::5] - 20)
        for run in finished("sort")
    ]
    found = backtest(runs)
    new = [p for p in found.predictions if p.method == "advisor, as a new run"]
    train = [p for p in new if not p.cohort.endswith("held-out")]
    held_out = [p for p in new if p.cohort.endswith("held-out")]
    assert len(train) == len(held_out) == len(runs)
    of_name = {run.id: run for run in runs}
    for mine, its in zip(train, held_out, strict=True):
        run = of_name[mine.run]
        assert its.run == mine.run
        assert mine.target == pytest.approx(run.reward[-10:].mean())
        assert its.target == pytest.approx(run.eval_reward[-2:].mean())
        assert 0 <= mine.median <= 1 < its.median
        assert its.bounds[1] > 1 >= mine.bounds[1]
    last = [p for p in found.predictions if p.method == "last value" and p.cohort == its.cohort]
    assert [p.median for p in last] == [of_name[p.run].eval_reward[4] for p in last]
