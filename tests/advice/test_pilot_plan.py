"""The plan before any pilot: worth what it costs, or not made; and what it rests on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from advisor.advice import PilotPlan, planned_settings, size_of
from advisor.advice import plan as plan_pilots
from advisor.advice.pilot_choice import Action
from advisor.advice.pilot_plan import _varied
from advisor.errors import InputError
from advisor.forecast import Target
from advisor.model import NormalPrior, load_priors

FEW_PROJECTS = 0.15
LEAST_STEPS = 10
VARIED = ((1.0, 4.0), (0.5, 1.0))

BIG = Target("task", "big", 7e9)
TOLD = {"learning_rate": "1e-6", "group_size": "8", "prompts_per_step": 128}


@pytest.fixture(scope="module")
def settings():
    return planned_settings(TOLD)[0]


@pytest.fixture(scope="module")
def plan(settings):
    return plan_pilots(settings, 500, BIG)


def test_pilots_form_a_ladder_round_the_rate_within_the_price(plan, settings):
    assert plan.kind == "pilots"
    rates = [pilot.settings.learning_rate for pilot in plan.pilots]
    assert rates == sorted(set(rates))
    assert min(rates) < settings.learning_rate < max(rates)
    assert sum(pilot.price for pilot in plan.pilots) <= 0.2 + 1e-9
    assert all(pilot.steps >= LEAST_STEPS for pilot in plan.pilots)
    assert all(pilot.settings.planned_steps == pilot.steps for pilot in plan.pilots)
    same = set(type(settings).model_fields) - {"learning_rate", "planned_steps"}
    for field in same:
        assert {getattr(p.settings, field) for p in plan.pilots} == {getattr(settings, field)}
    assert "Only their learning rates differ." in plan.text


def test_all_settings_vary_only_where_that_is_asked_for(plan, settings):
    varied = plan_pilots(settings, 500, BIG, vary_all=True)
    sizes = {(p.settings.group_size, p.settings.refresh_interval) for p in varied.pilots}
    assert len(sizes) == 3
    # The middle pilot is the run as it would be launched, but for its rate.
    middle = varied.pilots[1].settings
    assert middle.group_size == settings.group_size
    assert middle.refresh_interval == settings.refresh_interval
    assert "learning rates, group sizes and refresh intervals differ" in varied.text


def test_text_says_how_far_the_answer_will_extrapolate(plan, settings):
    times = plan.steps / plan.pilots[0].steps
    assert times > 3
    says = f"{times:.3g} times as long as a pilot: the answer will extrapolate. "
    assert times > plan.reach
    within = math.ceil(500 / plan.reach)
    assert f"{says}Its intervals were tested up to {plan.reach:g} times only" in plan.text
    assert f"pilots of {within} steps, for {3 * within / 5:.0f} % of the price" in plan.text
    longer = plan_pilots(settings, 500, BIG, share=0.3)
    assert 3 < longer.steps / longer.pilots[0].steps <= longer.reach
    assert "Pilots of 167 steps would avoid that" in longer.text
    near = longer.model_copy(update={"steps": 3 * longer.pilots[0].steps})
    assert "extrapolate" not in near.text


DAMAGES = [{"reach": 0.99}, {"reach": 1e-320}, {"projects": 10**400}, {"steps": 10**400}]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_plan_of_impossible_numbers_is_refused(plan, damage, tmp_path):
    damaged = plan.model_copy(update=damage)
    (tmp_path / "plan.json").write_text(damaged.model_dump_json())
    with pytest.raises(InputError, match=next(iter(damage))):
        PilotPlan.load(tmp_path)
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    assert PilotPlan.load(tmp_path).text == plan.text


def test_rates_lie_between_one_s_own_and_where_others_did_best(plan, settings):
    known = load_priors(plan.priors).known_optimum.learning_rate
    middle = plan.pilots[len(plan.pilots) // 2].settings.learning_rate
    assert middle == pytest.approx((settings.learning_rate * known) ** 0.5, rel=0.05)
    assert "between yours and where others did best" in plan.text
    sure = plan_pilots(settings, 500, BIG, projects=100)
    middle = sure.pilots[len(sure.pilots) // 2].settings.learning_rate
    assert middle == pytest.approx(settings.learning_rate, rel=0.05)
    assert "between yours" not in sure.text


def test_pilots_vary_what_the_run_leaves_whole(settings):
    rates = (1e-7, 1e-6, 1e-5)
    sizes = [(one.group_size, one.refresh_interval) for one in _varied(settings, rates, VARIED)]
    assert sizes[1] == (settings.group_size, settings.refresh_interval)
    assert len(set(sizes)) == 3
    odd = settings.model_copy(update={"group_size": 3})
    # Half a group of three is none: that pilot keeps what the run has.
    assert [one.group_size for one in _varied(odd, rates, VARIED)] == [3, 3, 3]
    assert _varied(odd, rates, VARIED)[0].refresh_interval == 4


def test_a_plan_s_prices_are_those_of_its_pilots(plan, settings):
    batch = settings.group_size * settings.prompts_per_step
    for pilot in plan.pilots:
        own = pilot.settings.group_size * pilot.settings.prompts_per_step
        assert pilot.price == pytest.approx(pilot.steps / plan.steps * own / batch)


def test_worth_is_the_gain_less_what_the_shorter_run_loses(plan):
    for design in plan.designs:
        assert design.left == round((1 - design.price) * plan.steps)
        assert 0 <= design.gain < 0.5
        assert design.worth < design.gain
    best = max(plan.designs, key=lambda design: design.worth)
    assert f"{best.steps} steps, {100 * best.price:.0f} % of the price: " in plan.text
    assert f"{100 * best.worth:+.1f}" in plan.text
    assert plan.priors == "full_finetuning"


def test_nothing_is_worth_a_pilot_where_nothing_is_unknown(settings):
    """The negative control: a preset that knows everything is told nothing by pilots."""
    sure = load_priors("theory")
    narrow = {
        name: entry.model_copy(update={"sd": 1e-3 * entry.sd})
        for name in type(sure).model_fields
        if isinstance(entry := getattr(sure, name), NormalPrior)
    }
    known = sure.model_copy(update=narrow)
    plan = plan_pilots(settings, 500, BIG, priors=known, projects=100)
    assert plan.kind == "run"
    assert plan.text.startswith("Run: no pilot is worth its price")
    assert max(design.gain for design in plan.designs) < 0.01
    # What one project alone has taught is no knowledge of where the best settings lie.
    guessed = plan_pilots(settings, 500, BIG, priors=known)
    assert guessed.kind == "pilots"
    gains = [max(design.gain for design in found.designs) for found in (guessed, plan)]
    assert gains[0] - gains[1] == pytest.approx(FEW_PROJECTS * (1 - 1 / 100))
    assert "from 1 project lost 15 %" in guessed.text


def test_what_is_missing_or_wrong_is_named(settings):
    with pytest.raises(InputError, match=r"lacks group_size, prompts_per_step"):
        planned_settings({"learning_rate": 1e-6})
    with pytest.raises(InputError, match="learning_rat"):
        planned_settings({"learning_rat": 1e-6})
    with pytest.raises(InputError, match="the size of model 'big' is unknown"):
        size_of("big", None, "parameters")
    assert size_of("Qwen2.5-7B", None, "parameters") == 7e9
    with pytest.raises(InputError, match="no 3 pilots of 10 steps"):
        plan_pilots(settings, 20, BIG)
    with pytest.raises(InputError, match="no share"):
        plan_pilots(settings, 500, BIG, share=1.5)
    with pytest.raises(InputError, match="0 projects"):
        plan_pilots(settings, 500, BIG, projects=0)
    with pytest.raises(InputError, match=r"steps. Give 1 to 1,000,000"):
        plan_pilots(settings, 10**400, BIG)


def test_pilots_of_a_design_have_seeds_of_their_own(monkeypatch, settings):
    effects, of = [], Action.of

    def spied(forecaster, *given):
        effects.append(forecaster.run_effect.ravel())
        return of(forecaster, *given)

    monkeypatch.setattr(Action, "of", spied)
    plan_pilots(settings, 500, BIG)
    assert np.abs(np.corrcoef(effects[:3]) - np.eye(3)).max() < 0.1
