"""`advisor diagnose`: exit codes, JSON, Markdown, figures, and what it does not load."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from processor_time import times_a_plain_application
from typer.testing import CliRunner

from advisor.cli import app
from advisor.diagnosis import MODES

RUNNER = CliRunner()
HEAVY = ("pymc", "pytensor", "arviz", "optuna", "matplotlib", "nutpie", "numba")


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(*columns.values(), strict=True)
    lines = (
        json.dumps({"step": step, **dict(zip(columns, map(float, row), strict=True))})
        for step, row in enumerate(rows, 1)
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def wiggle(rows, seed=1):
    return 0.02 * np.random.default_rng(seed).normal(size=rows)


def healthy(rows=60):
    return 0.8 - 0.5 * np.exp(-np.arange(rows) / 15) + wiggle(rows)


def fallen(rows=60, onset=30):
    return np.where(np.arange(rows) < onset, 0.8, 0.05) + wiggle(rows)


def run(*arguments):
    return RUNNER.invoke(app, ["diagnose", *map(str, arguments)])


def in_process(*arguments):
    """As a user's shell sees it: messages and exit codes of `main`."""
    command = [sys.executable, "-m", "advisor", "diagnose", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def mixed(tmp_path):
    write(tmp_path / "good.jsonl", reward=healthy(), entropy=np.full(60, 0.5))
    write(tmp_path / "bad.jsonl", reward=fallen(), entropy=np.full(60, 0.5))
    (tmp_path / "notes.md").write_text("nothing")
    return tmp_path


def test_a_healthy_run_ends_with_0(tmp_path):
    done = run(write(tmp_path / "good.jsonl", reward=healthy()))
    assert done.exit_code == 0, done.output
    assert "nothing wrong" in done.output
    assert "NOT APPLICABLE  Reward hacking" in done.output
    assert "\x1b" not in done.output


@pytest.mark.parametrize("flags", [(), ("--json",), ("--quiet",)])
def test_a_run_that_fails_ends_with_5(mixed, flags):
    assert run(mixed, *flags).exit_code == 5
    assert run(mixed / "good.jsonl", *flags).exit_code == 0


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("level", "healthy_ends", "fallen_ends"), [("fail", 0, 5), ("WARNING", 0, 5), ("never", 0, 0)]
)
def test_fail_on_says_which_verdict_ends_with_5(tmp_path, mixed, level, healthy_ends, fallen_ends):
    good = write(tmp_path / "good.jsonl", reward=healthy())
    for log, code in ((good, healthy_ends), (mixed, fallen_ends)):
        assert RUNNER.invoke(app, ["diagnose", str(log), "--fail-on", level]).exit_code == code


