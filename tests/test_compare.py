"""``advisor compare``: two studies, two runs, or a study and what came of its forecasts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import PLANS, Plan, made_up_posterior, rising
from undrawn import draw_nothing

import advisor.reporting
from advisor import demo_folder
from advisor.advice import advise
from advisor.diagnosis import diagnose
from advisor.errors import InputError
from advisor.model import cohort_of
from advisor.study import Study
from advisor.study.comparison import compare_runs
from advisor.study.outcomes import compared, rounded, written


def answered(posterior, **asked):
    return Study(posterior, advise(posterior, trials=30, weigh_pilots=False, **asked))


@pytest.fixture(scope="module")
def base():
    return answered(made_up_posterior())


def lines_of(found, title):
    (section,) = (section for section in found.sections if section.title == title)
    return {line.name: line for line in section.lines}


def differing(found, title):
    return {name: line for name, line in lines_of(found, title).items() if line.differs}


# A study and finished runs -----------------------------------------------------------------------


def finished(settings, end, name="full", steps=120, **updates):
    plan = Plan(settings.learning_rate, settings.group_size, model="tiny-m", parameters=4e5)
    return plan.run(rising(steps, end=end), name, hyperparameters=settings, **updates)


def outcome(study, *runs):
    (section,) = replace(study, finished=runs).outcome().sections
    return section


def test_a_run_is_forecast_at_its_own_settings_and_length(base):
    other = base.recommendation.settings.model_copy(update={"learning_rate": 2e-3})
    (line,) = outcome(base, finished(other, 0.6, steps=90)).lines
    (row,) = base.what_if(learning_rate=2e-3, steps=90).to_dict("records")
    assert line.name == "full"
    assert line.one == {
        "mean": row["reward"],
        "low": row["reward_low"],
        "high": row["reward_high"],
        "p_stable": row["p_stable"],
        "steps": 90,
    }
    assert line.other["reward"] == pytest.approx(rising(90, end=0.6)[81:].mean())
    assert line.other["completions"] == row["completions"]
    assert line.apart == pytest.approx(line.other["reward"] - row["reward"])


def test_only_an_outcome_outside_the_interval_differs(base):
    advised = base.recommendation.settings
    low, high = base.recommendation.reward.low, base.recommendation.reward.high
    steps = base.recommendation.steps
    for end, differs in ((low - 0.05, True), ((low + high) / 2, False), (high + 0.02, True)):
        (line,) = outcome(base, finished(advised, end, steps=steps)).lines
        assert line.differs is differs
        assert line.note.endswith("outside the interval" if differs else "inside the interval")


def test_runs_are_named_by_their_place_in_the_answer(base):
    advice = base.recommendation
    recipe, named = advice.recipes[0], advice.best_piloted.settings
    runs = [
        finished(advice.settings.model_copy(update={"learning_rate": 7e-4}), 0.7, "mine"),
        finished(recipe.settings, 0.2, "slow"),
        finished(named, 0.7, "piloted"),
        finished(advice.settings, 0.7, "own"),
    ]
    found = outcome(base, *runs)
    assert [line.name for line in found.lines] == [
        "advised: own",
        "best pilot's settings: piloted",
        f"{recipe.name}: slow",
        "mine",
    ]
    assert not any("None of these" in note for note in found.notes)
    assert "None of these runs has the advised settings." in outcome(base, *runs[:3]).notes


def test_a_collapsed_run_is_called_so(base):
    settings, curve = base.recommendation.settings, rising(120)
    curve[60:] = 0.0
    run = finished(settings, 0.8)
    fallen = run.model_copy(update={"series": {"reward": curve}})
    (line,) = outcome(base, fallen).lines
    assert line.other["collapse_step"] is not None
    assert "collapsed at step" in line.shown[1]
    assert "stable" in outcome(base, run).lines[0].shown[1]


def test_held_out_rewards_are_judged_by_evaluations_alone(base):
    settings = base.recommendation.settings
    held_out = Study(
        base.posterior, base.recommendation.model_copy(update={"measure": "held-out reward"})
    )
    (line,) = outcome(held_out, finished(settings, 0.7)).lines
    assert line.other["reward"] is None
    assert line.differs
    assert line.shown[1].startswith("no evaluation in its last tenth")
    evaluated = finished(
        settings, 0.7, eval_step=np.array([0.0, 60, 120]), eval_reward=np.array([0.1, 0.4, 0.65])
    )
    assert outcome(held_out, evaluated).lines[0].other["reward"] == 0.65


def test_the_page_ends_with_what_came(base):
    settings = base.recommendation.settings
    study = replace(base, finished=(finished(settings, 0.7, "<b>own"),))
    with pytest.MonkeyPatch.context() as patch:
        shown = {}
        draw_nothing(patch)
        patch.setattr(
            advisor.reporting, "report", lambda *given, **parts: shown.update(parts) or given[2]
        )
        study.report("page.html")
        base_shown = dict(shown)
        base.report("page.html")
    (row,) = base_shown["outcome"]["rows"]
    assert row[0] == "advised: <b>own"
    assert shown["outcome"] is None


# Runs --------------------------------------------------------------------------------------------


def run_of(plan=None, end=0.8, steps=60, noise=0.02, seed=0, **updates):
    rng = np.random.default_rng(seed)
    curve = rising(steps, end=end) + noise * rng.standard_normal(steps)
    return (plan or Plan()).run(curve, **updates)


def test_a_run_does_not_differ_from_itself():
    found = compare_runs(("a", "b"), run_of(), run_of())
    assert not found.differs
    assert {section.title for section in found.sections} == {
        "Settings",
        "Lengths",
        "Levels",
        "Diagnosis",
    }


def test_runs_of_other_settings_lengths_and_levels():
    other = run_of(Plan(1e-3, 32, 2, 2), end=0.5, steps=90, seed=1)
    found = compare_runs(("a", "b"), run_of(), other)
    settings = differing(found, "Settings")
    assert settings["learning_rate"].shown == ("0.0003", "0.001")
    assert settings["refresh interval (K)"].shown == ("1", "4")
    assert "momentum" not in settings
    assert differing(found, "Lengths")["last step"].shown == ("60", "90")
    levels = differing(found, "Levels")
    assert "last reward" in levels
    assert levels["last reward"].apart < -2
    assert levels["last reward"].one["mean"] == pytest.approx(0.8, abs=0.02)
    assert 0 < levels["last reward"].one["error"] < 0.02


def test_verdicts_differ():
    fallen = Plan().run(np.r_[rising(40), np.zeros(20)])
    found = compare_runs(("a", "b"), run_of(), fallen)
    verdicts = differing(found, "Diagnosis")
    assert verdicts["verdict"].shown == ("PASS", "FAIL")
    assert verdicts["Collapse"].shown[1].startswith("FAIL: ")
    assert 38 <= verdicts["collapse at step"].other <= 43


def test_a_fall_has_one_date_wherever_it_is_shown():
    """Stated or read off the rewards, alone or next to a run that shows that it was dead."""
    alive = run_of(steps=60)
    fallen = Plan().run(np.r_[rising(40), np.linspace(0.7, 0.0, 9), np.zeros(11)], "fallen")
    dead = Plan(3e-2).run(np.r_[0.2, 0.05 * np.ones(5), np.zeros(24)], "dead")
    for run in (fallen, fallen.with_updates(collapsed=True), dead):
        both = [alive, run]
        shown = differing(compare_runs(("a", "b"), *both), "Diagnosis")["collapse at step"].other
        assert shown == diagnose(run, siblings=both).collapse_step
        assert shown == cohort_of(both).fell_from[1]


# Lines -------------------------------------------------------------------------------------------


def test_what_differs_looks_different():
    line = compared("x", 0.1234567891, 0.1234567892)
    assert line.differs
    assert line.shown[0] != line.shown[1]
    assert not compared("x", 1.0, 1).differs
    assert written({"a": 0.5, "b": None}) == "a 0.5, b -"
    assert written(True) == "yes"
    assert not compared("x", rounded(0.12345), rounded(0.12346)).differs
    assert compared("x", rounded(None), rounded(1.0)).shown == ("-", "1")


# Command -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def studies(tmp_path_factory, base):
    folder = tmp_path_factory.mktemp("studies")
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        base.save(folder / "a")
        answered(made_up_posterior(PLANS[:3], seed=2)).save(folder / "b")
    return folder


PILOTS = demo_folder()
ONE = PILOTS / "s_lr3e-4_g8_k2" / "trainer_state.json"


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ("study", ONE, ["'tiny-s'", "advises on 'tiny-m'", "finished runs"]),
        (ONE, "study", ["'tiny-s'", "advises on 'tiny-m'", "finished runs"]),
        ("study", "no log", ["notes.md", "no run was found"]),
        (ONE, PILOTS, ["12 runs", "one of them", "m_lr1e-4_g16_k1"]),
        (ONE, "missing", ["missing", "no such file"]),
        (ONE, "empty", ["no run was found", "no study"]),
        (ONE, "no log", ["notes.md", "no run was found", "no study"]),
    ],
)
def test_what_cannot_be_compared_is_refused(run, studies, tmp_path, left, right, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "no log").mkdir()
    (tmp_path / "no log" / "notes.md").write_text("nothing")
    named = {
        "study": studies / "a",
        **{name: tmp_path / name for name in ("missing", "empty", "no log")},
    }
    code, out, message = run("compare", named.get(left, left), named.get(right, right))
    assert (code, out) == (2, "")
    assert message.startswith("Error: ")
    assert message.count("\n") == 1
    assert all(word in message for word in words), message


def test_a_run_that_names_no_model_is_of_the_only_one():
    alone = answered(made_up_posterior([Plan(), Plan(1e-3), Plan(1e-4)]))
    settings = alone.recommendation.settings
    run = Plan(settings.learning_rate).run(rising(90, end=0.6), "x", hyperparameters=settings)
    (line,) = outcome(alone, run.with_updates(model=None)).lines
    assert line.other["reward"] is not None
    several = answered(made_up_posterior())
    with pytest.raises(InputError, match="is of model '-'"):
        outcome(several, run.with_updates(model=None))


def test_runs_make_a_table_of_what_is_known_of_them():
    runs = [Plan().run(rising(30, end=0.6), "one"), Plan(1e-3).run(rising(40, end=0.7), "two")]
    found = advisor.table(runs)
    assert list(found.index) == ["one", "two"]
    assert list(found["learning_rate"]) == [3e-4, 1e-3]
    assert list(found["last step"]) == [30, 40]
    assert found["last reward"]["two"] > found["first reward"]["two"]
    assert "adapter_rank" not in found.columns
