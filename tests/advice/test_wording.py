"""The answer in words: what can be pasted, numbers that are those of the answer, no gaps."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from decisions import HOT, STEADY, changed, decision, timed, with_evaluations
from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import (
    PLANS,
    Plan,
    made_up_posterior,
)

from advisor.advice import Cost, advise
from advisor.advice.evaluate import base_settings
from advisor.advice.wording import (
    _silent_groups,
    in_trainer_names,
    percent,
    price,
    summary_text,
    weightiest,
)
from advisor.common import counted
from advisor.forecast.forecaster import Forecaster
from advisor.forecast.predictive import final_reward
from advisor.forecast.survival import stability

KINDS = ["advice", "infeasible", "first_contact"]


def pasted(line):
    """Trainer arguments of one line."""
    parsed = dict(part.split("=", 1) for part in line.split(", "))
    assert list(parsed) == [
        "learning_rate",
        "num_generations",
        "num_iterations",
        "generation_batch_size",
    ]
    return parsed


def assert_says(line, settings):
    parsed = pasted(line)
    assert float(parsed["learning_rate"]) == settings.learning_rate
    assert int(parsed["num_generations"]) == settings.group_size
    assert int(parsed["num_iterations"]) == settings.epochs_per_refresh
    fresh = settings.prompts_per_step * settings.group_size * settings.minibatches_per_refresh
    assert int(parsed["generation_batch_size"]) == fresh


@pytest.mark.evidence
def test_first_line_of_an_advice_can_be_pasted(advice):
    assert advice.kind == "recommendation"
    assert_says(advice.text.splitlines()[0], advice.settings)


@pytest.mark.evidence
def test_nearest_of_an_infeasible_request_can_be_pasted_from_its_second_line(infeasible):
    assert infeasible.kind == "infeasible"
    assert_says(infeasible.text.splitlines()[1], infeasible.settings)


@pytest.mark.parametrize("kind", ["infeasible", "first_contact"])
def test_next_pilot_can_be_pasted(kind, request):
    said = request.getfixturevalue(kind)
    lines = said.summary.splitlines()
    named = f"Next pilot, {said.next_pilot.steps} steps:"
    (at,) = (at for at, line in enumerate(lines) if line.endswith(named))
    assert_says(lines[at + 1].strip(), said.next_pilot.settings)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_ten_lines_at_most(kind, request):
    """With its title, what was assumed and where the study lies a terminal shows a dozen or so."""
    said = request.getfixturevalue(kind).model_copy(update={"cautions": ("one.",) * 4})
    assert len([line for line in said.summary.splitlines() if line]) <= 10
    assert said.text.count("Caution: one.") == 4


@STEADY
@given(st.floats(1e-9, 1.0), st.integers(2, 512), st.integers(1, 64), st.integers(1, 16))
def test_pasted_learning_rate_is_not_rounded(rate, group, minibatches, epochs):
    settings = changed(
        Plan().completed,
        learning_rate=rate,
        group_size=group,
        minibatches_per_refresh=minibatches,
        epochs_per_refresh=epochs,
    )
    assert_says(in_trainer_names(settings), settings)


def test_advised_learning_rate_is_not_rounded_in_the_line_to_paste(posterior):
    rate = 2.1544346900318822e-04
    found = advise(posterior, learning_rates=(rate,), weigh_pilots=False)
    assert found.text.startswith(f"learning_rate={rate!r}, ")
    assert "learning rate 0.000215," in found.text


# Numbers ---------------------------------------------------------------------------------------


def numbers(pattern, text):
    (found,) = re.findall(pattern, text)
    return [float(part) for part in found] if isinstance(found, tuple) else float(found)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_in_the_text_are_those_of_the_model(kind, request):
    said = request.getfixturevalue(kind)
    plans = [Plan()] if kind == "first_contact" else PLANS
    posterior = made_up_posterior(plans, moved=HOT if kind == "infeasible" else None)
    forecaster = Forecaster(posterior, said.target, seed=said.seed)
    curve = forecaster.reward(said.settings, np.arange(said.steps + 1))
    last = curve[:, -1]
    final = final_reward(forecaster, said.settings, said.steps)
    chances = stability(forecaster, said.settings, said.steps)
    given = "" if chances.least >= 0.9 else f", if it stays stable ({percent(chances.least, 0.9)})"
    line = (
        rf"Reward after {said.steps} steps{re.escape(given)}: ([\d.]+), 80 % interval "
        r"\[([\d.]+), ([\d.]+)\]"
    )
    mean, low, high = numbers(line, said.text)
    assert mean == pytest.approx(last.mean(), abs=6e-4)
    assert [low, high] == pytest.approx(np.quantile(final, [0.1, 0.9]).tolist(), abs=6e-4)
    reached = int(numbers(r"95 % of its gain is made by step (\d+)", said.text))
    average = (curve.mean(axis=0) - curve[:, 0].mean()) / (last.mean() - curve[:, 0].mean())
    # Rounded to a step, and interpolated between those at which the curve is asked.
    assert average[reached - 1] < 0.951
    assert average[reached + 1] > 0.949
    assert chances == said.stability
    ends = [percent(chances.low), percent(chances.high)]
    whole = f"P(stable to step {said.steps}) = {percent(chances.probability)}"
    # An interval that rounds to what is said tells nothing.
    if ends != [percent(chances.probability)] * 2:
        whole += f", 80 % interval [{', '.join(ends)}]"
    assert chances.low < chances.high
    assert whole in said.text
    assert "(wanted: 90 %)" in said.text
    decides = f"the model alone says {percent(chances.by_model)}, and that decides"
    assert (decides in said.text) == (
        chances.by_model < chances.probability
        and percent(chances.by_model) != percent(chances.probability)
    )
    assert f"refreshed often enough {percent(chances.refresh)}" in said.text
    small = f", fluctuation small {percent(chances.fluctuation)}"
    counted = small if chances.fluctuation < 1 else ""
    tolerated = f"learning rate tolerated {percent(chances.tolerance)}"
    assert f"{tolerated}{counted}; in all " in said.text
    # Parts whose product is another number are not left without a word.
    is_moved = percent(chances.by_model) != percent(chances.probability)
    assert ("Recalibrated on runs" in said.text) == is_moved
    peak = numbers(r"Peak on the way: ([\d.]+) \[([\d.]+), ([\d.]+)\]", said.text)
    assert peak == pytest.approx([said.peak.mean, said.peak.low, said.peak.high], abs=6e-4)
    settings = said.settings
    rate, group, interval = numbers(
        r": learning rate (\S+), group size (\d+), refresh interval (\d+) \(", said.text
    )
    assert (rate, group) == (settings.learning_rate, settings.group_size)
    assert interval == settings.refresh_interval
    assert f" costs {price(said.cost)}." in said.text
    if said.next_pilot is not None:
        pilot = said.next_pilot
        assert in_trainer_names(pilot.settings) in said.text
        sure = stability(forecaster, pilot.settings, pilot.steps)
        assert f"stable with probability {percent(sure.probability)}" in said.text
        assert f"costs {price(pilot.cost)}." in said.text


@pytest.mark.evidence
@pytest.mark.parametrize(("chance", "is_told_why"), [(0.2, True), (0.8, False), (None, False)])
def test_a_pilot_likelier_worth_more_is_answered_for_in_the_answer(advice, chance, is_told_why):
    piloted = advice.best_piloted.model_copy(update={"p_beaten": chance})
    shown = summary_text(advice.model_copy(update={"best_piloted": piloted}))
    assert (f"What limits it: {advice.binding}." in shown) == is_told_why


@pytest.mark.evidence
def test_every_alternative_stands_in_the_text(advice):
    lines = advice.text.splitlines()
    others = (*advice.alternatives, *advice.equal_completions, advice.best_piloted)
    for other in (*others, *advice.recipes):
        (line,) = [x for x in lines if x.startswith(f"  {other.name}: ")]
        assert f"group size {other.settings.group_size}, " in line
        assert f": {other.reward:.3f}, P(stable) {percent(other.stability.probability)}" in line
        assert price(other.cost) in line
        assert (", 95 % of the advised gain by step " in line) == (
            other.steps_to_95 is not None and other in others[:-1]
        )


@pytest.mark.evidence
def test_steps_after_most_of_the_gain_are_priced_in_what_is_known(advice):
    hours = advise(timed(), weigh_pilots=False, trials=60)
    unit_of = {"completions": 1, "GPU-hours": 1, "GPU-minutes": 60, "GPU-seconds": 3600}
    for said, paid in ((advice, advice.cost.completions), (hours, hours.cost.gpu_hours)):
        ((number, unit),) = re.findall(r"steps after that cost ([\d.,e+-]+) ([\w-]+)\.", said.text)
        after = float(number.replace(",", "")) / unit_of[unit]
        assert after == pytest.approx(paid * (1 - said.steps_to_95 / said.steps), rel=0.01)


@pytest.mark.evidence
def test_large_numbers_are_written_out(advice):
    assert not re.search(r"\de\+\d\d", advice.text)


# Nothing is left open --------------------------------------------------------------------------


GAPS = re.compile(r"\b(nan|NaN|None|inf|Infinity|null)\b|np\.|\{|\}|%%|  \n")


QUESTIONS = {
    "goal": (made_up_posterior, {"to_reward": 0.7, "risk": 0.2}),
    "share": (timed, {"to_share": 0.9}),
    "risk": (timed, {"risk": 0.1}),
    "hours": (timed, {"gpu_hours": 3.0, "weigh_pilots": True}),
    "completions": (lambda: with_evaluations(made_up_posterior()), {"completions": 2e4}),
    "no goal": (timed, {"to_reward": 0.99}),
    "new model": (made_up_posterior, {"model": "new", "parameters": 3e6}),
    "negative": (lambda: made_up_posterior(bounds=(-5.0, -1.0)), {}),
    "one step": (made_up_posterior, {"steps": 1}),
    "no step": (made_up_posterior, {"completions": 1.0}),
    "billions": (made_up_posterior, {"completions": 5e9}),
    "every pilot lost": (
        lambda: made_up_posterior([replace(plan, collapse=20) for plan in PLANS]),
        {},
    ),
}


def assert_no_gap(said):
    for text in (said.text, *said.cautions, *said.assumptions):
        assert not GAPS.search(text), GAPS.search(text)
    assert said.text == said.text.strip()
    assert ".." not in said.text
    assert "learning_rate=" in said.text


@pytest.mark.evidence
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_gap_in_any_answer(name):
    made, asked = QUESTIONS[name]
    assert_no_gap(advise(made(), **{"weigh_pilots": False, "trials": 40, **asked}))


@pytest.mark.parametrize("kind", KINDS)
def test_no_gap_in_any_kind_of_answer(kind, request):
    assert_no_gap(request.getfixturevalue(kind))


def test_check_of_gaps_rejects_one():
    for gap in ("reward nan of", "K None", "costs inf GPU", "np.float64(1)", "{rate}"):
        assert GAPS.search(gap)


@pytest.mark.evidence
def test_objective_is_said():
    said = advise(made_up_posterior(), to_reward=0.7, risk=0.2, weigh_pilots=False, trials=40)
    wanted = (
        ", to reach a reward of 0.7 for the least, with probability 80 %, judged by the worst 20 %"
    )
    assert wanted in said.text
    said = advise(made_up_posterior(), to_share=0.9, weigh_pilots=False, trials=40)
    assert ", to make 90 % of the gain soonest: " in said.text


@pytest.mark.evidence
def test_shares_are_written_alike(advice):
    assert not re.search(r"\d%", advice.text)


def test_best_pilots_own_settings_are_said_to_be(posterior):
    evaluate, _ = decision(posterior)
    own = base_settings(posterior, evaluate.forecaster.target)
    said = advise(posterior, choose_from=[own], level=0.5, weigh_pilots=False)
    assert "Of the piloted settings these have the highest forecast." in said.text
    other = changed(own, group_size=24)
    said = advise(posterior, choose_from=[other], level=0.5, weigh_pilots=False)
    more = said.reward.mean - said.best_piloted.reward
    assert (
        f"the advice is expected to end {more:+.3f} from the highest forecast of a pilot. "
        "Where a lost run counts as the reward's floor, it is better with P " in said.text
    )


def test_a_lower_forecast_that_is_likely_better_is_explained(advice):
    """A mean is of stable runs; the probability counts lost ones and what is known elsewhere."""
    known = "known to do best: learning_rate 6.8e-06; distance from it counts against a setting"
    high = advice.best_piloted.model_copy(update={"reward": 0.99, "p_beaten": 0.64})
    changed_fields = {"assumptions": (known,), "best_piloted": high}
    said = advice.model_copy(update=changed_fields).text
    (line,) = (line for line in said.splitlines() if "from the highest forecast of a pilot" in line)
    assert line.startswith("If both stay stable, the advice is expected to end -")
    assert line.endswith(
        "Where a lost run counts as the reward's floor and distance from what is known to do best "
        "against a setting, it is better with P 64 %:"
    )


# Formats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.0, "over 99 %"), (0.996, "over 99 %"), (0.9, "90 %"), (0.006, "1 %"), (0.0, "under 1 %")],
)
def test_percent_never_says_certain(value, said):
    assert percent(value) == said


@pytest.mark.parametrize(
    "value",
    [
        0.9950000001,
        0.0049999999,
        0.995,
        0.005,
    ],
)
def test_percent_never_says_certain_at_the_edges(value):
    assert percent(value) not in ("100 %", "0 %")


@STEADY
@given(st.floats(0, 1))
def test_percent_is_near_and_never_certain(value):
    said = percent(value)
    assert said not in ("100 %", "0 %")
    if said.startswith("over"):
        assert value > 0.99
    elif said.startswith("under"):
        assert value < 0.01
    else:
        assert float(said.removesuffix(" %")) == pytest.approx(100 * value, abs=0.5 + 1e-9)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(2, "epoch", "2 epochs"), (2, "mini-batch", "2 mini-batches"), (1, "batch", "1 batch")],
)
def test_plurals_are_english(number, noun, text):
    assert counted(number, noun) == text


def test_price_says_what_is_known():
    known = Cost(steps=1, completions=1234.0, tokens=5.6e9, gpu_hours=12.345)
    assert price(known) == "1,234 completions, 5.6 billion tokens, 12.3 GPU-hours"
    unknown = Cost(steps=1, completions=7.89e6, tokens=None, gpu_hours=None)
    assert price(unknown) == "7.89 million completions"


@pytest.mark.evidence
def test_what_no_pilot_ran_is_listed_in_one_line(posterior, advice):
    """As the page does beside its sliders; a setting within what was piloted is not named."""
    wide = advise(posterior, trials=20, group_sizes=[512])
    (line,) = (line for line in wide.summary.splitlines() if line.startswith("Outside what was"))
    sizes = [run.settings.group_size for run in posterior.meta.runs]
    assert f"group size 512 (piloted: {min(sizes)} to {max(sizes)})" in line
    assert "epochs" not in line
    inside = advise(posterior, trials=20, group_sizes=sorted(set(sizes))[:1])
    assert not [name for name in inside.beyond_pilots if name.startswith("group size")]
    within = inside.model_copy(update={"beyond_pilots": ()})
    assert "Outside what was piloted" not in within.summary


def test_what_group_sizes_waste_is_one_line_where_it_is_known():
    (line,) = _silent_groups({4: 0.7086, 8: 0.6, 16: 0.5094})
    assert line.endswith("71 % at group size 4, 60 % at group size 8, 51 % at group size 16.")
    assert _silent_groups({}) == []


def test_settings_that_are_the_first_pilots_are_named_where_pilots_differ():
    plans = [replace(PLANS[3], schedule="linear"), PLANS[3], replace(PLANS[4], warmup=6)]
    few = {"steps": 100, "trials": 10, "weigh_pilots": False}
    line = "as in the first pilot, since they differ: schedule = linear, warmup_steps = 0"
    found = advise(made_up_posterior(plans), **few)
    assert line in found.assumptions
    assert (found.settings.schedule, found.settings.warmup_steps) == ("linear", 0)
    assert line in weightiest(found.assumptions)[0]
    # Control: pilots that differ in what is advised alone.
    alike = advise(made_up_posterior(PLANS), **few)
    assert not any(one.startswith("as in the first pilot") for one in alike.assumptions)
