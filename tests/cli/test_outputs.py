"""Places that cannot be written: refused before any work, and no answer goes with them."""

from __future__ import annotations

import json

import pytest
from simulated_runs import made_up_posterior

import advisor.backtesting
import advisor.forecast.fitting
from advisor import demo_folder
from advisor.study import Study


@pytest.fixture
def nowhere(tmp_path):
    (tmp_path / "file").write_text("keep me")
    return tmp_path / "file"


@pytest.fixture
def no_work(monkeypatch):
    def worked(*given, **more):
        raise AssertionError("work was done")

    monkeypatch.setattr(advisor.forecast, "fit", worked)
    monkeypatch.setattr(advisor.backtesting, "backtest", worked)


@pytest.mark.parametrize(
    ("command", "flag", "name"),
    [
        ("fit", "--out", "posterior.nc"),
        ("advise", "--out", "study"),
        ("advise", "--storage", "studies.journal"),
        ("backtest", "--predictions", "predictions.jsonl"),
    ],
)
def test_place_is_tried_before_work(run, nowhere, no_work, command, flag, name, monkeypatch):
    monkeypatch.chdir(nowhere.parent)
    code, out, said = run(command, demo_folder(), flag, nowhere / name)
    assert code == 2, said
    assert flag in said
    assert out == ""
    assert nowhere.read_text() == "keep me"


@pytest.mark.evidence
def test_answer_is_printed_and_kept_where_its_folder_fails(run, nowhere, tmp_path, monkeypatch):
    """The disk fills up after the check."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(advisor.forecast, "fit", lambda *given, **more: made_up_posterior())
    monkeypatch.setattr("advisor.study.check_place", lambda folder: None)
    whole = run("advise", demo_folder(), "--out", "study", "--quiet", "--json")
    code, out, said = run("advise", demo_folder(), "--out", nowhere / "study", "--quiet", "--json")
    assert whole[0] == 0, whole[2]
    assert code == 2
    told, expected = json.loads(out), json.loads(whole[1])
    assert told["settings"] == expected["settings"]
    assert "Nothing is lost: it is in" in said
    kept = said.partition("it is in ")[2].strip().removesuffix(".")
    assert json.loads(Study.load(kept).recommendation.to_json()) == told
