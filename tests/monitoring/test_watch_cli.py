"""The command: one update, following, its exit codes, and what it imports."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from processes import python
from typer.testing import CliRunner
from watched import PLAN

from advisor import cli
from advisor.errors import InputError
from advisor.monitoring import follow, load_posterior

NAMED = ["--set", "group_size=8", "--set", "prompts_per_step=16", "--set", "learning_rate=3e-4"]


@pytest.fixture
def saved(posterior, tmp_path):
    path = tmp_path / "posterior.nc"
    posterior.save(path)
    return path


@pytest.fixture
def log(tmp_path, rows):
    path = tmp_path / "run.jsonl"
    write(path, rows[:60])
    return path


def write(path, rewards):
    lines = [json.dumps({"step": at, "reward": float(r)}) for at, r in enumerate(rewards, start=1)]
    path.write_text("\n".join(lines) + "\n")


def run(*arguments):
    return CliRunner().invoke(cli.app, ["watch", *map(str, arguments), *NAMED])


@pytest.mark.evidence
def test_one_update_is_one_line(log, saved):
    done = run(log, "--posterior", saved, "--once", "--steps", 100, "--target-reward", 0.7)
    assert done.exit_code == 0
    (line,) = done.stdout.splitlines()
    assert line.startswith("step 60 of 100; reward 0.7")
    assert re.search(r"; mean of its last tenth [\d.]+, 80 % interval \[[\d.]+, [\d.]+\]; ", line)
    assert "P(reach)" in line
    assert "Go on" in line


@pytest.mark.evidence
def test_notes_are_said_once_and_beside_the_updates(log, saved):
    new = ["--set", "model=large", "--set", "parameters=1e7"]
    done = run(log, "--posterior", saved, "--once", "--steps", 100, *new)
    assert done.exit_code == 0
    (line,) = done.stdout.splitlines()
    assert line.startswith("step 60 of 100")
    assert done.stderr.count("no pilot trained large") == 1


@pytest.mark.evidence
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_json_holds_everything(log, saved, quiet):
    done = run(log, "--posterior", saved, "--once", "--steps", 100, "--json", *quiet)
    told = json.loads(done.stdout)
    assert told["update"]["step"] == 60
    assert told["decision"]["action"] == "go on"
    assert {card["mode"] for card in told["diagnosis"]["cards"]} >= {"collapse", "truncation"}


@pytest.mark.evidence
def test_a_failed_run_ends_with_5_and_quiet_says_only_that(log, saved, rows):
    quiet = ["--once", "--steps", 200, "--quiet"]
    done = run(log, "--posterior", saved, *quiet)
    assert (done.exit_code, done.stdout) == (0, "")
    write(log, np.where(np.arange(PLAN.steps) < 50, rows, 0.01))
    done = run(log, "--posterior", saved, *quiet)
    assert done.exit_code == 5
    assert "STOP" in done.stdout


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--dry-run"], "--dry-run"),
        (["--stop", "no-such-program-here 1"], "names no program"),
        (["--stop", " "], "names no program"),
    ],
)
def test_a_command_that_cannot_stop_a_run_is_refused_before_the_run(log, saved, flags, says):
    done = run(log, "--posterior", saved, "--once", *flags)
    assert isinstance(done.exception, InputError)
    assert says in str(done.exception)


def test_stop_runs_its_command_unless_dry(tmp_path):
    from advisor.cli.logs import stopper

    mark = tmp_path / "mark of the run"
    command = f"touch '{mark}'"
    assert stopper(command, is_dry=True)().startswith("Dry run")
    assert not mark.exists()
    assert stopper(command, is_dry=False)() == f"Stopped the run: {command}"
    assert mark.exists()
    with pytest.raises(InputError, match="ended with code 1"):
        stopper("false", is_dry=False)()


@pytest.mark.evidence
@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_a_dead_run_is_stopped_and_watching_ends(log, saved, rows, tmp_path, flags):
    mark = tmp_path / "stopped"
    stop = ["--stop", f"touch {mark}", *flags]
    done = run(log, "--posterior", saved, "--once", "--steps", 200, *stop)
    assert (done.exit_code, mark.exists()) == (0, False)  # it goes on
    write(log, np.where(np.arange(PLAN.steps) < 50, rows, 0.01))
    done = run(log, "--posterior", saved, "--steps", 200, *stop)  # follows
    assert done.exit_code == 5
    assert mark.exists() == (not flags)


@pytest.mark.evidence
def test_following_ends_with_the_planned_steps(log, saved, rows, monkeypatch):
    grown = iter(range(61, 71))

    def sleep(seconds):
        write(log, rows[: next(grown)])

    monkeypatch.setitem(follow.__kwdefaults__, "sleep", sleep)
    done = run(log, "--posterior", saved, "--steps", 65, "--every", 0.1)
    steps = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("step")]
    assert steps == ["60", "61", "62", "63", "64", "65"]
    assert done.exit_code == 0


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (["--set", "task=chess"], "posterior holds tiny-s on sort"),
        (["--target-reward", "7"], "outside"),
    ],
)
def test_what_is_wrong_is_said(log, saved, changed, says):
    done = run(log, "--posterior", saved, "--once", "--steps", 100, *changed)
    assert isinstance(done.exception, InputError)
    assert says in str(done.exception)


@pytest.mark.evidence
def test_another_task_is_said_and_survived_while_following(log, saved, rows, monkeypatch):
    class EnoughError(Exception):
        pass

    left = [61, 62]

    def sleep(seconds):
        if not left:
            raise EnoughError
        write(log, rows[: left.pop(0)])

    monkeypatch.setitem(follow.__kwdefaults__, "sleep", sleep)
    done = run(log, "--posterior", saved, "--steps", 100, "--set", "task=chess")
    assert isinstance(done.exception, EnoughError)
    assert done.stdout.count("no forecast") == 1


def test_no_posterior(log, tmp_path):
    done = run(log, "--posterior", tmp_path / "none", "--once")
    assert isinstance(done.exception, InputError)
    assert "`posterior`" in str(done.exception)


def test_paths_are_looked_at_before_anything_is_loaded(log, saved, tmp_path, monkeypatch):
    done = run(tmp_path / "none.jsonl", "--posterior", tmp_path / "nothing", "--once")
    assert isinstance(done.exception, InputError)
    assert done.exception.path == str(tmp_path / "none.jsonl")
    monkeypatch.setattr("advisor.monitoring.Watch", lambda *given, **more: pytest.fail("loaded"))
    pilots = tmp_path / "no_pilots"
    done = run(log, "--posterior", saved, "--once", "--pilots", pilots, *NAMED)
    assert isinstance(done.exception, InputError)
    assert done.exception.path == str(pilots)


@pytest.mark.evidence
def test_watching_loads_no_sampler(log, saved):
    code = (
        "import sys; from advisor.cli import main\n"
        f"try: main(['watch', {str(log)!r}, '--posterior', {str(saved)!r}, '--once', "
        f"'--steps', '100', *{NAMED!r}])\n"
        "except SystemExit as end: assert not end.code\n"
        "print([m for m in ('pymc', 'pytensor', 'optuna', 'nutpie') if m in sys.modules])"
    )
    done = python("-W", "ignore", "-c", code)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_gpus_and_steps_are_those_of_the_study(saved):
    assert load_posterior(saved)[1] == (None, 1, None)
    answer = {"steps": 500, "cost_model": {"gpus": 8}}
    (saved.parent / "recommendation.json").write_text(json.dumps(answer))
    assert load_posterior(saved)[1][:2] == (500, 8)
    (saved.parent / "recommendation.json").write_text("[]")
    assert load_posterior(saved)[1] == (None, 1, None)
