"""Logs of our own making, one of each trainer and tracker: what was simulated is found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_logs import SMALL, write_all

from advisor import inspect, read_runs
from advisor.runs import PilotRun

TRUTH_FILE = SMALL.with_name("small_truth.json")
TRUTH: list[dict[str, Any]] = json.loads(TRUTH_FILE.read_text(encoding="utf-8"))
each = pytest.mark.parametrize("truth", TRUTH, ids=[truth["log"] for truth in TRUTH])


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def only_run(truth: dict[str, Any]) -> PilotRun:
    (run,) = read_runs(SMALL / truth["log"])
    return run


def test_the_script_writes_the_logs_that_are_here(tmp_path: Path) -> None:
    write_all(tmp_path / "small")
    assert (tmp_path / TRUTH_FILE.name).read_bytes() == TRUTH_FILE.read_bytes()
    written, here = files(tmp_path / "small"), files(SMALL)
    assert written.keys() == here.keys()
    assert [name for name in here if written[name] != here[name]] == []


@each
def test_steps_and_series(truth: dict[str, Any]) -> None:
    run = only_run(truth)
    assert (run.format, run.framework) == (truth["format"], truth["framework"])
    assert run.step_unit == truth["unit"]
    assert run.step.tolist() == [step * truth["interval"] for step in truth["step"]]
    close = 10.0 ** -truth["digits"]
    for name in ("reward", "kl", "entropy"):
        if truth[name] is None:
            assert name not in run.series
        else:
            np.testing.assert_allclose(run.series[name], truth[name], rtol=close, atol=close)
    assert run.eval_step.tolist() == truth["eval_step"]


@each
def test_settings_and_nothing_to_complain_of(truth: dict[str, Any]) -> None:
    run = only_run(truth)
    settings = run.hyperparameters.model_dump()
    for name, value in truth["settings"].items():
        assert settings[name] == (value if isinstance(value, str) else pytest.approx(value)), name
        assert run.derivations[name]
    if truth["interval"] > 1:
        assert run.hyperparameters.refresh_interval == truth["interval"]
    assert run.keys_ignored == ()
    begun_twice = (
        "steps 1 to 2 were logged twice (a resumed run): the earlier rows are part of no run"
    )
    assert run.warnings == ((begun_twice,) if truth["log"] == "own_csv" else ())


def test_the_whole_tree_with_all_that_is_no_log() -> None:
    found = inspect(SMALL)
    assert [run.copy_of for run in found.runs] == [None] * len(TRUTH)
    reasons = {path.name: reason for path, reason, _ in found.unread}
    assert reasons == {
        "args.json": "not a log that any reader knows",
        "config.json": "settings, not a log",
    }


def test_rollouts_of_a_loop_of_ones_own_on_optimizer_steps() -> None:
    kinds = {"filter": "type=rollout", "eval_filter": "type=eval"}
    columns = {"step": "grpo_step", "step_unit": "refresh", **kinds}
    given = {"minibatches_per_refresh": 2, "epochs_per_refresh": 1, "group_size": 8}
    (run,) = read_runs(SMALL / "cs336", columns=columns, overrides=given)
    rows = [json.loads(line) for line in (SMALL / "cs336/metrics.jsonl").read_text().splitlines()]
    trained: dict[int, list[int]] = {}
    for row in rows:
        if row["type"] == "train":
            trained.setdefault(row["grpo_step"], []).append(row["optimizer_step"])
    # Each rollout stands at the last optimizer step that trained on it, and averages them all.
    window = run.step[:, None] - np.arange(run.logging_steps)[::-1]
    assert window.tolist() == list(trained.values())
    assert run.eval_step.tolist() == [0, 20, 40]
