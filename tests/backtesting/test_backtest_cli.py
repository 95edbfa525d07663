"""``advisor backtest`` as a user meets it: flags, JSON, files, figures, exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from simulated_runs import Plan, rising

import advisor.runs

RATES = np.geomspace(1e-4, 1e-3, 4)


def finished(model="tiny-s", task="sort", **updates):
    plans = [Plan(rate, model=model, task=task, parameters=1e5) for rate in RATES]
    rng = np.random.default_rng(len(model + task))
    return [
        plan.run(
            rising(100, end=0.6 + 0.05 * index) + 0.02 * rng.standard_normal(100),
            f"{task}-{model}-{index}",
            **updates,
        )
        for index, plan in enumerate(plans)
    ]


@pytest.fixture
def call(fits, monkeypatch, run):
    def _call(runs, *flags, code=0):
        monkeypatch.setattr(advisor.runs, "read_runs", lambda *_, **__: runs)
        found, out, err = run("backtest", "logs", "--quiet", *flags)
        assert found == code, err
        return out if code in (0, 3, 4) else err

    return _call


@pytest.mark.evidence
def test_json_holds_the_scores_of_each_method(call):
    told = json.loads(call(finished(), "--json"))
    assert list(told) == ["methods", "verdicts", "left_out", "failed", "uncurved"]
    assert told["methods"]["advisor"].keys() >= {"runs", "mae", "crps", "coverage"}
    assert list(told["methods"]["advisor"]["coverage"]) == ["0.5", "0.8", "0.95"]
    assert {"exponential", "hill", "stretched", "ensemble", "last value"} < told["methods"].keys()


@pytest.mark.evidence
def test_several_shares(call):
    told = json.loads(call(finished(), "--json", "--seen", 0.1, "--seen", 0.5))
    assert list(told["by_share"]) == ["0.1", "0.5"]
    assert told["methods"] == told["by_share"]["0.1"]
    shown = call(finished(), "--seen", 0.1, "--seen", 0.5)
    rows = [line.split() for line in shown.splitlines() if " advisor " in line]
    assert [row[0] for row in rows] == ["10%", "50%"]
    assert "4 runs in 1 cohort" in shown


@pytest.mark.evidence
def test_predictions_are_those_that_were_scored(call, tmp_path):
    path = tmp_path / "predictions.jsonl"
    told = json.loads(call(finished(), "--json", "--predictions", path))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 4 * len(told["methods"])
    for method, scores in told["methods"].items():
        own = [line for line in lines if line["method"] == method]
        errors = [abs(line["quantiles"]["0.5"] - line["target"]) for line in own]
        assert np.mean(errors) == pytest.approx(scores["mae"])
        assert np.mean([line["crps"] for line in own]) == pytest.approx(scores["crps"])
        inside = [
            line["quantiles"]["0.1"] <= line["target"] <= line["quantiles"]["0.9"] for line in own
        ]
        assert np.mean(inside) == scores["coverage"]["0.8"]
        assert all(line["bounds"] == [0.0, 1.0] for line in own)


@pytest.mark.evidence
def test_what_was_left_out_is_told_by_its_reason(call):
    short = [
        run.with_updates(id=f"short-{run.id}", step=run.step[:9], series={"reward": run.reward[:9]})
        for run in finished()[:3]
    ]
    evals = finished()[0].with_updates(
        id="evals", step=np.zeros(0), series={}, eval_step=np.ones(1), eval_reward=np.ones(1)
    )
    shown = call([*finished(), *short, evals])
    assert "Left out (4):" in shown
    assert "only 9 rows [3, for example short-sort-tiny-s-0]" in shown
    assert "only evaluations, no train reward [evals]" in shown


def test_short_runs_are_left_out(call):
    message = call(finished(), "--least-steps", 101, code=2)
    assert "only 100 optimizer steps" in message


def test_exit_codes(call):
    flat = [run.with_updates(series={"reward": np.full(run.step.size, 0.2)}) for run in finished()]
    assert "is the same in every row" in call(flat, code=3)
    assert "did not converge" in call(finished(task="stuck"), code=4)
    call(finished(), "--seen", 0.99, code=2)
    call(finished(), "--priors", "nobody", code=2)
