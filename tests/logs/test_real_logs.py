"""Logs of others, read from beside the repository; none is copied."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from advisor.errors import InputError
from advisor.runs import read_runs
from advisor.theory import policy_steps

REFRESH = {
    "step": "grpo_step",
    "step_unit": "refresh",
    "filter": "type=rollout",
    "eval_filter": "type=eval",
}


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


def test_off_policy_sweep(real_logs):
    folder = real_logs / "ShibukiZero__assignment5-alignment"
    logs = sorted(folder.glob("grpo_off_policy_sweep__*.metrics.jsonl"))
    assert len(logs) == 10
    for log in logs:
        beside = log.with_name(log.name.replace("metrics.jsonl", "config.json"))
        config = json.loads(beside.read_text())
        epochs = config["epochs_per_rollout_batch"]
        minibatches = config["rollout_batch_size"] // config["train_batch_size"]
        given = {
            "learning_rate": config["learning_rate"],
            "group_size": config["group_size"],
            "minibatches_per_refresh": minibatches,
            "epochs_per_refresh": epochs,
        }
        (run,) = read_runs(log, columns=REFRESH, overrides=given)
        interval = minibatches * epochs
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        rollouts = [row for row in rows if row["type"] == "rollout"]
        trained = {}
        for row in rows:
            if row["type"] == "train":
                trained.setdefault(row["grpo_step"], []).append(row["optimizer_step"])
        # Each rollout stands at the last optimizer step that trained on it, and averages them all.
        window = run.step[:, None] - np.arange(run.logging_steps)[::-1]
        assert window.tolist() == [trained[row["grpo_step"]] for row in rollouts]
        assert run.logging_steps == interval
        # Every one of those steps used the policy as the refresh before had left it.
        used = policy_steps(window, minibatches, epochs)
        assert np.all(used == (run.step - interval)[:, None])
        np.testing.assert_array_equal(run.reward, [row["reward"] for row in rollouts])
        tests = [row for row in rows if row["type"] == "eval"]
        assert run.eval_step.tolist() == [row["optimizer_step"] for row in tests]
        assert "reward_std_within_group" not in run.series


@pytest.mark.evidence
def test_json_lists_of_trl_rows(real_logs):
    folder = real_logs / "Sunshine535__nips-grpo-dynamics"
    runs = [run for run in read_runs(folder) if run.id.startswith("qwen35__")]
    assert len(runs) == 13
    for run in runs:
        assert run.step.tolist() == list(range(5, 201, 5))
        assert run.logging_steps == 5
        settings = run.hyperparameters
        assert settings.learning_rate == pytest.approx(1e-4, rel=1e-3)
        assert (settings.schedule, settings.warmup_steps) == ("linear", 10)
        assert run.missing["reward_std_within_group"] == "not applicable"  # TRL 0.29


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


def test_every_table_of_the_index(real_logs):
    with (real_logs / "INDEX.tsv").open(newline="") as stream:
        entries = [e for e in csv.DictReader(stream, delimiter="\t") if e["reader"] == "csv"]
    assert len(entries) == 28
    for entry in entries:
        (run,) = read_runs(real_logs / entry["local_file"])
        assert run.step.size == int(entry["n_steps_logged"])
        assert run.step[0] == 1


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
