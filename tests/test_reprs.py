"""What a notebook shows: a table of its own, and no name in it is a tag."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from simulated_runs import (
    PLANS,
    Plan,
    made_up_posterior,
    rising,
)

import advisor
from advisor.advice import Recommendation, advise
from advisor.backtesting import Backtest
from advisor.backtesting.scores import Prediction
from advisor.common import shown as notebook
from advisor.runs.diagnosis import diagnose
from advisor.runs.logs import Inspection
from advisor.study.comparison import compare_studies

EVIL = "<script>alert('x')</script>&\"<b>"
KNOWN = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}


class Page(HTMLParser):
    """Text of a fragment; fails at a tag that is none of ours, or is not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.cells, self.rows = [], "", [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag in KNOWN
        assert {name for name, _ in attributes} <= {"style", "class", "border"}
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def posterior():
    return made_up_posterior()


@pytest.fixture(scope="module")
def advice(posterior):
    return advise(posterior, trials=30, weigh_pilots=False)


def test_recommendation_shows_summary_and_table(advice):
    page = Page(advice._repr_html_())
    assert advice.summary in page.text
    head, *rows = page.rows
    assert head == ["configuration", *advice.table.columns]
    assert [row[0] for row in rows] == list(advice.table.index)
    assert not any(row[head.index("P(stable)")] == "100 %" for row in rows)


@pytest.mark.parametrize(
    ("asked", "title"),
    [({"level": 0.99999}, "No feasible configuration"), ({}, "Recommended configuration")],
)
def test_what_is_no_recommendation_is_headed_so(posterior, asked, title):
    found = advise(posterior, trials=30, weigh_pilots=False, **asked)
    assert Page(found._repr_html_()).text.startswith(title)


def test_posterior_shows_table_and_convergence(posterior):
    page = Page(posterior._repr_html_())
    assert [row[0] for row in page.rows[1:]] == list(posterior.table.index)
    mean = posterior.table["mean"].iloc[0]
    assert page.rows[1][1] == f"{mean:.3g}"
    assert repr(posterior) in page.text


def test_a_model_called_script_is_text():
    plans = [Plan(plan.learning_rate, plan.group_size, model=EVIL, task=EVIL) for plan in PLANS]
    posterior = made_up_posterior(plans)
    advice = advise(posterior, trials=30, weigh_pilots=False)
    for shown in (posterior, advice):
        text = shown._repr_html_()
        assert "<script" not in text
        assert "<b>" not in text
        assert EVIL in Page(text).text


def test_a_study_of_others_is_text(advice):
    told = json.loads(advice.to_json())
    told["cautions"] = [EVIL]
    told["binding"] = EVIL
    told["alternatives"] = [{**told["recipes"][0], "name": EVIL}]
    text = Recommendation.model_validate(told)._repr_html_()
    assert "<script" not in text
    assert Page(text).text.count(EVIL) == 2


def test_cells():
    assert [notebook.cell(v) for v in (None, float("nan"), 3, 46080.0, 0.0, 2.1e-4, 0.93214)] == [
        "–",
        "–",
        "3",
        "46,080",
        "0",
        "0.00021",
        "0.932",
    ]


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
        "comparison": compare_studies(("a", "b"), study, study),
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
    assert str(public["recommendation"]) == public["recommendation"].text
    assert "FAIL" in repr(public["diagnosis"])


def test_jupyter_finds_nothing_else(advice, posterior):
    """HTML beside the plain text is all; a bundle of types would say the same once more."""
    for shown in (advice, posterior):
        assert not hasattr(shown, "_repr_mimebundle_")
        assert not hasattr(shown, "_ipython_canary_method_should_not_exist_")
