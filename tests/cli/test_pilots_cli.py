"""``advisor pilots``: what it reads, prints and writes, and how it ends."""

from __future__ import annotations

import json

import pytest
from made_plan import KNOWN, made_plan
from simulated_runs import Plan, made_up_posterior, rising, with_meta, without_line
from undrawn import draw_nothing

from advisor.advice import PLAN, Piloting, piloting
from advisor.cli import pilots as command

RATES = (1e-4, 3e-4, 1e-3)
LENGTH, STEPS = 60, 1000


@pytest.fixture
def folder(tmp_path):
    """A plan for TRL, as advisor plan writes it."""
    at = tmp_path / "pilots"
    plan = made_plan(RATES, LENGTH, STEPS)
    for pilot in plan.pilots:
        (at / pilot.name).mkdir(parents=True)
        (at / pilot.name / "trl_config.yaml").write_text("learning_rate: 1\n")
    (at / PLAN).write_text(plan.model_dump_json())
    return at


def log(folder, number, rows):
    curve = rising(LENGTH, end=0.8 - 0.01 * number)[:rows]  # equal logs would be copies
    lines = [
        json.dumps({"step": at, "reward": float(reward)})
        for at, reward in enumerate(curve, start=1)
    ]
    (folder / f"pilot-{number}" / "log.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def fitted(monkeypatch):
    """A fit in no time: nothing but the luck of a run is left unknown."""

    def fit(runs, **asked):
        plans = [Plan(rate) for rate in RATES[: len(runs)]]
        found = without_line(made_up_posterior(plans, width=0.02, moved=KNOWN))
        summaries = [
            summary.model_copy(update={"id": run.id})
            for summary, run in zip(found.meta.runs, runs, strict=True)
        ]
        return with_meta(found, runs=tuple(summaries))

    monkeypatch.setattr(piloting, "fit", fit)
    draw_nothing(monkeypatch)


def test_stop_without_a_recommendation_is_exit_code_3(folder, run, fitted):
    log(folder, 1, 20)
    log(folder, 2, 20)
    pilots = json.loads((folder / PLAN).read_text())
    pilots["pilots"] = pilots["pilots"][:2]
    (folder / PLAN).write_text(json.dumps(pilots))
    code, out, _ = run("pilots", folder)
    assert code == 3
    assert out.startswith("STOP PILOTING")
    assert "Too few pilots for a recommendation, and none is worth its price." in out
    assert "tell too little" not in out


def made_word(plan, word="go on"):
    return Piloting(
        word=word,
        reason="so it is.",
        pilots=(),
        spent=0.1,
        left=900,
        said=(),
        advice=None,
        settings=None,
    )


def test_following_ends_with_the_final_word(folder, run, fitted, monkeypatch):
    log(folder, 1, 10)
    words = iter(["go on", "stop"])
    asked = []

    def pilots(plan, runs, **more):
        asked.append([len(run.step) for run in runs])
        return made_word(plan, next(words))

    sleeps = iter([10, 11, 60])
    monkeypatch.setattr("advisor.advice.pilots", pilots)
    monkeypatch.setattr(command.time, "sleep", lambda _: log(folder, 1, next(sleeps)))
    code, out, _ = run("pilots", folder, "--follow", "--json")
    assert code == 3
    assert [json.loads(line)["word"] for line in out.splitlines()] == ["go on", "stop"]
    # One row more of sixty is no reason to fit again.
    assert asked == [[10], [60]]


def test_log_that_cannot_be_read_yet_is_said(folder, run, fitted):
    log(folder, 1, 20)
    log(folder, 2, 1)
    code, out, _ = run("pilots", folder)
    assert code in (0, 3)
    assert "pilot-2/log.jsonl cannot be read yet: run 'pilot-2/log' has only 1 row" in out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": 40}, "have cost 150% of the full run of 40 steps"),
        ({"of_another_version": 1}, "another version wrote it"),
        ({"priors": "mine"}, "--priors"),
    ],
)
def test_bad_input_is_one_sentence(folder, run, fitted, change, said):
    log(folder, 1, 60)
    told = json.loads((folder / PLAN).read_text())
    (folder / PLAN).write_text(json.dumps({**told, **change}))
    code, out, err = run("pilots", folder, "--quiet")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert "`" not in err


def test_missing_plan_logs_and_occupied_folder(folder, run, tmp_path):
    nowhere = tmp_path / "nowhere"
    for arguments, said in (
        ([nowhere], "PLAN: there is no plan"),
        ([folder, "--logs", nowhere], "nowhere"),
        ([folder, "--out", folder], "no study"),
    ):
        code, _, err = run("pilots", *arguments)
        assert code == 2
        assert said in err
