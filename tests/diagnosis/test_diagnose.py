"""All cards together: order, verdict, causes above consequences, and any numbers at all."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import COLOURS, FEW, MOST_FALSE, any_runs, falling, make, noise, rate, rising
from processor_time import at_most

from advisor.diagnosis import MODES, Card, Diagnosis, diagnose
from advisor.runs import PilotRun

AFTER = "began with or after the collapse: a consequence"

ROWS = 100
FALLEN = falling(ROWS, 60) + 0.02 * noise(1, ROWS)


def order(found):
    return [card.mode for card in found.cards]


# Order -----------------------------------------------------------------------------------------


def test_every_mode_has_one_card():
    found = diagnose(make(rising(ROWS)))
    assert sorted(order(found)) == sorted(MODES)
    assert all(found.card(mode).mode == mode for mode in MODES)
    assert (found.id, found.path, found.run) == ("folder/run", "folder/run.jsonl", "run")


def test_the_worst_stands_first_and_gives_the_verdict():
    silent = np.full(ROWS, 0.7)
    found = diagnose(make(FALLEN, silent_group_share=silent, entropy=np.full(ROWS, 0.5)))
    ranks = ["FAIL", "WARNING", "INFO", "PASS", "NOT APPLICABLE"]
    places = [ranks.index(card.status) for card in found.cards]
    assert places == sorted(places)
    assert found.verdict == found.cards[0].status == "FAIL"
    assert diagnose(make(rising(ROWS), silent_group_share=silent)).verdict == "WARNING"
    assert diagnose(make(rising(ROWS))).verdict == "PASS"


def test_among_equals_causes_come_first():
    found = diagnose(make(rising(ROWS)))
    passed = [card.mode for card in found.cards if card.status == "PASS"]
    assert passed == sorted(passed, key=MODES.index)
    assert MODES.index("collapse") > MODES.index("dynamical_instability")


def blown_up(onset):
    entropy = np.where(np.arange(ROWS) < onset, 0.3, 4.0)
    return make(FALLEN, entropy=entropy * np.exp(0.05 * noise(2, ROWS)))


def test_causes_stand_above_a_collapse_and_consequences_below():
    before, after = diagnose(blown_up(45)), diagnose(blown_up(75))
    assert order(before)[:2] == ["dynamical_instability", "collapse"]
    assert AFTER not in before.card("dynamical_instability").witnesses
    assert order(after)[:2] == ["collapse", "dynamical_instability"]
    assert AFTER in after.card("dynamical_instability").witnesses


def test_without_a_collapse_nothing_is_its_consequence():
    run = make(rising(ROWS), silent_group_share=np.full(ROWS, 0.9))
    assert not any(AFTER in card.witnesses for card in diagnose(run).cards)


def test_collapse_step_is_that_of_the_card():
    found = diagnose(make(FALLEN))
    assert found.collapse_step == found.card("collapse").steps[0] == pytest.approx(61, abs=2)
    assert diagnose(make(rising(ROWS))).collapse_step is None
    # A fall that noise might have done is no collapse.
    unsure = [diagnose(make(np.maximum(0, 0.3 + 0.2 * noise(s, 40, 0.6)))) for s in range(60)]
    warned = [one for one in unsure if one.card("collapse").status == "WARNING"]
    assert warned
    assert all(one.collapse_step is None for one in warned)


@pytest.mark.parametrize("rows", range(10))
def test_nine_rows_fail_nothing(rows):
    silent = {name: np.ones(rows) for name in ("silent_group_share", "truncated_share")}
    for reward in (np.zeros(rows), falling(rows, 5), rising(rows)[::-1]):
        assert diagnose(make(reward, **silent)).verdict != "FAIL"


# Anything a log may hold -----------------------------------------------------------------------


@pytest.mark.evidence
@FEW
@given(run=any_runs(), margin=st.sampled_from([None, [0.5, np.nan], [2.0, 3.0]]))
def test_any_numbers_give_cards(run, margin):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = diagnose(run, margin)
        document = json.loads(
            Diagnosis.json_of([found]), parse_constant=lambda name: pytest.fail(name)
        )
    times = np.concatenate([run.step, run.eval_step])
    assert document[0]["verdict"] == found.verdict
    assert len(found.cards) == len(MODES)
    for card in found.cards:
        said = " ".join(card.lines).split()
        assert "nan" not in said
        assert "inf" not in said
        if card.steps is not None:
            assert times.min() <= card.steps[0] <= card.steps[1] <= times.max()
    if found.collapse_step is not None:
        assert times.min() <= found.collapse_step <= times.max()


@pytest.mark.evidence
@FEW
@given(seed=st.integers(0, 10**6))
def test_any_long_run_gives_cards(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([399, 401, 900, 1203]))
    scales = [1e-300, 1e-3, 1.0, 1e9, 1e300]
    series = {
        name: rng.choice(scales) * rng.normal(rng.choice([0, 3]), 1, rows)
        for name in rng.choice(PilotRun.SERIES, 6, replace=False)
    }
    reward = series.get("reward", np.ones(rows))
    series["reward"] = np.where(rng.random(rows) < 0.1, np.nan, reward)
    run = make(reward, evals=rng.random(50), every=rows // 50).with_updates(series=series)
    assert json.loads(Diagnosis.json_of([diagnose(run)]))


def test_a_card_holds_no_number_that_json_lacks():
    common = {"mode": "collapse", "title": "Collapse", "status": "PASS", "headline": "x"}
    card = Card(**common, number=np.nan, interval=(0.0, np.inf))
    assert (card.number, card.interval) == (None, None)
    assert Card(**common, number=1.5, interval=(1, 2)).interval == (1, 2)


@pytest.mark.parametrize("size", [1e-98, 1e98])
def test_huge_and_tiny_rewards_are_judged_like_others(size):
    found = diagnose(make(size * FALLEN, reward_floor=0.0))
    assert (found.verdict, found.collapse_step) == ("FAIL", diagnose(make(FALLEN)).collapse_step)


@pytest.mark.parametrize("value", [1e300, -1e300, 0.0, 0.1, 1e-300])
def test_a_constant_is_no_change(value):
    found = diagnose(make(np.full(ROWS, value), entropy=np.full(ROWS, value)))
    assert found.verdict == found.card("advantage_degeneracy").status == "FAIL"
    assert found.card("too_short").status == "INFO"


def test_a_blown_up_gradient_is_seen_even_where_it_overflows():
    gradient = np.where(np.arange(ROWS) < 50, 0.3, 1e300) * np.exp(0.05 * noise(3, ROWS))
    found = diagnose(make(FALLEN, gradient_norm=gradient))
    assert found.card("dynamical_instability").status == "FAIL"


def test_a_hundred_thousand_rows_take_no_time():
    rows = 100_000
    rng = np.random.default_rng(1)
    parts = {"correct": rng.random(rows), "format": rng.random(rows)}
    run = make(np.zeros(rows), evals=rng.random(2000), every=50, parts=parts)
    series = {name: rng.random(rows) for name in PilotRun.SERIES}
    series["reward"] = falling(rows, 60_000) + 0.1 * rng.random(rows)
    run = run.with_updates(series=series)
    with at_most(2):
        found = diagnose(run)
    assert found.collapse_step == pytest.approx(60_000, abs=600)  # rows of 250


# What must not matter --------------------------------------------------------------------------


def made_up(kind, seed):
    """A run of one kind with every series that some card reads."""
    reward = {
        "healthy": rising(ROWS),
        "collapse": falling(ROWS, 60),
        "flat": np.full(ROWS, 0.05),
        "hacked": rising(ROWS),
    }[kind]
    held_out = falling(20, 10, 0.7, 0.2) if kind == "hacked" else reward[::5]
    return make(
        np.clip(reward + 0.03 * noise(seed, ROWS), 0, 1),
        evals=held_out + 0.02 * noise(seed + 1, 20),
        every=5,
        entropy=np.linspace(1.0, 0.04, ROWS) * np.exp(0.05 * noise(seed + 2, ROWS)),
        gradient_norm=np.exp(0.2 * noise(seed + 3, ROWS)),
        silent_group_share=np.full(ROWS, 0.97 if kind == "flat" else 0.65),
        reward_std_within_group=0.2 + 0.01 * noise(seed + 4, ROWS),
        group_size=8,
        reward_floor=0.0,
        reward_ceiling=1.0,
    )


KINDS = st.sampled_from(["healthy", "collapse", "flat", "hacked"])


def statuses(run):
    return {card.mode: card.status for card in diagnose(run).cards}


@pytest.mark.evidence
@FEW
@given(
    kind=KINDS,
    seed=st.integers(0, 99),
    scale=st.floats(0.01, 100),
    shift=st.floats(-10, 10),
)
def test_units_of_the_reward_do_not_matter(kind, seed, scale, shift):
    run = made_up(kind, seed)
    moved = run.with_updates(
        series={
            **run.series,
            "reward": shift + scale * run.reward,
            "reward_std_within_group": scale * run.series["reward_std_within_group"],
        },
        eval_reward=shift + scale * run.eval_reward,
        reward_floor=shift,
        reward_ceiling=shift + scale,
    )
    assert statuses(moved) == statuses(run)


@pytest.mark.evidence
@FEW
@given(kind=KINDS, seed=st.integers(0, 99), where=st.sets(st.integers(0, ROWS), max_size=30))
def test_rows_that_hold_nothing_do_not_matter(kind, seed, where):
    run = made_up(kind, seed)
    at = sorted(where)
    steps = np.insert(run.step, at, [row + 0.5 for row in at])
    series = {name: np.insert(values, at, np.nan) for name, values in run.series.items()}
    holed = run.with_updates(step=steps, series=series)
    found, plain = diagnose(holed), diagnose(run)
    assert statuses(holed) == statuses(run)
    assert found.collapse_step == plain.collapse_step


@pytest.mark.evidence
@FEW
@given(kind=KINDS, seed=st.integers(0, 99), every=st.sampled_from([5, 1000]))
def test_steps_with_gaps_move_the_onset_and_nothing_else(kind, seed, every):
    run = made_up(kind, seed)
    spread = run.with_updates(step=every * run.step, eval_step=every * run.eval_step)
    found, plain = diagnose(spread), diagnose(run)
    assert statuses(spread) == statuses(run)
    assert found.verdict == plain.verdict
    if plain.collapse_step is not None:
        assert found.collapse_step == every * plain.collapse_step


@pytest.mark.parametrize("kind", ["healthy", "collapse", "flat", "hacked"])
def test_those_kinds_differ(kind):
    """The invariances above compare verdicts that are not all the same."""
    wanted = {"healthy": "WARNING", "collapse": "FAIL", "flat": "FAIL", "hacked": "FAIL"}
    assert all(diagnose(made_up(kind, seed)).verdict == wanted[kind] for seed in range(0, 50, 10))


# Noise -----------------------------------------------------------------------------------------


@pytest.mark.evidence
@pytest.mark.parametrize("mean", ["flat", "slow rise"])
@pytest.mark.parametrize("colour", COLOURS)
def test_a_whole_log_of_noise_does_not_fail(colour, mean):
    def fails(seed):
        own = [noise(100 * n + seed, ROWS, COLOURS[colour]) for n in range(8)]
        level = rising(ROWS, 0.25, 0.4, 0.6) if mean == "slow rise" else np.full(ROWS, 0.3)
        run = make(
            np.maximum(0, level + 0.08 * own[0]),
            evals=np.maximum(0, level[::8] + 0.05 * noise(seed, 13, COLOURS[colour])),
            every=8,
            entropy=np.exp(0.5 * own[1]),
            gradient_norm=np.exp(0.5 * own[2]),
            mismatch_kl=0.02 * np.exp(0.5 * own[3]),
            clip_share=0.1 * np.exp(0.5 * own[4]),
            truncated_share=np.clip(0.5 + 0.3 * own[5], 0, 1),
            silent_group_share=np.clip(0.5 + 0.3 * own[6], 0, 1),
            parts={"correct": np.maximum(0, level + 0.08 * own[7]), "format": 0.5 + 0.1 * own[5]},
        )
        return diagnose(run).verdict == "FAIL"

    assert rate(fails) <= MOST_FALSE


def test_worst_says_collapse_first():
    found = diagnose(blown_up(45))
    assert found.headline.startswith("Collapse: ")
    assert found.headline.endswith("(1 more)")
    assert diagnose(make(rising(ROWS))).headline == "nothing wrong"
