"""The answer in words: what can be pasted, numbers that are those of the answer, no gaps."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from decisions import HOT, changed
from hypothesis import example, given
from hypothesis import strategies as st
from simulated_runs import PLANS, Plan, made_up_posterior, without_line

from advisor.advice import (
    Binding,
    Cost,
    advise,
    in_trainer_names,
    leader_text,
    number,
    percent,
    say_of_answer,
)
from advisor.advice.wording import price
from advisor.common import Kind, note, stated
from advisor.forecast import Forecaster, final_reward, stability

MOST_WORDS = 150

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


@pytest.mark.parametrize("kind", ["infeasible", "first_contact"])
def test_pilots_to_run_first_head_the_answer_and_can_be_pasted(kind, request):
    said = request.getfixturevalue(kind)
    pilots = (said.next_pilot.settings, *said.further_pilots)
    lines = said.summary.splitlines()
    for line, settings in zip(lines, pilots, strict=False):
        assert_says(line, settings)
    assert lines[len(pilots)].startswith(f"{said.next_pilot.steps} steps")
    first = "this pilot" if len(pilots) == 1 else f"these {len(pilots)} pilots"
    none = "No feasible configuration. " * (kind == "infeasible")
    assert said.title == f"{none}Run {first} first"


def test_all_pilots_that_are_missing_are_named_at_once(first_contact):
    """With one in hand two are missing: a rate above it and one as far below."""
    (other,) = first_contact.further_pilots
    rates = sorted([other.learning_rate, first_contact.next_pilot.settings.learning_rate])
    assert rates[0] < Plan().learning_rate < rates[1]
    assert rates[0] * rates[1] == pytest.approx(Plan().learning_rate ** 2, rel=0.1)
    two = advise(made_up_posterior([Plan(), Plan()], moved=None), weigh_pilots=True, trials=40)
    assert two.further_pilots == ()


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_twelve_lines_and_150_words_at_most(kind, request):
    said = request.getfixturevalue(kind)
    many = tuple(stated(f"caution {at} " + "word " * 20, Kind.CAUTION) for at in range(4))
    said = said.model_copy(update={"notes": many})
    shown = [line for line in said.summary.splitlines() if line]
    assert len(shown) <= 10  # a title, and where the study lies, are two more
    assert len(f"{said.title} {said.summary}".split()) <= MOST_WORDS
    assert sum(line.startswith("- ") for line in shown) <= 3
    # What has no room is a detail.
    assert all(str(one) in said.text for one in many)
    assert not all(str(one) in said.summary for one in many)


# Numbers ---------------------------------------------------------------------------------------


def numbers(pattern, text):
    (found,) = re.findall(pattern, text)
    return [float(part) for part in found] if isinstance(found, tuple) else float(found)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_in_the_text_are_those_of_the_model(kind, request):
    said = request.getfixturevalue(kind)
    plans = [Plan()] if kind == "first_contact" else PLANS
    posterior = made_up_posterior(plans, moved=HOT if kind == "infeasible" else None)
    posterior = posterior if kind == "advice" else without_line(posterior)
    forecaster = Forecaster(posterior, said.target, seed=said.seed)
    curve = forecaster.reward(said.settings, np.arange(said.steps + 1))
    last = curve[:, -1]
    final = final_reward(forecaster, said.settings, said.steps)
    chances = stability(forecaster, said.settings, said.steps)
    given = "" if chances.probability >= 0.9 else " if it stays stable"
    line = (
        rf"Expect: reward ([\d.]+) after {said.steps} steps{given}, 80 % interval "
        r"([\d.]+) to ([\d.]+)\."
    )
    mean, low, high = numbers(line, said.summary)
    width = max(said.reward.high - said.reward.low, 1e-12)
    digit = 0.6 * 10.0 ** -min(4, max(0, 1 - int(np.floor(np.log10(width)))))
    assert digit < width  # rounded as the interval makes worth reading
    assert mean == pytest.approx(last.mean(), abs=digit)
    assert [low, high] == pytest.approx(np.quantile(final, [0.1, 0.9]).tolist(), abs=digit)
    reached = int(numbers(r"95 % of its gain is made by step (\d+)", said.text))
    average = (curve.mean(axis=0) - curve[:, 0].mean()) / (last.mean() - curve[:, 0].mean())
    # Rounded to a step, and interpolated between those at which the curve is asked.
    assert average[reached - 1] < 0.951
    assert average[reached + 1] > 0.949
    assert chances == said.stability
    ends = [percent(chances.low), percent(chances.high)]
    whole = f"P(stable) is {percent(chances.probability)}"
    # An interval that rounds to what is said tells nothing.
    if ends != [percent(chances.probability)] * 2:
        whole += f", 80 % interval {' to '.join(ends)}"
    assert (chances.low < chances.high) == (kind == "advice")  # the others have no line
    assert whole in said.summary
    assert "; wanted: 90 %." in said.summary
    assert f"refreshed often enough {percent(chances.refresh)}" in said.text
    small = f", fluctuation small {percent(chances.fluctuation)}"
    counted = small if chances.fluctuation < 1 else ""
    tolerated = f"learning rate tolerated {percent(chances.tolerance)}"
    assert f"{tolerated}{counted}; together " in said.text
    # Parts whose product is another number are not left without a word.
    is_moved = percent(chances.by_model) != percent(chances.probability)
    assert ("Recalibrated on runs" in said.text) == is_moved
    peak = numbers(r"on the way: ([\d.]+), 80 % interval ([\d.]+) to ([\d.]+)\.", said.text)
    assert peak == pytest.approx([said.peak.mean, said.peak.low, said.peak.high], abs=digit)
    settings = said.settings
    rate, group, interval = numbers(
        r": learning rate (\S+), group size (\d+), refresh interval (\d+) \(", said.text
    )
    assert (rate, group) == (settings.learning_rate, settings.group_size)
    assert interval == settings.refresh_interval
    assert f" Cost: {price(said.cost)}." in said.text
    if said.next_pilot is not None:
        pilot = said.next_pilot
        assert in_trainer_names(pilot.settings) in said.text
        sure = stability(forecaster, pilot.settings, pilot.steps)
        cost = f"Cost: {price(pilot.cost)}{' each' if said.further_pilots else ''}."
        assert f"P(stable) is {percent(sure.probability)}. {cost}" in said.text


# The leader ------------------------------------------------------------------------------------


def led(advice, **facts):
    """Answer whose leading pilot is another, as it would be with such facts."""
    settings = changed(advice.settings, learning_rate=5e-5)
    shown = {"is_followed": False, "pilot": "hot", "reward": 0.63, "steps": 66.0}
    shown |= {"settings": settings} | facts.pop("leader", {})
    leader = advice.leader.model_copy(update=shown)
    stability = advice.stability.model_copy(
        update={"probability": facts.pop("stable", 0.95), "by_model": 0.99}
    )
    piloted = {"settings": settings, "stability": stability, "reward": 0.7, "p_beaten": 0.6}
    best = advice.best_piloted.model_copy(update=piloted | facts)
    return advice.model_copy(update={"leader": leader, "best_piloted": best})


@pytest.mark.evidence
def test_a_leader_that_is_not_followed_is_answered_for(advice):
    assert "Why not the leader" not in led(advice, leader={"is_followed": True}).summary
    said = led(advice, stable=0.654, leader={"peak": 0.87, "fell_from": 20.0}).summary
    (line,) = (one for one in said.splitlines() if one.startswith("Why not the leader"))
    digits = number(advice, 0.63), number(advice, 0.87)
    assert f"'hot' leads with {digits[0]} at step 66 (learning rate 5e-05)" in line
    assert f"but has fallen from {digits[1]} since step 20." in line
    assert "P(stable) 65 %; wanted: 90 %." in line
    assert "P(better than the best pilot) is 60 %." in line
    # The options by which it would be advised accept its risk.
    assert line.endswith("To use it anyway: --learning-rates 5e-05 --level 0.65.")
    calm = leader_text(led(advice))
    assert "fallen" not in calm
    assert calm.endswith("To use it anyway: --learning-rates 5e-05.")


@pytest.mark.evidence
def test_a_leader_that_is_likelier_to_end_higher_has_a_reason_all_the_same(advice):
    risky = leader_text(led(advice, stable=0.7, p_beaten=0.3))
    assert "The leader ends higher with probability 70 %, but its risk decides." in risky


@pytest.mark.evidence
@pytest.mark.parametrize(("gain", "is_said"), [(0.0, True), (-0.1, False)])
def test_a_leader_that_ends_as_high_is_answered_by_the_known_rate(advice, gain, is_said):
    known = note(Kind.KNOWN_OPTIMUM, known="learning_rate 1e-05")
    asked = advice.model_copy(update={"next_pilot": SimpleNamespace(), "notes": (known,)})
    said = leader_text(led(asked, reward=advice.reward.mean + gain))
    assert ("The known rate of public runs decides against it." in said) is is_said
    without = asked.model_copy(update={"notes": ()})
    assert "public runs" not in leader_text(led(without, reward=advice.reward.mean + gain))


@pytest.mark.evidence
def test_public_runs_that_stood_like_the_leader_are_counted(advice):
    facts = {"public_runs": 37, "public_lower": 6, "peak": 0.9, "fell_from": 20.0}
    said = leader_text(led(advice, leader=facts))
    assert "Of 37 public runs that had fallen at this point, 6 ended lower." in said
    assert "public runs" not in leader_text(led(advice))


# The headline ----------------------------------------------------------------------------------


def test_nothing_outside_the_pilots_is_headed_recommended(advice):
    advice = advice.model_copy(update={"beyond_pilots": (), "notes": ()})
    assert advice.title == "Recommended configuration"
    edge = Binding(kind="edge_of_rates", case="edge", values={"edge": "3"})
    for update in (
        {"beyond_pilots": ("learning rate 1 (piloted: 2)",)},
        {"limit": edge},
        {"notes": (note(Kind.NONE_MOVED),)},
    ):
        assert advice.model_copy(update=update).title == "Best setting found, outside your pilots"
    unpiloted = (note(Kind.UNPILOTED_LANGUAGE_MODEL, model="m", task="t"),)
    title = advice.model_copy(update={"notes": unpiloted}).title
    assert title == "Best guess from another model's pilots"


def test_settings_outside_the_pilots_are_called_so_next_to_a_pilot(advice, first_contact):
    piloted = {"next_pilot": first_contact.next_pilot}
    for beyond in ((), ("learning rate 1 (piloted: 2)",)):
        said = advice.model_copy(update=piloted | {"beyond_pilots": beyond}).summary
        assert ("To launch without it, outside your pilots: " in said) == bool(beyond)


def test_what_is_wrong_with_the_whole_answer_stands_before_its_numbers(advice):
    swapped = note(Kind.PRESET_SWAPPED, preset="lora", narrower="theory")
    lines = advice.model_copy(update={"notes": (swapped,)}).summary.splitlines()
    assert lines[1] == str(swapped)
    assert lines[2].startswith("Expect: ")


# Nothing is left open --------------------------------------------------------------------------


GAPS = re.compile(r"\b(nan|NaN|None(?! of )|inf|Infinity|null)\b|np\.|\{|\}|%%|  \n")


def assert_no_gap(said):
    for text in (said.text, *said.cautions, *said.assumptions):
        assert not GAPS.search(text), GAPS.search(text)
    assert said.text == said.text.strip()
    assert ".." not in said.text
    assert "learning_rate=" in said.text


@pytest.mark.parametrize("kind", KINDS)
def test_no_gap_in_any_kind_of_answer(kind, request):
    assert_no_gap(request.getfixturevalue(kind))


def test_check_of_gaps_rejects_one():
    for gap in ("reward nan of", "K None", "costs inf GPU", "np.float64(1)", "{rate}"):
        assert GAPS.search(gap)


def test_a_lower_forecast_that_is_likely_better_is_explained(advice):
    """A mean is of stable runs; the probability counts lost ones and what is known elsewhere."""
    known = note(Kind.KNOWN_OPTIMUM, known="learning_rate 6.8e-06")
    said = led(advice, reward=0.99, p_beaten=0.64).model_copy(update={"notes": (known,)}).text
    (line,) = (line for line in said.splitlines() if line.startswith("The best pilot carried on"))
    assert re.search(r"If both stay stable, the advice is expected to end [\d.]+ below it", line)
    assert line.endswith(
        "P(better than the best pilot) is 64 %, where a lost run counts as the lowest reward and "
        "the known rate counts:"
    )


# Formats ---------------------------------------------------------------------------------------


@given(st.floats(0, 1))
@example(1.0)
@example(0.0)
@example(0.996)
def test_percent_is_near_and_never_certain(value):
    said = percent(value)
    assert said not in ("100 %", "0 %")
    if said.startswith("over"):
        assert value > 0.99
    elif said.startswith("under"):
        assert value < 0.01
    else:
        assert float(said.removesuffix(" %")) == pytest.approx(100 * value, abs=0.5 + 1e-9)


def test_price_says_what_is_known():
    known = Cost(steps=1, completions=1234.0, tokens=5.6e9, gpu_hours=12.345)
    assert price(known) == "1,234 completions, 5.6 billion tokens, 12.3 GPU-hours"
    unknown = Cost(steps=1, completions=7.89e6, tokens=None, gpu_hours=None)
    assert price(unknown) == "7.89 million completions"


def test_what_group_sizes_waste_is_one_line_where_it_is_known(advice):
    def wasting(shares):
        evidence = advice.evidence.model_copy(update={"silent_groups": shares})
        return say_of_answer("explanation", advice.model_copy(update={"evidence": evidence}))

    wasted = wasting({4: 0.7086, 8: 0.6, 16: 0.5094})
    (line,) = (x for x in wasted.splitlines() if x.startswith("Groups whose"))
    assert line.endswith("71 % at group size 4, 60 % at group size 8, 51 % at group size 16.")
    assert "Groups whose" not in wasting({})


@pytest.mark.evidence
def test_a_forecast_that_no_test_bears_out_is_said_before_all_else(advice):
    other = stated("caution " + "word " * 20, Kind.CAUTION)
    long = note(Kind.TOO_LONG, times=28.1, enough=300, most=96)
    public = {"public_runs": 329, "public_lower": 43}
    said = led(advice, leader=public).model_copy(
        update={"next_pilot": None, "notes": (other, long)}
    )
    first, *_ = (line for line in said.summary.splitlines() if line.startswith("- "))
    assert "28.1 times as long as your longest pilot" in first
    assert len(f"{said.title} {said.summary}".split()) <= MOST_WORDS
    # What speaks for the leader gives way to it, and stays in the details.
    free = said.model_copy(update={"notes": ()})
    assert "Of 329 public runs" in free.summary
    assert "Of 329 public runs" in said.text
