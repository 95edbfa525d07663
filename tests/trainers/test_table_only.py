"""Trainers of which tables are read: the right reward, and steps that count refreshes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from advisor import read_runs

REWARD = np.round(0.2 + 0.6 * (1 - np.exp(-np.arange(1, 31) / 20)), 4).tolist()


def row(name: str, step: int, reward: float) -> dict[str, float]:
    """Row of a trainer, with what is no reward beside it."""
    return {
        "SkyRL": {
            **{"trainer/global_step": step, "reward/avg_raw_reward": reward},
            **{"loss/avg_final_rewards": reward - 0.1, "policy/policy_lr": 1e-6},
        },
        "slime": {
            **{"rollout/step": step, "rollout/raw_reward": reward, "rollout/rewards": 1e-9},
            **{"rollout/response_lengths": 900.5, "train/lr-pg_0": 1e-6},
        },
        "AReaL": {
            **{"step": step, "ppo_actor/task_reward/avg": reward},
            **{"ppo_actor/final_reward/avg": reward - 0.1, "ppo_actor/update/lr": 1e-6},
        },
        "open-instruct": {
            **{"training_step": step, "objective/scores": reward, "val/format_scores": 1.0},
            **{"val/stop_rate": 0.99, "loss/policy_avg": 0.01, "lr": 1e-6},
        },
    }[name]


@pytest.mark.parametrize("name", ["SkyRL", "slime", "AReaL", "open-instruct"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_tables_are_read_by_their_keys(name: str, ending: str, tmp_path: Path) -> None:
    rows = [row(name, step, reward) for step, reward in enumerate(REWARD, start=1)]
    path = tmp_path / f"log.{ending}"
    with path.open("w", encoding="utf-8", newline="") as file:
        if ending == "csv":
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(cells) + "\n" for cells in rows)
    (run,) = read_runs(path)
    assert (run.framework, run.step_unit) == (name, "refresh")
    assert run.reward.tolist() == REWARD
    assert run.step.tolist() == list(range(1, 31))
    assert run.hyperparameters.learning_rate == 1e-6
    assert run.keys_ignored == ()
