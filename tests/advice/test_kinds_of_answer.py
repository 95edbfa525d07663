"""A recommendation, an infeasible request, a first contact: what each holds and names."""

from __future__ import annotations

import re

import numpy as np
import pytest
from decisions import LEVEL, STEPS, decision
from simulated_runs import Plan, made_up_posterior, without_line

from advisor.advice import Recommendation, advise, in_trainer_names, percent
from advisor.common import Kind, kinds
from advisor.forecast import Forecaster, final_reward, pilots_of, stability

NOTICED = 0.01


@pytest.mark.evidence
def test_recommendation_meets_its_level(advice):
    assert isinstance(advice, Recommendation)
    assert advice.kind == "recommendation"
    assert advice.stability.probability >= advice.level == 0.9
    assert advice.next_pilot is None
    assert (advice.target.model, advice.target.task) == ("tiny-m", "sort")
    assert advice.steps == advice.settings.planned_steps == STEPS
    assert (advice.pilots, advice.collapsed, advice.longest_pilot) == (5, 1, 60)
    assert any("planned steps = 180 (three times" in line for line in advice.assumptions)
    assert any("target = tiny-m on sort" in line for line in advice.assumptions)


@pytest.mark.evidence
def test_numbers_are_those_of_the_forecast(posterior, advice):
    forecaster = Forecaster(posterior, advice.target, seed=advice.seed)
    curve = forecaster.outcome(advice.settings, np.arange(STEPS + 1))
    last = curve[:, -1]
    assert advice.reward.mean == pytest.approx(last.mean())
    assert [advice.reward.low, advice.reward.high] == pytest.approx(
        np.quantile(final_reward(forecaster, advice.settings, STEPS), [0.1, 0.9]).tolist()
    )
    average = curve.mean(axis=0)
    share = (np.interp(advice.steps_to_95, np.arange(STEPS + 1), average) - average[0]) / (
        average[-1] - average[0]
    )
    assert share == pytest.approx(0.95, abs=0.002)
    assert advice.stability == stability(forecaster, advice.settings, STEPS)
    assert advice.peak.mean > advice.reward.mean
    assert advice.pilots_cost == sum(run.completions for run in posterior.meta.runs)


@pytest.mark.evidence
def test_infeasible_says_what_binds_and_what_next(infeasible):
    assert infeasible.kind == "infeasible"
    assert infeasible.stability.probability < 0.9
    assert infeasible.limit.axis == "learning_rate"
    part = percent(infeasible.stability.tolerance)
    assert f"its part of P(stable) is {part}, and 90 % is wanted" in infeasible.binding
    assert infeasible.next_pilot is not None
    lines = infeasible.text.splitlines()
    own = in_trainer_names(infeasible.settings)
    assert f"No setting meets what was asked. Nearest: {own}" in lines
    assert infeasible.binding in lines
    assert lines[0] == in_trainer_names(infeasible.next_pilot.settings)


def test_infeasible_because_of_the_fluctuation():
    restless = without_line(made_up_posterior(moved={"hazard.level": -20.0, "log_misfit": 0.5}))
    found = advise(restless, trials=60, weigh_pilots=False)
    assert found.kind == "infeasible"
    assert found.stability.fluctuation < 0.9 < found.stability.tolerance
    assert found.limit.case == "fluctuation"


def test_advice_after_collapses_alone_stays_below_them():
    plans = [Plan(3e-3, collapse=20), Plan(1e-2, collapse=10), Plan(1e-2, 16, collapse=10)]
    posterior = made_up_posterior(plans)
    _, lattice = decision(posterior)
    rates = lattice.axes["learning_rate"]
    assert (rates[0], rates[-1]) == (3e-5, 3e-3)
    found = advise(posterior)
    assert found.kind == "next_pilot"
    assert found.next_pilot.settings.learning_rate < 3e-3
    assert found.collapsed == found.pilots == 3
    # Who asks for no pilot is told what the model offers below them.
    assert advise(posterior, weigh_pilots=False).settings.learning_rate < 3e-3
    assert Kind.ALL_COLLAPSED in kinds(found.notes)
    assert "survived" not in found.text
    assert "3 of them collapsed" in found.text


@pytest.mark.evidence
def test_binding_configuration_is_better_and_less_stable(posterior, advice):
    said = r"learning rate (\S+), group size (\d+), K (\d+) would end at ([\d.]+), but"
    ((rate, group, interval, reward),) = re.findall(said, advice.binding)
    evaluate, lattice = decision(posterior)
    same = [
        evaluate(settings)
        for settings in lattice
        if (settings.learning_rate, settings.group_size) == (float(rate), int(group))
        and settings.refresh_interval == int(interval)
    ]
    assert any(e.reward == pytest.approx(float(reward), abs=6e-4) for e in same)
    assert float(reward) > advice.reward.mean + NOTICED
    assert all(e.stability.probability < LEVEL for e in same)


def test_settings_that_are_kept_are_those_of_the_targets_own_pilots():
    plans = [Plan(prompts=4.0), Plan(1e-3, 16, prompts=4.0), Plan(1e-4, 32, model="tiny-m")]
    posterior = made_up_posterior(plans)
    found = advise(posterior, weigh_pilots=False, trials=40)
    assert (
        found.settings.prompts_per_step
        == 16
        == pilots_of(posterior, found.target)[0].settings.prompts_per_step
    )
