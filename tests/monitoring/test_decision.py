"""Stop, change or go on: each rule where it must speak, and where it must not."""

from __future__ import annotations

import numpy as np
import pytest
from watched import PLAN

from advisor.advice import CostModel
from advisor.diagnosis import Card, Diagnosis, diagnose
from advisor.forecast import Band, Interval
from advisor.monitoring import Update, Watch, WatchReport, watch_decision, watch_report
from advisor.monitoring.view import line
from advisor.runs import PartialSettings

LEVEL = 0.9
COST = CostModel(fixed=36.0, gpus=8, source="test")


def update(**changed):
    final = Interval(mean=0.8, median=0.8, low=0.75, high=0.85)
    given = {
        "run": "run",
        "task": "sort",
        "model": "tiny-s",
        "step": 40,
        "planned_steps": 140,
        "reward": 0.6,
        "start": 0.2,
        "band": Band(step=(40, 140), mean=(0.6, 0.8), low=(0.6, 0.75), high=(0.6, 0.85)),
        "final": final,
        "final_eval": None,
        "p_reach": None,
        "p_unstable": 0.02,
        "left_to_gain": 0.25,
        "is_rising": True,
        "share_made": 0.66,
        "surprise": 0.4,
        "lost_rows": 0,
        "fallen_since": None,
        "gentler_rate": None,
        "pareto_k": 0.2,
        "refit_due": False,
        "seconds": 0.03,
        "settings": PartialSettings(
            learning_rate=3e-4, group_size=8, prompts_per_step=16
        ).completed(),
    }
    return Update(**{**given, **changed})


def test_the_end_is_called_what_it_is_the_mean_of_the_last_tenth():
    """A run that rises ends above that mean: it must not read as a forecast of a fall."""

    def shown(**changed):
        now, found = update(**changed), diagnosis()
        decided = watch_decision(now, found, level=LEVEL, cost=COST)
        return line(WatchReport(update=now, diagnosis=found, decision=decided))

    assert "reward 0.600 (latest 5 rows); mean of its last tenth 0.800, 80 % interval" in shown()
    held_out = {"final_eval": Interval(mean=0.7, median=0.7, low=0.6, high=0.8)}
    assert "; held-out at the end 0.700, 80 % interval" in shown(**held_out)
    ended = shown(step=140, reward=0.85, **held_out)
    assert "reward 0.850 (latest 5 rows); mean of its last tenth 0.800; cards" in ended
    assert not any(words in ended for words in ("at the end", "P(unstable)"))


def diagnosis(*cards):
    judged = [card for card in cards if card.mode == "collapse"]
    return Diagnosis(
        id="run",
        path="run",
        run="run",
        verdict=cards[0].status if cards else "PASS",
        collapse_step=33.0 if judged and judged[0].status == "FAIL" else None,
        cards=cards if judged else (*cards, card("collapse", "PASS")),
    )


def card(mode, status="FAIL", kind=""):
    said = {"headline": "It is bad.", "change": "Mend it."}
    return Card(mode=mode, kind=kind, title=mode.title(), status=status, **said)


@pytest.mark.parametrize(
    ("changed", "cards", "action", "rule"),
    [
        ({}, (), "go on", "none"),
        ({"p_unstable": 0.09}, (), "go on", "none"),
        ({"p_unstable": 1 - LEVEL}, (), "go on", "none"),
        ({"p_unstable": 0.11}, (), "change", "unstable"),
        ({"p_unstable": 0.89}, (), "change", "unstable"),
        ({"p_unstable": 0.9}, (), "stop", "doomed"),
        ({"left_to_gain": 0.01, "is_rising": False}, (), "go on", "none"),
        ({"left_to_gain": 0.0099, "is_rising": False}, (), "stop", "gained"),
        ({"left_to_gain": -0.5, "is_rising": True}, (), "go on", "none"),
        ({"left_to_gain": 0.0, "is_rising": False, "step": 127}, (), "go on", "none"),
        ({"left_to_gain": 0.0, "is_rising": False, "step": 126}, (), "stop", "gained"),
        ({"left_to_gain": 0.0, "is_rising": False, "p_unstable": 0.5}, (), "change", "unstable"),
        ({"surprise": 2e-4}, (), "change", "surprise"),
        ({"surprise": 4e-4}, (), "go on", "none"),
        ({"surprise": None}, (), "go on", "none"),
        ({"fallen_since": 30.0, "p_unstable": 0.98}, (), "stop", "fallen"),
        ({}, (card("collapse"),), "stop", "fallen"),
        ({}, (card("collapse", "WARNING"),), "go on", "none"),
        ({}, (card("reward_hacking"),), "change", "card"),
        ({}, (card("dynamical_instability", "WARNING"),), "go on", "none"),
        ({}, (card("dynamical_instability", "WARNING", "not_finite"),), "change", "card"),
        ({"lost_rows": 4}, (), "go on", "none"),
        ({"lost_rows": 5}, (), "stop", "not finite"),
    ],
)
def test_rules(changed, cards, action, rule):
    decision = watch_decision(update(**changed), diagnosis(*cards), level=LEVEL, cost=COST)
    assert (decision.action, decision.rule) == (action, rule)
    assert decision.is_alarm == (rule not in ("none", "gained"))


