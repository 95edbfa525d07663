"""All cards together: order, verdict, causes above consequences, and any numbers at all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import COLOURS, FEW, MOST_FALSE, falling, make, noise, rate, rising
from processor_time import at_most

from advisor.diagnosis import MODES, Card, Diagnosis, diagnose
from advisor.errors import InputError
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


@pytest.mark.parametrize("rows", range(10))
def test_nine_rows_fail_nothing(rows):
    silent = {name: np.ones(rows) for name in ("silent_group_share", "truncated_share")}
    for reward in (np.zeros(rows), falling(rows, 5), rising(rows)[::-1]):
        assert diagnose(make(reward, **silent)).verdict != "FAIL"


# Anything a log may hold -----------------------------------------------------------------------


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


def test_several_runs_at_once_are_answered_by_how_to_ask():
    with pytest.raises(InputError, match="one run is judged at a time") as caught:
        diagnose([make(rising(60))])
    assert "siblings=runs" in str(caught.value)
