"""`advisor diagnose`: exit codes, JSON, Markdown, figures, and what it does not load."""

from __future__ import annotations

import json

import numpy as np
import pytest
from processes import python
from typer.testing import CliRunner

from advisor.cli import app
from advisor.diagnosis import MODES

RUNNER = CliRunner()


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
    return python("-m", "advisor", "diagnose", *arguments)


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.md", "nothing here"),
        ("metrics.jsonl", '{"step": 1, "reward": 0.5}\n{"step": 2, "reward": 0.6}\n'),
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


def test_a_name_does_not_steer_the_terminal(tmp_path):
    write(tmp_path / "a\x1b[31mred [bold]x[/].jsonl", reward=fallen())
    output = run(tmp_path).output
    assert "\x1b" not in output
    assert "[bold]x[/]" in output


# What it needs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "code"),
    [((), 5), (("--json",), 5), (("--quiet",), 5), (("--fail-on", "never"), 0)],
)
def test_a_run_whose_rewards_are_lost_fails_alone_and_beside_others(tmp_path, flags, code):
    write(tmp_path / "good.jsonl", reward=healthy())
    lost = write(tmp_path / "lost.jsonl", reward=np.where(np.arange(60) < 4, 0.5, np.nan))
    for given in (tmp_path, lost):
        done = run(given, *flags)
        assert done.exit_code == code, done.output
        assert "row 5: 56 of 60 rewards are NaN" in " ".join(done.stdout.split())
    if "--json" in flags:
        (found,) = json.loads(done.stdout)
        assert (found["path"], found["verdict"], len(found["cards"])) == (
            str(lost),
            "FAIL",
            len(MODES),
        )
    lost.unlink()
    assert run(tmp_path, *flags).exit_code == 0
