"""Logs of shapes that no trainer declares: their own names, gaps, holes, evaluations alone."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor import read_runs
from advisor.backtesting import finished_runs
from advisor.errors import InputError
from advisor.runs import keys as known

REWARD = np.round(0.2 + 0.6 * (1 - np.exp(-np.arange(1, 61) / 20)), 6)
SETTINGS = {
    "learning_rate": 1e-5,
    "group_size": 8,
    "prompts_per_step": 8,
    "minibatches_per_refresh": 1,
    "epochs_per_refresh": 1,
    "parameters": 1.5e9,
}


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., Path]:
    def write(rows: Iterable[Mapping[str, Any]], name: str = "metrics.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    def write(rows: list[Mapping[str, Any]], name: str = "metrics.csv") -> Path:
        path = tmp_path / name
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["step", "rollout_reward_mean", "rollout_reward_std", "rollout_reward_max"], 1),
        (["RL/Mean_Reward", "RL/Loss"], 0),
        (["meanReward", "bestReward"], 0),
        (["total_reward", "final_reward_mean"], 1),
        (["final_reward", "loss_at_step"], 0),
        (["train_solve_rate", "kl"], 0),
        (["rollout/accuracy", "advantage_std"], 0),
    ],
)
def test_a_reward_is_told_by_its_words(keys: list[str], expected: int) -> None:
    assert known.likely_reward(keys) == keys[expected]
    assert known.has_reward_key(keys)


@pytest.mark.parametrize(
    "keys",
    [
        ["reward_std", "reward_max"],
        ["eval_avg_win_reward"],
        ["format_reward", "length_penalty_reward"],
        ["best_reward", "running_reward", "reward_threshold"],
        ["reward_model_loss"],
        ["epoch", "train_accuracy", "train_loss"],  # a classifier
        ["val_solve_rate", "kl"],
    ],
)
def test_what_only_looks_like_a_reward_is_none(keys: list[str]) -> None:
    assert known.likely_reward(keys) is None
    assert not known.has_reward_key(keys)


def test_keys_whose_slashes_an_export_replaced_are_the_trainers(table: Any) -> None:
    rows = [
        {
            "step": n,
            "actor_entropy": 0.5 - 0.001 * n,
            "actor_pg_loss": 0.01,
            "actor_ppo_kl": 0.0,
            "actor_pg_clipfrac": 0.0,
            "actor_grad_norm": 0.3,
            "actor_lr": 5e-6,
            "critic_rewards_mean": reward - 0.1,
            "critic_score_mean": reward,
            "response_length_mean": 200.0,
            "val-core_game_acc_mean@1": 0.5 if n % 10 == 0 else "",
        }
        for n, reward in enumerate(REWARD, start=1)
    ]
    (run,) = read_runs(table(rows))
    np.testing.assert_array_equal(run.reward, REWARD)
    assert run.framework == "verl"
    assert run.step_unit == "refresh"
    assert run.hyperparameters.learning_rate == 5e-6
    assert run.hyperparameters.kl_coefficient == 0
    assert run.eval_step.tolist() == [10, 20, 30, 40, 50, 60]
    assert {"entropy", "gradient_norm", "completion_length"} <= set(run.series)
    assert any("'critic_score_mean' as 'critic/score/mean'" in line for line in run.assumptions)


def test_kinds_of_rows_under_other_names(jsonl: Any) -> None:
    rows: list[dict[str, Any]] = []
    for n, reward in enumerate(REWARD, start=1):
        rows.append({"log_type": "train", "step": n, "final_reward": reward})
        if n % 20 == 0:
            rows += [{"log_type": "eval", "step": n, "final_reward": x} for x in (0.0, 1.0, 1.0)]
    (run,) = read_runs(jsonl(rows))
    np.testing.assert_array_equal(run.reward, REWARD)
    assert run.eval_step.tolist() == [20, 40, 60]
    np.testing.assert_allclose(run.eval_reward, 2 / 3)


@pytest.mark.parametrize("blank", [0.0, None])
def test_a_zero_where_nothing_was_evaluated_is_no_evaluation(jsonl: Any, blank: Any) -> None:
    rows = [
        {"step": n, "reward": r, "val_reward": 0.4 + 0.001 * n if n % 10 == 0 else blank}
        for n, r in enumerate(REWARD, start=1)
    ]
    rows[29]["val_reward"] = 0.0  # at its time, so measured
    (run,) = read_runs(jsonl(rows))
    assert run.eval_step.tolist() == [10, 20, 30, 40, 50, 60]
    assert run.eval_reward[2] == 0


def _evaluations(name: str = "eval") -> list[dict[str, Any]]:
    return [{"step": 5 * n, f"{name}_accuracy": r} for n, r in enumerate(REWARD[:40])]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_evaluations_alone_are_forecast(kind: str, table: Any, jsonl: Any) -> None:
    path = table(_evaluations()) if kind == "csv" else jsonl(_evaluations())
    (run,) = read_runs(path, overrides=SETTINGS)
    assert run.step.tolist() == [5 * n + 1 for n in range(40)]
    np.testing.assert_array_equal(run.reward, REWARD[:40])
    assert run.eval_step.size == 0
    assert any("the rewards are held-out evaluations" in line for line in run.assumptions)
    kept, left_out = finished_runs([run], least_steps=60)
    assert [run.id for run in kept] == ["metrics"]
    assert left_out == []


def test_a_hole_of_nul_bytes_is_passed_over_and_said(tmp_path: Path) -> None:
    lines = [json.dumps({"step": n, "reward": r}) for n, r in enumerate(REWARD, start=1)]
    hole = b"\0" * 200_000
    for name, raw in {
        "start.jsonl": hole + "\n".join(lines).encode(),
        "middle.jsonl": "\n".join(lines[:30]).encode()
        + b"\n"
        + hole
        + "\n".join(lines[30:]).encode(),
    }.items():
        path = tmp_path / name
        path.write_bytes(raw)
        (run,) = read_runs(path)
        np.testing.assert_array_equal(run.reward, REWARD)
        assert any("200,000 NUL bytes" in line for line in run.warnings)


def test_a_closed_folder_is_named(tmp_path: Path, jsonl: Any, monkeypatch: Any) -> None:
    jsonl([{"step": n, "reward": r} for n, r in enumerate(REWARD, start=1)])
    closed = tmp_path / "closed"
    closed.mkdir()
    whole = os.scandir

    def scandir(path: Any) -> Any:  # the superuser enters any folder
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(os, "scandir", scandir)
    (run,) = read_runs(tmp_path)
    assert "closed: the folder cannot be entered" in run.left_out[0], run.left_out
    with pytest.raises(InputError, match=r"cannot be entered \(Permission denied\)\. Check"):
        read_runs(closed)
    (tmp_path / "metrics.jsonl").unlink()
    with pytest.raises(InputError, match="cannot be entered"):
        read_runs(tmp_path)
