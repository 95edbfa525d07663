"""Logs of others, read from beside the repository; none is copied."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor.errors import InputError
from advisor.runs import read_runs


@pytest.mark.parametrize("name", ["sort_s", "sort_m", "mod_s"])
def test_tiny_tables(tiny_grpo, name):
    path = tiny_grpo / f"{name}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    runs = read_runs(path)
    assert [run.id for run in runs] == [f"{name}:{n}" for n in range(1, len(lines) + 1)]
    for run, line in zip(runs, lines, strict=True):
        settings = run.hyperparameters
        assert settings.learning_rate == line["lr"]
        assert (settings.group_size, settings.refresh_interval) == (line["G"], line["K"])
        assert settings.importance_ratio is line["use_is"]
        assert run.model == f"tiny-{line['size']}"
        np.testing.assert_array_equal(run.reward, line["reward"])
        assert run.eval_reward.tolist() == [line["base_acc"], line["final_eval"]]
        assert run.warnings == ()


@pytest.mark.parametrize(
    ("name", "peak", "schedule", "warmup"),
    [
        ("IMJONEZZ__UnslothGRPO", 5e-6, "cosine", 25),
        ("abdo-ashraf__Gemma-3-RL-Finetuning", 1e-5, "cosine", 25),
        ("srinath-manda__IITD_Feb26_AAIPL", 5e-5, "linear", 0),
    ],
)
def test_trainer_states(real_logs, name, peak, schedule, warmup):
    (run,) = read_runs(real_logs / name)  # of two checkpoints the longer one
    settings = run.hyperparameters
    assert settings.learning_rate == pytest.approx(peak, rel=0.01)
    assert (settings.schedule, settings.warmup_steps) == (schedule, warmup)
    assert settings.planned_steps == run.step[-1]
    assert "reward_std_within_group" in run.series


@pytest.mark.evidence
def test_every_file_is_read_or_refused(real_logs):
    runs, errors = [], []
    for path in sorted(p for p in real_logs.rglob("*") if p.is_file()):
        try:
            runs += read_runs(path)
        except InputError as error:
            errors.append((path, error))
    assert len(runs) > 40
    assert all(np.all(np.diff(run.step) > 0) for run in runs)
    assert all(error.path == str(path) and error.advice for path, error in errors)
