"""In a notebook: objects show themselves as tables, and a DataFrame is a log."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from simulated_runs import Plan, rising

import advisor
from advisor.errors import InputError

SETTINGS = {"learning_rate": 1e-6, "group_size": 8, "prompts_per_step": 16}


def frame(rows=30):
    return pd.DataFrame(
        {
            "step": np.arange(1, rows + 1),
            "reward": np.linspace(0.2, 0.6, rows),
            "entropy": np.linspace(0.9, 0.4, rows),
            "note": ["a"] * rows,
        }
    )


class Cells(HTMLParser):
    """Rows of a table, as texts."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.caption, self._into = [], "", None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        assert tag in ("table", "caption", "tr", "td", "th"), tag
        self._into = tag

    def handle_data(self, data):
        if self._into == "caption":
            self.caption += data
        elif self.rows:
            self.rows[-1].append(data)


def test_a_run_shows_its_settings_and_its_reward():
    run = Plan().run(rising(40))
    shown = Cells(run._repr_html_())
    assert shown.caption == run.id
    rows = dict(row for row in shown.rows if len(row) == 2)
    assert rows["learning_rate"] == "0.0003"
    assert rows["group_size"] == "8"
    assert " -> " in rows["train reward"]


def test_a_posterior_shows_its_table(posterior):
    shown = Cells(posterior._repr_html_())
    assert shown.caption == repr(posterior)
    assert shown.rows[0] == ["quantity", "mean", "lower", "upper"]
    assert len(shown.rows) == 1 + len(posterior.table)
    assert float(shown.rows[1][1]) == pytest.approx(posterior.table["mean"].iloc[0], rel=1e-3)


def test_an_answer_shows_what_it_advises_next_to_others(posterior):
    advice = advisor.advise(posterior, trials=30, weigh_pilots=False)
    shown = Cells(advice._repr_html_())
    assert shown.caption == repr(advice)
    assert shown.rows[1][0] == "advised"
    assert len(shown.rows) == 1 + len(advice.table)


def test_a_verdict_shows_its_cards():
    verdict = advisor.diagnose(Plan().run(np.r_[rising(40), np.zeros(20)]))
    shown = Cells(verdict._repr_html_())
    assert shown.caption.endswith(": FAIL")
    assert [row[0] for row in shown.rows[1:]] == [card.status for card in verdict.cards]


# DataFrames -------------------------------------------------------------------------------------


def test_a_frame_is_a_run_that_can_be_fitted():
    run = advisor.PilotRun.from_frame(frame(), SETTINGS, model="Qwen2.5-7B", task="gsm8k")
    assert run.needs == {}
    assert (run.parameters, run.task) == (7e9, "gsm8k")
    np.testing.assert_array_equal(run.step, np.arange(1, 31))
    np.testing.assert_array_equal(run.reward, np.linspace(0.2, 0.6, 30))
    assert set(run.series) == {"reward", "entropy"}
    assert run.keys_ignored == ("note",)
    assert run.missing["kl"] == "not logged"
    assert run.hyperparameters.group_size == 8


def test_a_run_comes_back_from_its_frame():
    made = Plan(logging=2).run(rising(40))
    held = made.with_updates(eval_step=np.array([0.0, 10.0]), eval_reward=np.array([0.2, 0.4]))
    for run in (made, held):
        again = advisor.PilotRun.from_frame(
            run.to_frame(), run.hyperparameters, model=run.model, parameters=run.parameters
        )
        for name in ("step", "eval_step", "eval_reward"):
            np.testing.assert_array_equal(getattr(again, name), getattr(run, name))
        np.testing.assert_equal(again.series, run.series)
        assert again.logging_steps == run.logging_steps
        assert again.hyperparameters == run.hyperparameters


@pytest.mark.parametrize(
    ("changed", "settings", "columns", "says"),
    [
        ({"reward": None}, SETTINGS, {}, "there is no column 'reward'"),
        ({}, SETTINGS, {"reward": "acc"}, "there is no column 'acc'"),
        ({"step": [1.0] * 2 + [*range(3, 31)]}, SETTINGS, {}, "step 1 is there 2 times"),
        ({"step": [np.nan, *range(2, 31)]}, SETTINGS, {}, "a row has no step"),
        ({"reward": ["high"] * 30}, SETTINGS, {}, "a cell is no number"),
        ({}, {**SETTINGS, "group_sise": 8}, {}, "no setting is called so"),
        ({}, {**SETTINGS, "learning_rate": -1}, {}, "-1 is not allowed"),
    ],
)
def test_what_is_wrong_with_a_frame_is_said(changed, settings, columns, says):
    own = frame().assign(**{name: values for name, values in changed.items() if values is not None})
    own = own.drop(columns=[name for name, values in changed.items() if values is None])
    with pytest.raises(InputError, match=says) as refused:
        advisor.PilotRun.from_frame(own, settings, columns=columns)
    assert len(str(refused.value).split()) <= 45 or "Known are" in str(refused.value)


def test_an_attribute_that_a_run_lacks_is_named():
    with pytest.raises(InputError, match="modell"):
        advisor.PilotRun.from_frame(frame(), SETTINGS, modell="x")