def test_what_stopping_saves():
    decision = watch_decision(update(p_unstable=0.95), diagnosis(), level=LEVEL, cost=COST)
    assert decision.steps == 100
    assert decision.completions == 100 * 16 * 8
    assert decision.gpu_hours == pytest.approx(100 * 36 * 8 / 3600)
    assert "Stopping saves 100 steps, 12,800 completions and 8 GPU-hours" in decision.text
    free = watch_decision(update(), diagnosis(), level=LEVEL, cost=CostModel(source="none"))
    assert free.gpu_hours is None
    assert "saves" not in free.text


def test_a_change_names_what_would_be_stable():
    told = watch_decision(
        update(p_unstable=0.4, gentler_rate=1e-4), diagnosis(), level=LEVEL, cost=COST
    )
    assert "0.0001 instead of 0.0003" in told.text
    lost = watch_decision(update(p_unstable=0.4), diagnosis(), level=LEVEL, cost=COST)
    assert "No tried learning rate" in lost.text
    bad = watch_decision(update(), diagnosis(card("truncation")), level=LEVEL, cost=COST)
    assert "Mend it" in bad.text


def test_a_healthy_run_goes_on_and_a_broken_one_does_not(posterior, rows):
    watch = Watch(posterior, planned_steps=2 * PLAN.steps)
    healthy = PLAN.run(rows)
    for seen in (15, 40, 100):
        assert not watch_report(watch, healthy.before(seen)).decision.is_alarm
    broken = PLAN.run(np.where(np.arange(PLAN.steps) < 60, rows, 0.02))
    assert not watch_report(watch, broken.before(60)).decision.is_alarm
    alarms = [watch_report(watch, broken.before(seen)).decision.is_alarm for seen in range(61, 66)]
    assert alarms[-1]
    assert diagnose(broken).verdict == "FAIL"


def test_the_runs_own_step_times_price_it(posterior, rows):
    watch = Watch(posterior, planned_steps=2 * PLAN.steps)
    timed = PLAN.run(rows, series={"reward": rows, "step_time_seconds": np.full(rows.size, 18.0)})
    decision = watch_report(watch, timed, gpus=4).decision
    assert decision.gpu_hours == pytest.approx(PLAN.steps * 18 * 4 / 3600)
    assert watch_report(watch, PLAN.run(rows)).decision.gpu_hours is None


@pytest.mark.parametrize(("step", "word"), [(40, "Go on: "), (140, "Finished: ")])
def test_a_run_whose_steps_are_done_is_finished(step, word):
    found = watch_decision(update(step=step), diagnosis(), level=LEVEL, cost=COST)
    assert found.text.startswith(word)


def test_of_a_run_that_is_over_is_said_what_became_of_it():
    def said(*cards):
        return watch_decision(update(step=140), diagnosis(*cards), level=LEVEL, cost=COST).text

    assert said() == "Finished: the run stayed stable."
    assert said(card("collapse", "WARNING")) == "Finished: It is bad."
    assert said(card("truncation", "WARNING")) == "Finished: It is bad."
    assert said(card("truncation", "INFO")) == "Finished: the run stayed stable."


def test_a_warning_is_named_while_the_run_goes_on():
    warned = diagnosis(card("truncation", "WARNING"))
    found = watch_decision(update(), warned, level=LEVEL, cost=COST)
    assert found.text.startswith("Go on: It is bad; P(stable) is ")
    assert not found.is_alarm
