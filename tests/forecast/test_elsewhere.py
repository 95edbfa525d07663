"""P(stable) from runs elsewhere and from signals, and the checkpoints of a predicted path."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from simulated_runs import Plan

from advisor.forecast import checkpoints_of, elsewhere, mover
from advisor.model import load_priors

LAW = load_priors("theory").elsewhere
ROWS = 120


def outcomes(rates, died):
    """Runs of one project each, of 1.5e9 parameters."""
    count = len(rates)
    names = np.array([f"r{number}" for number in range(count)])
    size = np.full(count, np.log(1.5e9))
    return elsewhere.Outcomes(
        names, names, np.log(rates), size, np.zeros(count, bool), np.array(died)
    )


def died_at(rate, others, *, parameters=1.5e9, is_lora=False, expected=0.05, law=LAW):
    at = np.log(rate), np.log(parameters), np.asarray(is_lora)
    return elsewhere.share_died(np.asarray(expected), at, law, others, others.weight)


def run_of(reward, **series):
    plan = Plan(1e-6, steps=len(reward), parameters=1.5e9, model="m", task="t")
    run = plan.run(np.asarray(reward), "run")
    return run.with_updates(series=run.series | series)


def rising(rows=ROWS):
    return (
        0.3 + 0.4 * np.arange(rows) / rows + 0.02 * np.random.default_rng(3).standard_normal(rows)
    )


def test_what_died_at_a_rate_counts_there():
    """Controls: other rates, another size, adapters, and runs that lived there."""
    died = outcomes([1e-5] * 30, [True] * 30)
    assert died_at(1e-5, died) > 0.7
    for rate in (1e-7, 1e-3):
        assert died_at(rate, died) == pytest.approx(0.05, abs=0.01)
    assert died_at(1e-5, died, parameters=1e5) == pytest.approx(0.05)
    assert died_at(1e-5, died, is_lora=True) == pytest.approx(0.05)
    assert died_at(1e-5, outcomes([1e-5] * 30, [False] * 30)) < 0.02


def test_what_lived_at_a_higher_rate_counts_below():
    lived = outcomes([1e-4] * 30, [False] * 30)
    assert died_at(1e-6, lived) == pytest.approx(died_at(1e-4, lived), rel=0.02)
    assert died_at(1e-4, lived) < 0.02
    assert died_at(1e-2, lived) == pytest.approx(0.05, abs=0.001)


def test_nine_runs_of_one_repository_count_as_three_of_as_many():
    """Control: nine of nine count for more."""
    of_one = outcomes([1e-5] * 9, [True] * 9)
    of_one = of_one._replace(repository=np.array(["one"] * 9))
    three, nine = (outcomes([1e-5] * count, [True] * count) for count in (3, 9))
    assert died_at(1e-5, of_one) == pytest.approx(died_at(1e-5, three))
    assert died_at(1e-5, nine) > died_at(1e-5, three) + 0.05


def test_a_stray_death_at_a_low_rate_is_outweighed_by_what_lived_above():
    """Control: without the runs above."""
    stray = [1e-6] * 3, [True] * 3
    alone = died_at(1e-6, outcomes(*stray))
    among = died_at(1e-6, outcomes(stray[0] + [1e-5] * 40, stray[1] + [False] * 40))
    assert alone > 0.2
    assert among < 0.1


def test_a_lower_rate_is_never_riskier():
    """Control: the deaths at the low rate do count, at every rate from there on."""
    table = outcomes([1e-6] * 8 + [1e-4] * 12, [True] * 4 + [False] * 4 + [True] * 4 + [False] * 8)
    alone = LAW.model_copy(update={"pilots": 1e-6})
    rates = np.geomspace(1e-8, 1e-4, 30)
    said = [round(float(died_at(rate, table, law=alone)), 5) for rate in rates]
    assert said == sorted(said)
    assert 0.1 < said[15] < said[-1]


def test_a_project_of_many_tasks_counts_as_one():
    rates, died = [1e-5] * 16, [True] * 16
    apart = outcomes(rates, died)
    names = np.array([f"p: task {number}" for number in range(16)])
    as_one = apart._replace(repository=names)
    np.testing.assert_allclose(as_one.weight, 0.25)
    np.testing.assert_allclose(apart.weight, 1.0)
    # One of its tasks is left out alone.
    assert as_one.without(["r3"]).mark.size == 15


def test_a_repository_that_holds_a_pilot_is_left_out():
    table = elsewhere.shipped_outcomes()
    mark = str(table.mark[0])
    left = table.without([mark])
    assert table.repository[0] not in left.repository
    assert len(left.mark) == len(table.mark) - np.sum(table.repository == table.repository[0])
    assert len(table.without(["none"]).mark) == len(table.mark)


def test_each_signal_has_its_own_size_and_none_is_made_up():
    rows = np.ones(ROWS)
    late = np.where(np.arange(ROWS) < 0.85 * ROWS, 1.0, 4.0)
    calm = elsewhere.signals_of(run_of(rising()), 2 * ROWS)
    assert {name for name, value in calm.items() if not np.isfinite(value)} == {
        *("shorter_answers", "kl", "entropy_jump", "gradient_jump"),
        *("silent_groups", "held_out_lost"),
    }
    assert calm["trend"] > 0.9
    assert calm["lost"] == 0
    for series, name in (
        ({"completion_length": 300 / late}, "shorter_answers"),
        ({"entropy": late}, "entropy_jump"),
        ({"entropy": 1 / late}, "entropy_jump"),
        ({"gradient_norm": late}, "gradient_jump"),
        ({"kl": late}, "kl"),
        ({"silent_group_share": 0.95 * rows}, "silent_groups"),
    ):
        (key,) = series
        still = {key: rows * series[key][0]} if name != "silent_groups" else {key: 0.1 * rows}
        assert elsewhere.signals_of(run_of(rising(), **series), ROWS)[name] > 0.1
        control = elsewhere.signals_of(run_of(rising(), **still), ROWS)[name]
        assert control < elsewhere.signals_of(run_of(rising(), **series), ROWS)[name]
    falls = elsewhere.signals_of(run_of(rising()[::-1]), ROWS)
    assert falls["trend"] < -0.9
    assert 0.2 < falls["lost"] < 0.6


def test_a_sagging_run_is_riskier_and_a_law_without_slopes_moves_nothing():
    rises, sags = (
        elsewhere.signals_of(run_of(one), 2 * ROWS) for one in (rising(), rising()[::-1])
    )
    said = [elsewhere.p_dies(0.1, LAW, elsewhere.moved_by(LAW, one)) for one in (rises, sags)]
    assert said[1] > 0.1 > said[0]
    blank = LAW.model_copy(
        update={
            "signals": dict.fromkeys(LAW.signals, 0.0),
            "missing": dict.fromkeys(LAW.missing, 0.0),
            "spread": 0.0,
        }
    )
    for one in (rises, sags):
        assert elsewhere.p_dies(0.1, blank, elsewhere.moved_by(blank, one)) == pytest.approx(0.1)


def test_odds_that_spread_between_repositories_are_averaged_over_them():
    """Control: without a spread the log-odds are taken as they are."""
    luck = np.random.default_rng(0).standard_normal(100_000)
    for odds in (-3.0, 1.5):
        for spread in (0.0, 1.5):
            law = LAW.model_copy(update={"spread": spread})
            share = np.mean(1 / (1 + np.exp(-odds - spread * luck)))
            assert elsewhere.p_dies(0.5, law, {"intercept": odds}) == pytest.approx(share, abs=0.01)


def test_what_was_said_before_the_run_stays_in_what_is_said_of_it():
    moved = elsewhere.moved_by(LAW, elsewhere.signals_of(run_of(rising()), 2 * ROWS))
    said = [elsewhere.p_dies(before, LAW, moved) for before in (0.01, 0.1, 0.5)]
    assert said == sorted(said)
    assert said[2] > 5 * said[0]


def test_the_signal_that_moved_most_is_named():
    moved = dict.fromkeys(elsewhere.SIGNALS, 0.0) | {"intercept": 3.0, "time_left": 2.0}
    assert "time" in mover(moved, is_worse=True)
    moved |= {"gradient_jump": 0.3, "trend": -1.2}
    assert mover(moved, is_worse=True) == "the gradient norm"
    assert mover(moved, is_worse=False) == "the trend of the reward"


def test_slopes_that_ship_keep_their_signs_and_tell_a_source():
    for name, (sign, _) in elsewhere.SIGNALS.items():
        assert sign * LAW.signals[name] >= 0
    assert LAW.deaths < LAW.runs
    assert len(elsewhere.shipped_outcomes().mark) <= LAW.runs


def test_checkpoints_begin_where_nothing_more_is_expected():
    """Controls: a path that rises to its end, and one that peaks and falls."""
    steps = np.arange(1, 401)
    noise = 0.1 * np.random.default_rng(0).standard_normal((200, 1))
    saturates = 0.8 * -np.expm1(-steps / 20) + noise
    found = checkpoints_of(steps, saturates, 1.0)
    assert found[0] == pytest.approx(20 * np.log(80), abs=2)
    assert found[-1] == 400
    assert all(later <= 2 * one + 1 for one, later in pairwise(found))
    assert checkpoints_of(steps, steps / 400 + noise, 1.0)[0] > 390
    peaks = np.where(steps < 50, steps / 50, 1 - (steps - 50) / 700) + noise
    assert checkpoints_of(steps, peaks, 1.0)[0] == pytest.approx(50, abs=1)