def test_a_warning_fails_where_it_is_asked_to(tmp_path):
    """Half of the groups that score alike are a warning, and by default no failure."""
    rows = 60
    silent = np.full(rows, 0.7)
    log = write(tmp_path / "w.jsonl", reward=healthy(), frac_reward_zero_std=silent)
    done = {
        level: RUNNER.invoke(app, ["diagnose", str(log), *level])
        for level in ((), ("--fail-on", "warning"))
    }
    assert "WARNING" in done[()].stdout
    assert [one.exit_code for one in done.values()] == [0, 5]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.md", "nothing here"),
        ("metrics.jsonl", '{"step": 1, "reward": 0.5}\n{"step": 2, "reward": 0.6}\n'),
        ("metrics.jsonl", '{"step": 1, "reward": NaN}\n' * 3),
    ],
)
def test_a_folder_without_a_run_is_bad_input(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    done = in_process(tmp_path)
    assert done.returncode == 2
    assert "no run was found" in done.stderr
    assert name in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.evidence
def test_other_bad_input(tmp_path, mixed):
    (tmp_path / "empty").mkdir()
    assert in_process(tmp_path / "empty").returncode == 2
    assert in_process(tmp_path / "gone").returncode == 2
    assert in_process(mixed, "--set", "nothing").returncode == 2


def test_json_is_a_list_of_diagnoses(mixed):
    done = run(mixed, "--json")
    found = {one["run"]: one for one in json.loads(done.stdout)}
    assert set(found) == {"good", "bad"}
    for name, one in found.items():
        assert set(one) == {"id", "path", "run", "verdict", "collapse_step", "cards"}
        assert one["path"] == str(mixed / f"{name}.jsonl")
        assert {card["mode"] for card in one["cards"]} == set(MODES)
        assert set(one["cards"][0]) >= {"title", "status", "headline", "number", "unknown"}
    assert found["good"]["verdict"] == "PASS"
    assert found["good"]["collapse_step"] is None
    assert found["bad"]["verdict"] == "FAIL"
    assert found["bad"]["collapse_step"] == pytest.approx(31, abs=2)


def test_many_runs_show_what_fails(mixed):
    output = run(mixed).output
    assert "FAIL  Collapse" in output
    assert "PASS  Collapse" not in output
    assert "or --json" in output
    assert "FAIL  Collapse" not in run(mixed, "--quiet").output


def test_a_name_does_not_steer_the_terminal(tmp_path):
    write(tmp_path / "a\x1b[31mred [bold]x[/].jsonl", reward=fallen())
    output = run(tmp_path).output
    assert "\x1b" not in output
    assert "[bold]x[/]" in output


def test_a_log_that_cannot_be_read_is_said_beside(mixed):
    (mixed / "broken.jsonl").write_text('{"step": 1, "reward": 0.1}\nx\n{"step": 2}\n')
    done = run(mixed, "--json")
    assert done.exit_code == 5
    assert len(json.loads(done.stdout)) == 2
    assert "Not read" in done.stderr
    assert "broken.jsonl" in done.stderr
    assert "notes.md" not in done.stderr


# Numbers as logs hold them ---------------------------------------------------------------------


def test_steps_with_gaps_and_rows_without_rewards(tmp_path):
    log = tmp_path / "run.jsonl"
    rows = [{"step": 50 * n, "reward": float(v)} for n, v in enumerate(fallen(), 1)]
    rows += [{"step": 50 * n + 25, "entropy": 0.5} for n in range(1, 60)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = json.loads(run(log, "--json").stdout)[0]
    assert found["collapse_step"] == pytest.approx(1550, abs=100)


def test_columns_of_nothing_are_not_applicable(tmp_path):
    log = write(tmp_path / "run.jsonl", reward=healthy(), entropy=np.full(60, np.nan))
    done = run(log, "--json")
    assert done.exit_code == 0
    cards = {card["mode"]: card for card in json.loads(done.stdout)[0]["cards"]}
    assert cards["policy_concentration"]["status"] == "NOT APPLICABLE"


def test_negative_rewards(tmp_path):
    down = write(tmp_path / "down.jsonl", reward=4 * fallen() - 5)
    up = write(tmp_path / "up.jsonl", reward=4 * healthy() - 5)
    assert run(down).exit_code == 5
    assert run(up).exit_code == 0


# What single trainers log -----------------------------------------------------------------------


def test_effective_sample_size_of_a_verl_console(tmp_path):
    lines = (
        f"step:{step} - actor/entropy:0.3 - critic/score/mean:{reward}"
        f" - training/global_step:{step} - rollout_corr/rollout_is_eff_sample_size:{ess}"
        " - response_length/mean:90.5\n"
        for step, (reward, ess) in enumerate(
            zip(healthy(), np.linspace(0.9, 0.05, 60), strict=True), 1
        )
    )
    (tmp_path / "train.log").write_text("".join(lines))
    done = run(tmp_path / "train.log", "--json")
    assert done.exit_code == 0, done.output
    cards = {card["mode"]: card for card in json.loads(done.stdout)[0]["cards"]}
    card = cards["dynamical_instability"]
    assert card["status"] == "WARNING"
    assert "of the samples effective" in card["headline"]
    assert "actor_rollout_ref.actor.optim.lr" in card["change"]


def test_distinct_answers_of_an_own_loop(tmp_path):
    answers = np.where(np.arange(60) < 20, 6.0, 1.05) + 0.02 * wiggle(60)
    log = write(tmp_path / "run.jsonl", reward=0.4 + wiggle(60), distinct_answers=answers)
    done = run(log, "--json")
    assert done.exit_code == 5, done.output
    cards = {card["mode"]: card for card in json.loads(done.stdout)[0]["cards"]}
    assert cards["policy_concentration"]["status"] == "FAIL"
    assert cards["policy_concentration"]["headline"].startswith("Distinct answers per group")


# What it needs ---------------------------------------------------------------------------------


@pytest.mark.evidence
def test_it_needs_no_sampler_and_no_plotting(mixed):
    code = (
        "import sys\nfrom advisor.cli import main\n"
        f"try:\n    main(['diagnose', {str(mixed)!r}])\nexcept SystemExit as end:\n"
        "    assert end.code == 5, end.code\n"
        f"loaded = set({HEAVY!r}) & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "FAIL" in done.stdout


@pytest.mark.evidence
def test_one_run_takes_no_time(tmp_path):
    columns = {name: healthy(1000) for name in ("reward", "entropy", "grad_norm", "kl")}
    log = write(tmp_path / "run.jsonl", **columns)
    code = f"from advisor.cli import main; main(['diagnose', {str(log)!r}, '--json'])"
    assert times_a_plain_application(code) < 10
