"""Advice from made-up posteriors: the search, the stability, what is said, what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from synthetic import PLANS, Plan, made_up

from advisor.advice import Recommendation, check_request, recommend, stability
from advisor.advice.answer import _cheapest_equal, _fixed
from advisor.advice.lattice import RATE_RATIO, default_lattice, largest_surviving_rate
from advisor.advice.next_pilot import PILOT_LEVEL, is_first_contact
from advisor.advice.recipes import RECIPES
from advisor.advice.search import Evaluation, Evaluator, exhaustive, search, time_to_gain
from advisor.advice.stability import Stability
from advisor.advice.target import largest_target, named_target
from advisor.advice.wording import in_trainer_names, percent
from advisor.dynamics import held_limit
from advisor.errors import InputError
from advisor.integrations.export import trl_config, trl_yaml
from advisor.posterior import Forecaster, Target

STEPS = 180
HOT = {"hazard.level": 2.0}
"""Seven collapses a step at the reference: nothing survives."""


@pytest.fixture(scope="module")
def posterior():
    return made_up()


@pytest.fixture(scope="module")
def advice(posterior):
    return recommend(posterior)


@pytest.fixture(scope="module")
def infeasible():
    return recommend(made_up(moved=HOT))


@pytest.fixture(scope="module")
def first_contact():
    return recommend(made_up([Plan()]))


def quiet(stage, share, detail):
    pass


def parts(posterior, *, target=None, steps=STEPS):
    """Forecaster, fresh evaluator and default lattice."""
    target = target or largest_target(posterior)
    forecaster = Forecaster(posterior, target, seed=0)
    lattice = default_lattice(posterior, _fixed(posterior, target, steps))
    return forecaster, Evaluator(forecaster, steps), lattice


# Search ----------------------------------------------------------------------------------------

TOLERANCE = 0.01
"""Of the reward range: rewards nearer than this are called equal anyway."""


@pytest.fixture(scope="module", params=[1, 2, 3])
def landscape(request):
    posterior = made_up(seed=request.param, width=0.5)
    forecaster, evaluate, lattice = parts(posterior)
    return forecaster, lattice, exhaustive(evaluate, lattice, 0.9)


def found(landscape, seed, trials):
    forecaster, lattice, _ = landscape
    best, _ = search(
        Evaluator(forecaster, STEPS), lattice, 0.9, trials=trials, seed=seed, progress=quiet
    )
    return best


@pytest.mark.parametrize("seed", range(5))
def test_search_finds_what_trying_everything_finds(landscape, seed):
    best, optimum = found(landscape, seed, 300), landscape[2]
    assert best.stability.probability >= 0.9
    assert optimum.reward - TOLERANCE <= best.reward <= optimum.reward


def test_search_check_rejects_too_few_trials(landscape):
    shortfalls = []
    for seed in range(5):
        best = found(landscape, seed, 15)
        shortfalls.append(1.0 if best is None else landscape[2].reward - best.reward)
    assert max(shortfalls) > TOLERANCE


def test_constraint_costs_reward(landscape):
    forecaster, lattice, optimum = landscape
    free = exhaustive(Evaluator(forecaster, STEPS), lattice, 0.0)
    assert free.reward > optimum.reward
    assert free.stability.probability < 0.9


def test_search_without_a_feasible_point_gives_the_safest():
    forecaster, evaluate, lattice = parts(made_up(moved={"hazard.level": -3.0}))
    best, safest = search(evaluate, lattice, 0.9999, trials=300, seed=0, progress=quiet)
    assert best is None
    everything = Evaluator(forecaster, STEPS)
    top = max(everything(settings).stability.probability for settings in lattice)
    assert safest.stability.probability == pytest.approx(top, abs=0.01)


def test_search_says_how_far_it_is(posterior):
    _, evaluate, lattice = parts(posterior)
    said = []
    search(evaluate, lattice, 0.9, trials=30, seed=0, progress=lambda *stage: said.append(stage))
    assert [share for _, share, _ in said] == [0, 1 / 3, 2 / 3]
    assert all(stage == "Searching configurations" for stage, _, _ in said)


def test_configurations_are_evaluated_once_each_and_told_apart(posterior):
    _, evaluate, lattice = parts(posterior)
    settings = next(iter(lattice))
    assert evaluate(settings) is evaluate(settings.model_copy())
    assert len(evaluate.tried) == 1
    wider = evaluate(settings.model_copy(update={"prompts_per_step": 64.0}))
    assert wider.settings.prompts_per_step == 64
    assert wider.reward != evaluate(settings).reward
    assert len(evaluate.tried) == 2


def test_time_to_gain_worked_out_by_hand():
    curve = np.array([0.2, 0.5, 0.7, 0.79, 0.8])
    assert time_to_gain(curve, 0.5) == 1
    assert time_to_gain(curve, 0.95) == 3
    assert time_to_gain(curve[::-1], 0.95) == 4
    assert time_to_gain(np.full(9, 0.4), 0.95) == 8


def option(group_size, reward, probability):
    settings = Plan(group_size=group_size).completed
    chance = Stability(probability=probability, refresh=1.0, tolerance=probability, error=0.0)
    return Evaluation(settings, reward, chance)


def test_smallest_group_wins_among_equal_rewards(posterior):
    best = option(64, 0.800, 0.95)
    tried = [
        best,
        option(32, 0.795, 0.95),
        option(16, 0.791, 0.92),
        option(16, 0.792, 0.94),
        option(8, 0.789, 0.99),  # loses more than a hundredth
        option(4, 0.799, 0.89),  # not stable enough
    ]
    chosen = _cheapest_equal(SimpleNamespace(tried=tried), best, 0.9, posterior)
    assert chosen is tried[3]
    assert _cheapest_equal(SimpleNamespace(tried=[best]), best, 0.9, posterior) is best
    # A hundredth of the reward range, whatever its units.
    wide = made_up(bounds=(0.0, 10.0))
    assert _cheapest_equal(SimpleNamespace(tried=tried), best, 0.9, wide) is tried[4]


def test_advice_does_not_pay_for_a_group_that_gains_nothing():
    # Where the group size does nothing, the smallest on offer must win.
    useless = {"rate.group_size": 0.0, "depression.batch": 0.0, "hazard.batch": 0.0}
    found = recommend(made_up(moved=useless), seed=1)
    assert found.settings.group_size == 4
    assert recommend(made_up(moved={"rate.group_size": 0.5}), seed=1).settings.group_size == 64


# Stability -------------------------------------------------------------------------------------


def chance(posterior, plan=PLANS[1], steps=STEPS, **change):
    target = Target("sort", "tiny-s", 1e5)
    return stability(Forecaster(posterior, target), replace(plan, **change).completed, steps)


def test_probability_falls_with_the_learning_rate_and_the_steps(posterior):
    rates = [chance(posterior, learning_rate=r).probability for r in (1e-5, 1e-4, 1e-3, 1e-2)]
    lengths = [chance(posterior, steps=steps).probability for steps in (10, 100, 1000, 10_000)]
    for falling in (rates, lengths):
        assert np.all(np.diff(falling) < 0)
        assert falling[0] > 0.9 > 0.5 > falling[-1]


def test_probability_falls_with_epochs_more_than_with_minibatches(posterior):
    once = chance(posterior, minibatches=1).tolerance
    assert chance(posterior, minibatches=1, epochs=8).tolerance < chance(posterior).tolerance < once


STIFF = {"log_slope": -1.0, "headroom_logit": 1.0}


@pytest.mark.parametrize("ratio", [False, True])
def test_refresh_part_falls_with_the_interval_where_staleness_counts(ratio):
    # Without a ratio all staleness counts; with one as much as is left uncorrected, here all.
    posterior = made_up(moved={**STIFF, "uncorrected_log_odds": 40.0})
    intervals = (1, 2, 4, 8, 16, 32, 64)
    shares = [chance(posterior, minibatches=K, ratio=ratio).refresh for K in intervals]
    assert np.all(np.diff(shares) <= 0)
    assert shares[0] > 0.95
    assert shares[-1] < 0.05


def test_refresh_part_is_one_where_nothing_is_stale():
    posterior = made_up(moved={**STIFF, "uncorrected_log_odds": -40.0})
    for interval in (1, 8, 64):
        assert chance(posterior, minibatches=interval).refresh == 1
    # The control: the same posterior without the ratio is far from stable.
    assert chance(posterior, minibatches=64, ratio=False).refresh < 0.05


def test_refresh_part_is_the_share_of_draws_below_the_exact_limit():
    posterior = made_up(moved=STIFF)
    settings = Plan(minibatches=8, ratio=False).completed
    forecaster = Forecaster(posterior, Target("sort", "tiny-s", 1e5))
    stiffest = forecaster.law_stiffness(settings) * np.exp(forecaster.log_stiffness_ratio)
    below = stiffest < held_limit(0.9, 8)
    assert 0.05 < below.mean() < 0.95
    assert stability(forecaster, settings, STEPS).refresh == below.mean()


def test_parts_bound_the_whole(posterior):
    for plan in PLANS:
        found = chance(posterior, plan)
        assert found.probability <= min(found.refresh, found.tolerance) + 1e-12
        assert found.probability >= found.refresh + found.tolerance - 1 - 1e-12
        assert 0 <= found.error < 0.03


# Kinds of answer -------------------------------------------------------------------------------


def test_recommendation_meets_its_level(posterior, advice):
    assert isinstance(advice, Recommendation)
    assert advice.kind == "recommendation"
    assert advice.stability.probability >= advice.level == 0.9
    assert advice.next_pilot is None
    assert (advice.target.model, advice.target.task) == ("tiny-m", "sort")
    assert advice.steps == advice.settings.planned_steps == STEPS
    assert (advice.pilots, advice.collapsed, advice.longest_pilot) == (5, 1, 60)
    assert any("planned steps = 180 (three times" in line for line in advice.assumptions)
    assert any("target = tiny-m on sort" in line for line in advice.assumptions)


def test_stricter_level_is_safer_and_earns_less(posterior, advice):
    strict = recommend(posterior, level=0.99)
    assert strict.stability.probability >= 0.99 > advice.stability.probability
    assert strict.reward.mean < advice.reward.mean
    assert strict.settings.learning_rate < advice.settings.learning_rate
    assert strict.binding.startswith("P(stable): learning rate")


def test_infeasible_says_what_binds_and_what_next(infeasible):
    assert infeasible.kind == "infeasible"
    assert infeasible.stability.probability < 0.9
    assert "the learning rate that this task and model tolerate" in infeasible.binding
    assert f"its part is {percent(infeasible.stability.tolerance)}" in infeasible.binding
    assert "the level asks for 90 %" in infeasible.binding
    assert infeasible.next_pilot is not None
    lines = infeasible.text.splitlines()
    assert lines[0] == "No configuration reaches P(stable) = 90 %. The safest one found:"
    assert lines[1] == in_trainer_names(infeasible.settings)
    assert any(line.startswith("Next pilot (60 steps): ") for line in lines)


def test_infeasible_because_of_stale_rollouts():
    plans = [replace(plan, lag=40.0, ratio=False) for plan in PLANS]
    stale = made_up(plans, moved={"log_slope": 0.0, "hazard.level": -20.0})
    found = recommend(stale, trials=30)
    assert found.kind == "infeasible"
    assert found.stability.refresh < 0.9 < found.stability.tolerance
    assert found.binding.startswith("the refresh interval (its part is ")


@pytest.mark.parametrize(
    "plans",
    [
        [Plan()],
        [Plan(), Plan(1e-3)],
        [Plan(), Plan(steps=50), Plan(steps=40)],
    ],
    ids=["one run", "two runs", "three runs of one setting"],
)
def test_few_pilots_are_answered_with_the_next_one(plans):
    posterior = made_up(plans)
    assert is_first_contact(posterior)
    found = recommend(posterior)
    assert found.kind == "next_pilot"
    assert found.next_pilot.steps == 60
    assert found.next_pilot.stability.probability >= PILOT_LEVEL
    surviving = largest_surviving_rate(posterior)
    assert found.next_pilot.settings.learning_rate > surviving
    assert f"learning rate {surviving:.2g} survived" in found.next_pilot.reason
    assert found.text.startswith("Not enough pilots for a recommendation")
    assert not is_first_contact(made_up([Plan(), Plan(1e-3), Plan(1e-4)]))


def test_bound_of_a_first_pilot_is_the_largest_rate_at_the_level(first_contact):
    said = r"^learning rates up to (\S+) keep P\(stable\) at 90 %"
    (rate,) = re.findall(said, first_contact.binding)
    posterior = made_up([Plan()])
    forecaster, _, lattice = parts(posterior)
    assert float(rate) in lattice.learning_rates
    for offered in lattice.learning_rates:
        settings = first_contact.settings.model_copy(update={"learning_rate": offered})
        allowed = stability(forecaster, settings, STEPS).probability >= 0.9
        assert allowed == (offered <= float(rate))


def test_first_pilot_where_nothing_survives():
    found = recommend(made_up([Plan()], moved=HOT))
    assert found.kind == "next_pilot"
    assert found.binding == "no learning rate tried keeps P(stable) at 90 %"
    assert found.next_pilot.settings.learning_rate == 1e-4
    assert "would probably collapse" in found.next_pilot.reason


def test_collapsed_pilots_send_the_next_one_down():
    for plans in ([Plan(9e-3, collapse=20)], [Plan(9e-3, collapse=20), Plan(2e-2, collapse=9)]):
        posterior = made_up(plans)
        assert largest_surviving_rate(posterior) is None
        found = recommend(posterior)
        assert found.kind == "next_pilot"
        assert found.settings.learning_rate == 9e-3
        assert found.next_pilot.settings.learning_rate == 3e-3
        assert "every pilot collapsed" in found.next_pilot.reason
        assert "Every pilot collapsed; nothing here is known to live." in found.cautions


def test_advice_after_collapses_alone_stays_below_them():
    plans = [Plan(3e-3, collapse=20), Plan(1e-2, collapse=10), Plan(1e-2, 16, collapse=10)]
    posterior = made_up(plans)
    _, _, lattice = parts(posterior)
    assert (lattice.learning_rates[0], lattice.learning_rates[-1]) == (3e-5, 3e-3)
    found = recommend(posterior)
    assert found.collapsed == found.pilots == 3
    assert "Every pilot collapsed; nothing here is known to live." in found.cautions
    assert "survived" not in found.text
    assert "3 of them collapsed" in found.text


# Lattice and targets ---------------------------------------------------------------------------


def test_lattice_reaches_a_little_beyond_the_pilots(posterior):
    _, _, lattice = parts(posterior)
    # From a third of the gentlest pilot to three times the largest that survived (not the 3e-3
    # that collapsed), six to a decade.
    assert (lattice.learning_rates[0], lattice.learning_rates[-1]) == (3.3e-5, 3e-3)
    ratios = np.diff(np.log(lattice.learning_rates))
    np.testing.assert_allclose(ratios, np.log(RATE_RATIO), atol=0.06)
    assert lattice.group_sizes == (4, 8, 16, 32, 64)
    assert (lattice.minibatches, lattice.epochs) == ((1, 2, 4, 8), (1, 2))
    everything = list(lattice)
    assert len(everything) == len(lattice) == len(set(everything)) == 13 * 5 * 4 * 2
    for settings in everything:
        kept = settings.model_dump(exclude={*RECIPES["TRL defaults"]})
        assert kept == lattice.fixed.model_dump(exclude={*RECIPES["TRL defaults"]})


def test_given_choices_are_the_only_ones(posterior):
    found = recommend(posterior, group_sizes=(32, 12), learning_rates=(2e-4, 5e-5), trials=40)
    assert found.settings.group_size in (12, 32)
    assert found.settings.learning_rate == 2e-4
    assert "at the edge of what was offered (0.0002)" in found.binding


@pytest.mark.parametrize("name", ["group_sizes", "learning_rates"])
@pytest.mark.parametrize("choices", [(), (0,), (8, -1)])
def test_choices_that_are_none_are_refused(posterior, name, choices):
    with pytest.raises(InputError, match="empty or not positive") as caught:
        recommend(posterior, **{name: choices})
    assert caught.value.key == name


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 90.0, float("nan")])
def test_level_that_is_no_probability_is_refused(posterior, level):
    with pytest.raises(InputError, match="is no probability") as caught:
        recommend(posterior, level=level)
    assert caught.value.key == "level"


@pytest.mark.parametrize("steps", [0, -5])
def test_run_of_no_steps_is_refused(posterior, steps):
    with pytest.raises(InputError, match=f"{steps} planned steps"):
        recommend(posterior, steps=steps)
    with pytest.raises(InputError, match=f"{steps} planned steps"):
        check_request(0.9, steps)


def test_unknown_task_is_refused_with_the_choices(posterior):
    with pytest.raises(InputError, match=r"no pilot trained task 'chess'.*Choose one of sort"):
        recommend(posterior, target=Target("chess", "tiny-s", 1e5))
    with pytest.raises(InputError, match=r"no pilot trained task 'chess'.*Choose one of sort"):
        named_target(posterior, task="chess")


@pytest.mark.parametrize("start", [0.0, 1.0, -0.2, 1.5])
def test_start_reward_outside_the_bounds_is_refused(posterior, start):
    with pytest.raises(InputError, match=r"lies outside \(0, 1\)") as caught:
        recommend(posterior, target=Target("sort", "tiny-s", 1e5, start))
    assert caught.value.key == "start_reward"


def test_start_reward_is_in_reward_units():
    posterior = made_up(bounds=(-10.0, 30.0))
    target = Target("sort", "tiny-m", 4e5, 2.0)
    assert Forecaster(posterior, target).reward(PLANS[4].completed, 0) == pytest.approx(2.0)
    with pytest.raises(InputError, match=r"lies outside \(-10, 30\)"):
        recommend(posterior, target=replace(target, start_reward=31.0))


def test_new_model_is_advised_with_a_caution(posterior):
    new = recommend(posterior, target=named_target(posterior, "tiny-8M"), trials=60)
    assert new.target.parameters == 8e6
    (caution,) = [line for line in new.cautions if "tiny-8M" in line]
    assert caution == (
        "No pilot ran tiny-8M on sort: its stiffness, start and tolerance are extrapolated from 2 "
        "model sizes."
    )
    assert f"Caution: {caution}" in new.text
    known = recommend(posterior, trials=60)
    assert not any("No pilot ran" in line for line in known.cautions)
    # An unknown model is less sure than a piloted one of the same size.
    twin, own = (
        Forecaster(posterior, Target("sort", name, 4e5)).reward(PLANS[4].completed, STEPS).std()
        for name in ("tiny-twin", "tiny-m")
    )
    assert twin > own


def test_targets_are_completed_from_the_pilots(posterior):
    assert largest_target(posterior) == named_target(posterior) == Target("sort", "tiny-m", 4e5)
    assert named_target(posterior, "tiny-s") == Target("sort", "tiny-s", 1e5)
    assert named_target(posterior, parameters=7e9).parameters == 7e9
    assert named_target(posterior, "Qwen2.5-7B").parameters == 7e9
    assert named_target(posterior, "mine", parameters=2e6, start_reward=0.4).start_reward == 0.4
    with pytest.raises(InputError, match="the size of model 'mine' is unknown"):
        named_target(posterior, "mine")
    with pytest.raises(InputError, match=r"'tiny-s' has 1e\+05 parameters, not 2e\+05"):
        named_target(posterior, "tiny-s", parameters=2e5)


def test_longer_run_than_the_pilots_support_is_said(posterior, advice):
    assert not any("times the longest pilot" in line for line in advice.cautions)
    long = recommend(posterior, steps=1000, trials=60)
    assert any("1000 steps are more than 3 times" in line for line in long.cautions)


# Words -----------------------------------------------------------------------------------------


def numbers(pattern, text):
    (found,) = re.findall(pattern, text)
    return [float(part) for part in found] if isinstance(found, tuple) else float(found)


def test_first_line_can_be_pasted(advice):
    first = advice.text.splitlines()[0]
    assert first == in_trainer_names(advice.settings)
    parsed = dict(part.split("=") for part in first.split(", "))
    assert float(parsed["learning_rate"]) == advice.settings.learning_rate
    assert int(parsed["num_generations"]) == advice.settings.group_size
    assert int(parsed["num_iterations"]) == advice.settings.epochs_per_refresh
    assert parsed["steps_per_generation"] == (
        f"{advice.settings.minibatches_per_refresh} x gradient_accumulation_steps"
    )


@pytest.mark.parametrize("kind", ["advice", "infeasible", "first_contact"])
def test_numbers_in_the_text_are_those_of_the_model(kind, request):
    said = request.getfixturevalue(kind)
    plans = [Plan()] if kind == "first_contact" else PLANS
    posterior = made_up(plans, moved=HOT if kind == "infeasible" else None)
    forecaster = Forecaster(posterior, said.target)
    curve = forecaster.reward(said.settings, np.arange(said.steps + 1))
    last = curve[:, -1]
    line = rf"Reward after {said.steps} steps: ([\d.]+), 80 % interval \[([\d.]+), ([\d.]+)\]"
    mean, low, high = numbers(line, said.text)
    assert mean == pytest.approx(last.mean(), abs=6e-4)
    assert [low, high] == pytest.approx(np.quantile(last, [0.1, 0.9]).tolist(), abs=6e-4)
    reached = numbers(r"95 % of that gain is reached by step (\d+)", said.text)
    average = curve.mean(axis=0)
    assert (average[int(reached)] - average[0]) / (average[-1] - average[0]) >= 0.95
    assert (average[int(reached) - 1] - average[0]) / (average[-1] - average[0]) < 0.95
    chances = stability(forecaster, said.settings, said.steps)
    assert chances == said.stability
    whole = f"P(stable to step {said.steps}) = {percent(chances.probability)} (wanted: 90 %)"
    assert whole in said.text
    assert f"refreshed often enough {percent(chances.refresh)}" in said.text
    assert f"learning rate tolerated {percent(chances.tolerance)}." in said.text
    settings = said.settings
    rate, group, interval = numbers(
        r": learning rate (\S+), group size (\d+), refresh interval (\d+) \(", said.text
    )
    assert (rate, group) == (settings.learning_rate, settings.group_size)
    assert interval == settings.refresh_interval
    if said.next_pilot is not None:
        pilot = said.next_pilot
        assert f"Next pilot ({pilot.steps} steps): {in_trainer_names(pilot.settings)}." in said.text
        sure = stability(forecaster, pilot.settings, pilot.steps)
        assert f"stable with probability {percent(sure.probability)}" in said.text


def test_recipes_are_judged_under_the_same_posterior(posterior, advice):
    forecaster = Forecaster(posterior, advice.target)
    assert [recipe.name for recipe in advice.recipes] == list(RECIPES)
    for recipe in advice.recipes:
        expected = advice.settings.model_copy(update=RECIPES[recipe.name])
        assert recipe.settings == expected
        assert recipe.reward == pytest.approx(forecaster.reward(expected, STEPS).mean())
        assert recipe.stability == stability(forecaster, expected, STEPS)
        line = (
            f"  {recipe.name}: reward {recipe.reward:.3f}, "
            f"P(stable) {percent(recipe.stability.probability)}"
        )
        assert line in advice.text


def test_binding_configuration_is_better_and_less_stable(posterior, advice):
    rate, group, interval, reward = numbers(
        r"learning rate (\S+), group size (\d+), K (\d+) would give ([\d.]+) at", advice.binding
    )
    _, evaluate, lattice = parts(posterior)
    same = [
        evaluate(settings)
        for settings in lattice
        if (settings.learning_rate, settings.group_size) == (rate, group)
        and settings.refresh_interval == interval
    ]
    assert any(e.reward == pytest.approx(reward, abs=6e-4) for e in same)
    assert reward > advice.reward.mean + 0.01
    assert all(e.stability.probability < 0.9 for e in same)


def test_cautions_name_what_was_not_varied(first_contact, advice):
    said = "\n".join(first_contact.cautions)
    assert "No pilot failed" in said
    assert "All pilots ran at learning rate 0.0003" in said
    assert "All pilots ran at group size 8" in said
    assert advice.cautions == ()
    unratioed = recommend(made_up([replace(plan, ratio=False) for plan in PLANS]), trials=40)
    assert any("without an importance ratio" in line for line in unratioed.cautions)


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.0, "over 99 %"), (0.996, "over 99 %"), (0.9, "90 %"), (0.006, "1 %"), (0.0, "under 1 %")],
)
def test_percent_never_says_certain(value, said):
    assert percent(value) == said


def test_table_shows_the_advice_beside_the_recipes(advice, infeasible, first_contact):
    table = advice.table
    assert table.index.tolist() == ["advised", *RECIPES]
    assert table["learning rate"].tolist()[0] == advice.settings.learning_rate
    assert table[f"reward at step {STEPS}"].tolist()[0] == advice.reward.mean
    assert table["P(stable)"].tolist()[0] == advice.stability.probability
    assert infeasible.table.index[0] == "safest"
    assert first_contact.table.index[0] == "piloted"


def test_json_holds_everything(advice):
    again = Recommendation.model_validate(json.loads(advice.to_json()))
    assert again == advice
    assert again.text == advice.text


def test_same_seed_same_answer(posterior, advice):
    assert recommend(posterior).to_json() == advice.to_json()
    assert recommend(posterior, seed=1).to_json() != advice.to_json()


# TRL -------------------------------------------------------------------------------------------


def advised(advice, **settings):
    return advice.model_copy(update={"settings": advice.settings.model_copy(update=settings)})


@pytest.mark.parametrize("minibatches", [1, 3, 8])
@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("prompts", [1.0, 6.0, 16.0])
def test_trl_arithmetic_gives_back_what_was_advised(advice, minibatches, epochs, prompts):
    changed = advised(
        advice,
        minibatches_per_refresh=minibatches,
        epochs_per_refresh=epochs,
        prompts_per_step=prompts,
    )
    config = trl_config(changed)
    accumulation = config["gradient_accumulation_steps"]
    interval = config["num_iterations"] * config["steps_per_generation"] / accumulation
    assert interval == changed.settings.refresh_interval == minibatches * epochs
    generated = config["per_device_train_batch_size"] * config["steps_per_generation"]
    assert generated % config["num_generations"] == 0
    # Completions of one optimizer step, over those of a group: the prompts.
    completions = config["per_device_train_batch_size"] * accumulation
    assert completions / config["num_generations"] == prompts
    # All prompts of one batch of rollouts feed its mini-batches.
    assert generated / config["num_generations"] == prompts * minibatches
    assert all(isinstance(value, int | float | str) for value in config.values())


def test_trl_config_says_what_was_advised(advice):
    config = trl_config(advice)
    assert config["learning_rate"] == advice.settings.learning_rate
    assert config["num_generations"] == advice.settings.group_size
    assert config["max_steps"] == advice.steps
    assert config["lr_scheduler_type"] == "constant_with_warmup"
    assert (config["optim"], config["adam_beta1"]) == ("adamw_torch", 0.9)
    assert (config["beta"], config["epsilon"], config["epsilon_high"]) == (0.0, 0.2, 0.2)
    assert config["scale_rewards"] == "group"
    assert "max_completion_length" not in config
    longer = trl_config(advised(advice, max_completion_length=512, schedule="cosine"))
    assert (longer["max_completion_length"], longer["lr_scheduler_type"]) == (512, "cosine")
    assert "adam_beta1" not in trl_config(advised(advice, optimizer="sgd"))


@pytest.mark.parametrize("prompts", [0.5, 10.5])
def test_broken_prompts_are_refused(advice, prompts):
    with pytest.raises(InputError, match=f"{prompts:g} prompts per step is no whole number") as no:
        trl_config(advised(advice, prompts_per_step=prompts))
    assert no.value.key == "prompts_per_step"


def test_yaml_parses_back(advice, infeasible):
    for said in (advice, infeasible, advised(advice, learning_rate=1e-6)):
        text = trl_yaml(said)
        assert yaml.safe_load(text) == trl_config(said)
        assert f"# Refresh interval K = {said.settings.refresh_interval} optimizer steps" in text
    assert "NOT a recommendation" not in trl_yaml(advice)
    assert "# NOT a recommendation (infeasible)" in trl_yaml(infeasible)
