"""Commands that take logs take trackers as well, or say in one sentence what to do instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_plan import made_plan
from simulated_runs import Plan, made_up_posterior, rising

import advisor
from advisor.advice import PLAN, PilotPlan
from advisor.cli import main, pilots
from advisor.errors import InputError
from advisor.monitoring import following
from advisor.runs import on_disk
from advisor.runs.logfiles.logged import LogCandidate

PLACE = "mlflow:http://here:5000#grpo/sweep"
"""A path would lose its second slash."""

SETTINGS = {
    "group_size": 8,
    "prompts_per_step": 4,
    "minibatches_per_refresh": 1,
    "epochs_per_refresh": 1,
}
RATES = (1e-4, 3e-4)
ROWS = 40


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Logs that a made-up client hands out, of PLACE and of nothing else."""
    folder = tmp_path / "kept by the server"

    def candidates(place: str) -> list[LogCandidate]:
        assert f"mlflow:{place}" == PLACE
        logs = sorted(folder.glob("*/log.jsonl"))
        return [LogCandidate(on_disk(log), folder, False, folder) for log in logs]

    monkeypatch.setattr("advisor.runs.logs.sources.SOURCES", {"mlflow": candidates})
    for number, rate in enumerate(RATES, start=1):
        log(folder, number, rate, ROWS)
    return folder


def log(folder: Path, number: int, rate: float, rows: int) -> None:
    lines = [
        json.dumps({"step": at, "reward": float(reward), "learning_rate": rate})
        for at, reward in enumerate(rising(ROWS, end=0.8 - 0.01 * number)[:rows], start=1)
    ]
    at = folder / f"pilot-{number}" / "log.jsonl"
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text("\n".join(lines) + "\n")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan of two pilots, whose folders are empty."""
    folder = tmp_path / "plan"
    folder.mkdir()
    told = made_plan(RATES, ROWS, trainer=None)
    (folder / PLAN).write_text(told.model_dump_json())
    return folder


def desk(plan: Path) -> pilots.Desk:
    beside: dict[str, Any] = {"sidecar": None, "overrides": {}, "columns": {}}
    return pilots.Desk(plan, PilotPlan.load(plan), [PLACE], beside, None, 0, quiet=True)


def said_by(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([*words])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    return int(stop.value.code or 0), told.out, told.err


# pilots ------------------------------------------------------------------------------------------


def test_pilots_takes_its_logs_from_a_tracker(store, plan, capsys):
    for number, rate in enumerate(RATES, start=1):
        log(store, number, rate, 2)  # too short for a fit, which would take its time
    code, out, err = said_by(capsys, "pilots", str(plan), "--logs", PLACE)
    assert code == 0, err
    for name in ("pilot-1", "pilot-2"):
        assert f"{name}/log.jsonl cannot be read yet: run '{name}/log' has only 2 rows" in out


def test_while_following_a_server_is_asked_at_every_look_and_once_a_minute(
    store, plan, monkeypatch, capsys
):
    looks: list[list[int]] = []
    waits: list[float] = []

    def word(self: pilots.Desk, unread: list[str]) -> Any:
        looks.append([len(run.step) for run in self.runs])
        final = len(looks) == 2
        return type("Word", (), {"is_final": final, "new": None})()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:  # the first look afterwards finds the same rows
            log(store, 1, RATES[0], ROWS)

    log(store, 1, RATES[0], ROWS // 4)
    monkeypatch.setattr(pilots.Desk, "_word", word)
    monkeypatch.setattr(pilots.time, "sleep", sleep)
    desk(plan).followed(lambda found: None, every=0.1)
    assert looks == [[ROWS // 4, ROWS], [ROWS, ROWS]]
    assert waits == [60.0, 60.0]


def test_a_run_is_matched_to_its_pilot_by_the_name_that_the_tracker_has(store, plan):
    """Not by its settings: the log tells another rate than the plan, and that is said."""
    from advisor.advice.pilot_bench import match_logs

    log(store, 1, 9e-4, ROWS)
    (run, _) = advisor.read_runs(PLACE)
    named = run.with_updates(id="pilot-2", path="wandb:team/grpo/aaaa1111")
    found = match_logs(PilotPlan.load(plan), [named])
    assert list(found.planned) == ["pilot-2"]
    assert any("learning rate 0.0009, not 0.0003" in line for line in found.said)


# compare -----------------------------------------------------------------------------------------


def test_compare_takes_a_run_of_a_tracker_beside_a_file(store, tmp_path, capsys):
    other = tmp_path / "other"
    (store / "pilot-2").rename(other)
    code, out, err = said_by(capsys, "compare", PLACE, str(other))
    assert code == 0, err
    assert f"A: {PLACE}\nB: {other}\n" in out
    assert "0.0003" in out


def test_compare_asks_for_one_run_of_a_tracker(store, tmp_path, capsys):
    code, _, err = said_by(capsys, "compare", PLACE, str(tmp_path))
    assert code == 2
    assert f"{PLACE}: there are 2 runs (pilot-1/log, pilot-2/log)" in err


def test_compare_still_asks_for_a_path_that_is_there(capsys):
    code, _, err = said_by(capsys, "compare", "nowhere", PLACE)
    assert code == 2
    assert "nowhere: there is no such file or folder" in err
    with pytest.raises(InputError, match="no such file or folder"):
        advisor.compare(Path("wandb:team/grpo"), Path("wandb:team/grpo"))


# watch -------------------------------------------------------------------------------------------


@pytest.fixture
def posterior(tmp_path: Path) -> str:
    made = made_up_posterior([Plan(rate) for rate in RATES], draws=60)
    path = tmp_path / "posterior.nc"
    path.write_bytes(made.to_bytes())
    return str(path)


@pytest.mark.evidence
def test_watch_looks_once_at_a_run_of_a_tracker(store, posterior, capsys):
    (store / "pilot-2" / "log.jsonl").unlink()
    stated = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    more = ["--set=model=tiny-s", "--set=task=sort", "--set=parameters=1e5", "--steps", "200"]
    words = ["watch", PLACE, "--posterior", posterior, "--once", "--json", *stated, *more]
    code, out, err = said_by(capsys, *words)
    assert code in (0, 5), err
    assert json.loads(out)["update"]["step"] == ROWS


@pytest.mark.evidence
def test_watch_does_not_follow_a_tracker_and_says_what_to_do(posterior, capsys, monkeypatch):
    monkeypatch.setattr(following, "read_runs", lambda *given, **more: pytest.fail("it was asked"))
    words = ["watch", "wandb:team/grpo/aaaa1111", "--posterior", posterior]
    code, out, err = said_by(capsys, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "wandb:team/grpo/aaaa1111: a tracker does not tell when a run has grown" in err
    assert "--once" in err
    assert "wandb/run-*/run-*.wandb" in err
