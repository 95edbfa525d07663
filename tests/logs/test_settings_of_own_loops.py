"""Settings that loops of one's own state: in columns, in summaries, under names with two senses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor import read_runs
from advisor.runs.logs.recovered import kl_coefficient_from_loss, rounded

REWARD = np.round(0.2 + 0.6 * (1 - np.exp(-np.arange(1, 41) / 20)), 6)


def write_table(path: Path, **more: Any) -> Path:
    rows = [{"step": n, "reward": r, **more} for n, r in enumerate(REWARD, start=1)]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(path: Path) -> Path:
    rows = ({"step": n, "reward": r} for n, r in enumerate(REWARD, start=1))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_columns_with_one_value_are_settings(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "log.csv",
        num_generations=6,
        prompts_per_step=4,
        steps_per_generation=8,
        gradient_accumulation_steps=4,
        num_iterations=1,
        model_name="Qwen/Qwen2.5-3B-Instruct",
    )
    (run,) = read_runs(path)
    settings = run.hyperparameters
    assert (settings.group_size, settings.prompts_per_step) == (6, 4)
    assert (settings.minibatches_per_refresh, settings.epochs_per_refresh) == (2, 1)
    assert (run.model, run.parameters) == ("Qwen/Qwen2.5-3B-Instruct", 3e9)
    assert "[a column of the log]" in run.derivations["group_size"]


def test_a_column_that_varies_is_no_setting(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = [f"{n},{r},{4 + n % 2}" for n, r in enumerate(REWARD, start=1)]
    path.write_text("\n".join(["step,reward,group_size", *lines]), encoding="utf-8")
    (run,) = read_runs(path)
    assert run.hyperparameters.group_size is None


def test_a_summary_holds_the_settings_in_a_section(tmp_path: Path) -> None:
    summary = {
        "config": {
            "model_path": "Qwen/Qwen2.5-Math-1.5B",
            "learning_rate": 5e-6,
            "group_size": 8,
            "rollout_batch_size": 256,
            "train_batch_size": 64,
            "epochs_per_rollout_batch": 1,
        },
        "reward": 0.5,
        "loss": 0.1,
        "learning_rate": 0.0,
    }
    (tmp_path / "run_1_summary.json").write_text(json.dumps(summary), encoding="utf-8")
    (run,) = read_runs(write_jsonl(tmp_path / "metrics.jsonl"))
    settings = run.hyperparameters
    assert (settings.learning_rate, settings.group_size) == (5e-6, 8)
    assert settings.refresh_interval == 4
    assert run.model == "Qwen/Qwen2.5-Math-1.5B"


def test_a_summary_of_results_alone_tells_no_settings(tmp_path: Path) -> None:
    results = {"reward": 0.5, "loss": 0.1, "learning_rate": 0.0, "seed": 3, "group_size": 99}
    (tmp_path / "final_summary.json").write_text(json.dumps(results), encoding="utf-8")
    (run,) = read_runs(write_jsonl(tmp_path / "metrics.jsonl"))
    assert run.hyperparameters.group_size is None


@pytest.mark.parametrize("name", ["grpo_lora_config.json", "grpo_lora.config.json"])
def test_a_config_by_the_words_of_its_name(name: str, tmp_path: Path) -> None:
    config = {
        "model": {"name": "google/gemma-3-4b-it"},
        "training": {"iterations": 500, "learning_rate": 1e-6},
        "lora": {"rank": 16},
        "rl": {"num_generations": 2, "max_completion_length": 512},
        "grpo": {"clip_epsilon": 0.2, "kl_coeff": 0.1},
    }
    (tmp_path / name).write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "generation_config.json").write_text('{"group_size": 64}', encoding="utf-8")
    (run,) = read_runs(write_jsonl(tmp_path / "metrics.jsonl"))
    settings = run.hyperparameters
    assert (settings.learning_rate, settings.group_size) == (1e-6, 2)
    assert (settings.adapter, settings.adapter_rank) == ("lora", 16)
    assert settings.kl_coefficient == 0.1
    assert run.model == "google/gemma-3-4b-it"


def test_arguments_of_a_loop_from_the_paper(tmp_path: Path) -> None:
    """``mu`` is the paper's number of updates; ``num_iterations`` its outer loop."""
    args = {"mu": 2, "num_groups": 16, "group_size": 8, "epsilon": 0.2, "num_iterations": 60}
    (tmp_path / "args.json").write_text(json.dumps({**args, "lr": 1e-5}), encoding="utf-8")
    (run,) = read_runs(write_jsonl(tmp_path / "metrics.jsonl"))
    settings = run.hyperparameters
    assert settings.epochs_per_refresh == 2
    assert (settings.prompts_per_step, settings.group_size) == (16, 8)
    assert (settings.clip_low, settings.clip_high) == (0.2, 0.2)


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({"num_iterations": 60, "group_size": 8}, None),
        ({"num_iterations": 60, "num_generations": 8}, None),
        ({"num_iterations": 2, "group_size": 8}, 2),
        (
            {"num_iterations": 12, "num_generations": 8, "per_device_train_batch_size": 8,
             "gradient_accumulation_steps": 2},
            12,
        ),
    ],
)  # fmt: skip
def test_the_length_of_a_run_is_no_number_of_passes(
    beside: dict[str, Any], expected: int | None, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(beside), encoding="utf-8")
    (run,) = read_runs(write_jsonl(tmp_path / "metrics.jsonl"))
    assert run.hyperparameters.epochs_per_refresh == expected


def test_a_penalty_that_is_logged_with_its_weight_tells_none() -> None:
    kl = np.random.default_rng(3).lognormal(-5, 1, 60)
    assert kl_coefficient_from_loss(kl, kl) is None
    found = kl_coefficient_from_loss(0.04 * kl, kl)
    assert found is not None
    assert found.value == pytest.approx(0.04)


def test_rates_near_a_round_number_are_that_number() -> None:
    assert rounded(4.99916e-6) == 5e-6
    assert rounded(1.0004e-5) == 1e-5
    assert rounded(9.8e-7) == 9.8e-7
    assert rounded(1.234e-5) == 1.234e-5


def test_a_step_takes_as_long_as_its_parts(tmp_path: Path) -> None:
    (run,) = read_runs(write_table(tmp_path / "log.csv", t_rollout=12.5, t_train=4.0))
    np.testing.assert_array_equal(run.series["step_time_seconds"], 16.5)
    assert "step_time_seconds" not in run.missing
