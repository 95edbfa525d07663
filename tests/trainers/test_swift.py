"""ms-swift and Megatron count their steps in fractions: ``12/1000``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor import read_runs
from advisor.errors import InputError
from advisor.runs import PilotRun


def cells(step: int, total: int, reward: float, **more: Any) -> dict[str, Any]:
    return {
        "loss": 0.0,
        "grad_norm": 0.5,
        "learning_rate": 1e-06,
        "completions/mean_length": 4096.0,
        "reward": reward,
        "reward_std": 0.25,
        "frac_reward_zero_std": 0.5,
        "rewards/MathAccuracy/mean": reward,
        "entropy/mean": 0.8,
        "epoch": 0.01,
        "global_step/max_steps": f"{step}/{total}",
        "percentage": f"{100 * step / total:.2f}%",
        "elapsed_time": "5m 20s",
        "memory(GiB)": 55.33,
        **more,
    }


STEPS = {1: 0.1, 5: 0.5, 10: 0.75, 20: 0.5}
ROWS = [cells(step, 1000, reward) for step, reward in STEPS.items()]
CLOSING = {"train_runtime": 640.1, "train_loss": 0.1, "global_step/max_steps": "20/1000"}
MESSAGE = {"last_model_checkpoint": "x", "global_step": 20, "log_history": [{"reward": 0.1}] * 20}


def read(folder: Path, *rows: Any, name: str = "logging.jsonl") -> PilotRun:
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (run,) = read_runs(path)
    return run


def is_right(run: PilotRun) -> bool:
    assert run.framework == "TRL"
    assert run.hyperparameters.planned_steps == 1000
    return dict(zip(run.step, run.reward, strict=True)) == STEPS


def test_the_fraction_is_the_step(tmp_path: Path) -> None:
    assert is_right(read(tmp_path, *ROWS, CLOSING, MESSAGE))


def test_the_history_in_the_closing_message_may_be_endless(tmp_path: Path) -> None:
    message = {**MESSAGE, "log_history": [{"reward": 0.1, "note": "x" * 100}] * 12_000}
    run = read(tmp_path, *ROWS, message)
    assert is_right(run)
    cut = "the last line, row 5, is longer than a million characters: part of no run"
    assert cut in run.warnings
    with pytest.raises(InputError, match="longer than a million characters"):
        read(tmp_path, *ROWS, message, *ROWS)


def test_rows_between_batches_of_rollouts_have_no_reward(tmp_path: Path) -> None:
    reused = cells(2, 1000, 0.5)
    for key in ("reward", "reward_std", "frac_reward_zero_std"):
        del reused[key]
    assert is_right(read(tmp_path, ROWS[0], reused, *ROWS[1:]))


def test_rows_of_a_console_are_those_of_trl(tmp_path: Path) -> None:
    bar = "\rTrain:  11%|█▎        | 1/1000 [01:35<12:44, 95.6s/it]"
    arguments = ["[INFO:swift] args: RLHFArguments(", "num_generations=8,", ")"]
    lines = [*arguments, *(f"{bar}\r{row}" for row in ROWS), str(CLOSING)]
    run = read(tmp_path, *lines, name="run.log")
    assert is_right(run)
    assert run.hyperparameters.group_size == 8
    assert run.hyperparameters.kl_coefficient == 0.0  # as TRL, its rows have no kl
