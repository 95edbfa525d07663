"""``advisor what-if``, ``next-pilot`` and ``export`` as the user of a finished study meets them."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from processes import python
from simulated_runs import PLANS, made_up_posterior
from trainers.launched import words_of
from trainers.stated import arguments_in, overrides_in, settings_in
from undrawn import draw_nothing

from advisor import demo_folder
from advisor.advice import advise, gpu_time, percent, piloted, what_if
from advisor.cli.study import _table
from advisor.runs import Trainer
from advisor.study import Study, compare

NOTHING_LIVES = {"hazard.level": 6.0}


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """What ``advisor demo`` leaves behind, made once."""
    folder = tmp_path_factory.mktemp("demo") / "study"
    python("-m", "advisor", "demo", "--quiet", "--out", folder, check=True)
    return folder


@pytest.fixture(scope="session")
def said(demo):
    return Study.load(demo).recommendation


def study_of(folder: Path, posterior: Any, **asked: Any) -> Path:
    """Study of a made-up posterior, without its figures."""
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        Study(posterior, advise(posterior, trials=40, **asked)).save(folder)
    return folder


@pytest.fixture(scope="session")
def infeasible(tmp_path_factory):
    folder = tmp_path_factory.mktemp("infeasible") / "study"
    return study_of(folder, made_up_posterior(), level=0.99999, seed=3)


@pytest.fixture(scope="session")
def lifeless(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lifeless") / "study"
    return study_of(folder, made_up_posterior(moved=NOTHING_LIVES), weigh_pilots=False)


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """Run a command in an empty folder; what it printed, and that it wrote nothing else."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)

    def once(*arguments: Any, code: int = 0, writes: tuple[str, ...] = ()) -> str:
        before = {path.name for path in place.iterdir()}
        found, out, err = run(*arguments)
        assert found == code, err
        assert "Warning" not in err
        assert {path.name for path in place.iterdir()} == before | {*writes}
        assert out == "" or not code
        return err if code else out

    return once


def table(run: Any, *arguments: Any) -> list[dict[str, Any]]:
    rows = json.loads(run("what-if", *arguments, "--json"))
    assert isinstance(rows, list)
    return rows


HASTY = """
import sys
from advisor.cli import main
try:
    main(sys.argv[1:])
finally:
    print([name for name in ("pandas", "scipy", "pymc", "optuna") if name in sys.modules])
"""


