"""What a prompt or a notebook shows of public objects: little, and what they are of."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, rising

import advisor
from advisor.advice import advise
from advisor.backtesting import Backtest, Prediction
from advisor.diagnosis import diagnose
from advisor.runs import Inspection
from advisor.study import compare


@pytest.fixture(scope="module")
def advice(posterior):
    return advise(posterior, trials=30, weigh_pilots=False)


def lines_of(text, width=100):
    """Lines that a terminal of so many columns takes for a text."""
    return sum(max(1, -(-len(line) // width)) for line in text.splitlines())


@pytest.fixture(scope="module")
def public(posterior, advice):
    """One of every kind of object that a public verb returns or takes."""
    run = Plan().run(np.r_[rising(40), np.zeros(20)])
    study = advisor.Study(posterior, advice, (diagnose(run),))
    prediction = Prediction("advisor", "sort", run.id, 0.25, (0.0, 1.0), 0.8, (0.7,) * 3, 0.1)
    return {
        "run": run,
        "inspection": Inspection([run] * 40, []),
        "diagnosis": diagnose(run),
        "posterior": posterior,
        "recommendation": advice,
        "next pilot": advisor.next_pilot(posterior, advice),
        "study": study,
        "comparison": compare(study, study),
        "backtest": Backtest((prediction,) * 200, ("left out",) * 100, ()),
        "priors": posterior.meta.priors,
        "settings": advice.settings,
        "partial settings": run.hyperparameters,
        "request": advisor.Request(steps=500, group_sizes=tuple(range(2, 200))),
        "search": advisor.Search(),
        "sampling": advisor.Sampling(),
        "target": advice.target,
        "price": advice.cost_model,
        "forecaster": advisor.Forecaster(posterior, advice.target),
    }


@pytest.mark.evidence
def test_every_public_object_fits_in_twenty_lines(public):
    long = {name: lines_of(repr(found)) for name, found in public.items()}
    assert {name: count for name, count in long.items() if count > 20} == {}
    assert lines_of(repr(posterior_fields(public["posterior"]))) > 20  # else nothing is shortened


def posterior_fields(found):
    return vars(found)


@pytest.mark.evidence
def test_short_forms_say_what_they_are_of(public):
    for name in ("run", "diagnosis", "posterior", "recommendation", "study", "priors"):
        assert repr(public[name]).startswith(type(public[name]).__name__ + "(")
    assert "5 pilots (1 collapsed)" in repr(public["posterior"])
    first = public["recommendation"].text.splitlines()[0]
    assert repr(public["recommendation"]).endswith(first)
    assert str(public["recommendation"]) == public["recommendation"].summary
    assert "FAIL" in repr(public["diagnosis"])


def test_completion_of_an_answer_offers_its_own_names_only(advice):
    offered = {name for name in dir(advice) if not name.startswith("_")}
    assert {"settings", "reward", "text", "to_json", "export"} & {*dir(type(advice))} <= offered
    assert not {"parse_obj", "construct", "copy", "dict", "json", "schema"} & offered
