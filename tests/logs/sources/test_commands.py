"""Commands that take logs take trackers as well, or say in one sentence what to do instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_plan import made_plan
from simulated_runs import rising

from advisor.advice import PLAN, PilotPlan
from advisor.cli import pilots
from advisor.runs import on_disk
from advisor.runs.logfiles.logged import LogCandidate

PLACE = "mlflow:http://here:5000#grpo/sweep"
"""A path would lose its second slash."""

RATES = (1e-4, 3e-4)
ROWS = 40


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Logs that a made-up client hands out, of PLACE and of nothing else."""
    folder = tmp_path / "kept by the server"

    def candidates(place: str) -> list[LogCandidate]:
        assert place == PLACE
        logs = sorted(folder.glob("*/log.jsonl"))
        return [LogCandidate(on_disk(log), folder, False, folder) for log in logs]

    monkeypatch.setattr("advisor.runs.logs.read.candidates", candidates)
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


# pilots ------------------------------------------------------------------------------------------


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


# compare -----------------------------------------------------------------------------------------


def test_compare_asks_for_one_run_of_a_tracker(store, tmp_path, run):
    code, _, err = run("compare", PLACE, tmp_path)
    assert code == 2
    assert f"{PLACE}: there are 2 runs (pilot-1/log, pilot-2/log)" in err