@pytest.mark.evidence
@pytest.mark.parametrize(
    "arguments",
    [("what-if", "--group-size", "32"), ("what-if", "--json"), ("export", "--to", "trl")],
)
def test_a_saved_answer_is_asked_without_slow_imports(infeasible, arguments):
    """Two thirds of the second that an answer takes are imports: pandas alone was half of it."""
    command, *flags = arguments
    done = python("-c", HASTY, command, infeasible, *flags, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# The demo ----------------------------------------------------------------------------------------


@pytest.mark.evidence
def test_the_demo_ends_with_what_came_of_its_full_runs(demo, said):
    full_runs = demo_folder().with_name("demo") / "full_runs"
    found = compare(demo, full_runs)
    ((lines, notes),) = ((section.lines, section.notes) for section in found.sections)
    assert [line.name.partition(":")[0] for line in lines[:3]] == [
        "advised",
        "advised",
        "best pilot's settings",
    ]
    assert {line.name.partition(":")[0] for line in lines[3:]} == {r.name for r in said.recipes}
    page = html.unescape((demo / "report.html").read_text())
    assert page.index("Forecast and outcome</h2>") < page.index("What if</h2>")
    for line in lines:
        assert line.name in page
        assert line.shown[0] in page
        assert line.one["steps"] == said.steps
    assert said.pilots_cost <= 0.25 * said.cost.completions
    assert f"{said.pilots_cost:,.0f} completions" in " ".join(notes)


# what-if ---------------------------------------------------------------------------------------


@pytest.mark.evidence
def test_text_tells_what_json_tells(run, demo, said):
    flags = [demo, "--learning-rate", "3e-3", "--group-size", 8, "--steps", 300]
    (row,) = table(run, *flags)
    head, line, *below = run("what-if", *flags).strip().splitlines()
    assert f"{said.measure} if stable [80 %]" in head
    assert line.split()[:2] == ["0.003", "8"]
    for told in (
        f" {said.settings.refresh_interval} (",
        " 300 ",
        f" {row['reward']:.3f} [{row['reward_low']:.3f}, {row['reward_high']:.3f}]",
        f" {row['completions']:,.0f} ",
    ):
        assert told in line
    assert line.endswith(f" {gpu_time(row['gpu_hours'])}")
    assert f" {percent(row['p_stable'])} " in line
    assert below[0].startswith("P(stable) joins its parts refresh, rate and fluctuation")
    assert bool(below[1:]) != row["supported"]
    # Other settings give other numbers: it is not the advice that is told again.
    assert row["reward"] < said.reward.low
    assert row["p_stable"] < said.stability.probability - 0.05


@pytest.mark.parametrize("high", [0.9, 0.95])
def test_the_table_says_how_p_stable_follows_from_its_parts(high):
    posterior = made_up_posterior(PLANS[:2])
    (row,) = what_if(posterior, steps=50).to_dict("records")
    row |= {"p_stable": 0.9, "p_stable_low": 0.9, "p_stable_high": high}
    (line,) = _table([row], "reward", piloted(posterior), 50).splitlines()[2:]
    assert line.startswith("P(stable) joins its parts refresh, rate and fluctuation")
    assert line.endswith("recalibrated on runs of known outcome, so it is not their product.") == (
        high > 0.9
    )


def test_a_run_longer_than_was_measured_elsewhere_is_said_not_to_be_supported():
    posterior = made_up_posterior(PLANS[:2])
    rows = what_if(posterior, steps=[50, 5000]).to_dict("records")
    shown = _table(rows, "reward", piloted(posterior), 750).splitlines()
    assert "NOT SUPPORTED beyond step 750" in shown[-1]
    assert "Extrapolated" in shown[-2]
    assert "NOT SUPPORTED" not in _table(rows, "reward", piloted(posterior), 5000)


def test_a_schedule_that_decays_does_so_over_the_steps_asked_for(run, tmp_path):
    for schedule, others in (("linear", 1), ("constant", 0)):
        plans = [replace(plan, schedule=schedule) for plan in PLANS]
        asked = {"steps": 150, "weigh_pilots": False}
        study = study_of(tmp_path / schedule, made_up_posterior(plans), **asked)
        advised = Study.load(study).recommendation
        assert advised.settings.planned_steps == 150  # the pilots' were over 60
        assert advised.summary.count(f"after 150 steps ({schedule} schedule)") == others
        body = f"; the learning rate decays over 150 steps ({schedule})."
        assert advised.text.count(body) == others
        shown = run("what-if", study, "--steps", 90)
        assert shown.count(f"decays over the steps of each row ({schedule}).") == others


# next-pilot ------------------------------------------------------------------------------------


@pytest.mark.evidence
def test_no_pilot_that_would_live_is_exit_code_3(run, lifeless):
    message = run("next-pilot", lifeless, code=3)
    assert message.startswith("Error: No configuration offered is likely to survive even a short")
    assert message.count("\n") == 1


def test_the_next_pilot_is_what_the_answer_is_headed_by(run, tmp_path):
    study = study_of(tmp_path / "study", made_up_posterior([PLANS[0]], moved=None))
    advice = Study.load(study).recommendation
    assert advice.title == "Run these 2 pilots first"
    named = run("next-pilot", study).strip()
    assert named in advice.summary
    assert named.count("learning_rate=") == 2
    # Another length is another question.
    assert "steps. Why: " in run("next-pilot", study, "--steps", 30)


# export ----------------------------------------------------------------------------------------


def settings_of_trl(text: str, folder: Path) -> dict[str, Any]:
    path = folder / "config.yaml"
    path.write_text(text)
    return Trainer.named("TRL").keys[0].derive(settings_in(path)).facts


def settings_of_verl(text: str, folder: Path) -> dict[str, Any]:
    module, *words = words_of(text, folder)[1:]
    assert module == "verl.trainer.main_ppo"
    return Trainer.named("verl").keys[0].derive(overrides_in(words)).facts


def settings_of_openrlhf(text: str, folder: Path) -> dict[str, Any]:
    module, *words = words_of(text, folder)[1:]
    assert module == "openrlhf.cli.train_ppo_ray"
    given = arguments_in(words)
    # OpenRLHF prints this quotient, from which the length of the run follows.
    given["num_rollouts_per_episodes"] = given["data.max_samples"] // given["rollout.batch_size"]
    return Trainer.named("OpenRLHF").keys[0].derive(given).facts


READERS = {"trl": settings_of_trl, "verl": settings_of_verl, "openrlhf": settings_of_openrlhf}
ADVISED = (
    "learning_rate",
    "group_size",
    "prompts_per_step",
    "minibatches_per_refresh",
    "epochs_per_refresh",
    "planned_steps",
)


@pytest.mark.evidence
@pytest.mark.parametrize("trainer", READERS)
def test_export_is_read_back_as_what_was_advised(run, demo, said, tmp_path, trainer):
    facts = READERS[trainer](run("export", demo, "--to", trainer), tmp_path)
    expected = said.settings.model_dump(include={*ADVISED})
    assert expected["planned_steps"] == said.steps
    if trainer == "openrlhf":  # its length is in episodes, which do not tell steps alone
        expected["planned_steps"] = None
    assert {name: facts.get(name) for name in ADVISED} == expected


@pytest.mark.evidence
@pytest.mark.parametrize("trainer", READERS)
def test_out_is_what_would_be_printed(run, demo, trainer):
    flags = ["export", demo, "--to", trainer]
    printed = run(*flags)
    assert run(*flags, "--out", "config", writes=("config",)) == ""
    assert Path("config").read_text() == printed


@pytest.mark.evidence
def test_an_export_says_where_it_comes_from(run, demo, said):
    text = run("export", demo, "--to", "verl")
    assert f"from pilots {said.provenance.data_sha256[:8]}" in text
    assert said.target.model in text
