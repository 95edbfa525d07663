"""Logs that are odd or poor: a forecast, or a sentence that says what is wrong. With real fits."""

from __future__ import annotations

import numpy as np
import pytest
from processor_time import at_most
from simulated_runs import Plan, rising

from advisor.backtesting import backtest

MOST_SECONDS = 60
"""For four runs of ten thousand steps; a quiet machine with two cores takes a tenth of it."""


def noisy(index, rows=100, end=0.8, name="run"):
    noise = 0.03 * np.random.default_rng(index).standard_normal(rows)
    curve = rising(rows, end=end, time=rows / 5) + noise
    return Plan(3e-4 * (1 + index)).run(curve, f"{name}{index}")


def score(found):
    return found.methods()["advisor"]


@pytest.mark.evidence
def test_one_run_is_forecast_alone():
    found = backtest([noisy(0)], priors="small_models")
    assert {p.run for p in found.predictions} == {"run0"}
    (mine,) = [p for p in found.predictions if p.method == "advisor"]
    assert mine.covers(0.95)


@pytest.mark.evidence
def test_runs_that_all_collapsed_are_forecast_to_stay_down():
    runs = []
    for index in range(4):
        curve = rising(100, time=15.0)
        curve[10:] = 0.002 * np.random.default_rng(index).random(90)
        runs.append(Plan(1e-3 * (1 + index)).run(curve, f"dead{index}"))
    found = backtest(runs, priors="small_models")
    assert found.left_out == found.failed == ()
    for p in found.predictions:
        if p.method == "advisor":
            assert p.median < 0.02


@pytest.mark.evidence
def test_a_run_given_twice_counts_once():
    found = backtest([noisy(0), noisy(0).with_updates(id="again")], priors="small_models")
    assert {p.run for p in found.predictions} == {"run0"}
    assert found.left_out == ("again: its first part is that of another run",)


@pytest.mark.evidence
def test_runs_on_two_scales_of_reward_are_forecast_each_on_its_own():
    wide = [
        run.with_updates(series={"reward": 30 * run.reward})
        for run in (noisy(index, name="wide") for index in range(3))
    ]
    found = backtest([*(noisy(index) for index in range(3)), *wide], priors="small_models")
    assert found.left_out == found.failed == ()
    targets = {p.run[:4]: p for p in found.predictions if p.method == "advisor"}
    assert targets["wide"].bounds[1] > 20
    assert targets["run2"].bounds == (0.0, 1.0)
    assert score(found)["mae"] < 0.15


def test_rewards_that_never_move_are_no_curve():
    still = [
        run.with_updates(series={"reward": np.full(run.step.size, 0.2)})
        for run in (noisy(index) for index in range(3))
    ]
    found = backtest(still, priors="small_models")
    assert found.predictions == ()
    assert {line.split(": ")[1] for line in found.left_out} == {
        "reward is the same in every row in all 3 runs"
    }


@pytest.mark.evidence
def test_runs_that_have_not_moved_yet_are_forecast_all_the_same():
    found = backtest([noisy(index, end=0.2) for index in range(3)], priors="small_models")
    assert found.left_out == found.failed == ()
    assert len({p.run for p in found.predictions if p.method == "advisor"}) == 3


@pytest.mark.evidence
def test_long_runs_take_no_longer():
    with at_most(MOST_SECONDS):
        found = backtest([noisy(index, rows=10_000) for index in range(4)], priors="small_models")
    assert score(found)["runs"] == 4
