"""Consoles whose rows stand behind a counter, and one sentence for those that are not read."""

from __future__ import annotations

import json
import pprint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import advisor
from advisor.runs import PilotRun

REWARD = np.round(0.2 + 0.6 * (1 - np.exp(-np.arange(40) / 20)), 4).tolist()
RAY = "\x1b[36m(MegatronTrainRayActor pid=21)\x1b[0m [2026-01-31 10:00:11] data.py:222 - "


def read(folder: Path, text: str, name: str = "train.log") -> PilotRun:
    (folder / name).write_text(text, encoding="utf-8")
    (run,) = advisor.inspect(folder).runs
    return run


def slime(interval: int) -> str:
    lines = []
    for n, level in enumerate(REWARD):
        cells = {"rollout/raw_reward": level, "rollout/rewards": 1e-9, "rollout/truncated": 0.1}
        lines.append(f"{RAY}rollout {n}: {cells}")
        lines.append(f"(RolloutManager pid=1) x.py:1 - perf {n}: {{'perf/step_time': 61.5}}")
        for part in range(interval):
            cells = {"train/grad_norm": 0.1 * (part + 1), "train/lr-pg_0": 1e-6}
            lines.append(f"{RAY}step {n * interval + part}: {cells}")
        if n % 10 == 0:
            lines.append(f"{RAY}eval {n}: {{'eval/aime': {level / 2}}}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("interval", [1, 2, 4])
def test_slime(tmp_path: Path, interval: int) -> None:
    run = read(tmp_path, slime(interval))
    assert run.framework == "slime"
    assert run.reward.tolist() == REWARD
    assert run.hyperparameters.refresh_interval == interval
    assert run.hyperparameters.learning_rate == 1e-6
    assert run.series["gradient_norm"] == pytest.approx(np.full(40, 0.05 * (interval + 1)))
    assert run.series["truncated_share"].tolist() == [0.1] * 40
    assert run.eval_step.size == 4


def skyrl(n: int, level: float) -> dict[str, Any]:
    cells = {"reward/avg_raw_reward": level, "policy/policy_lr": 1e-6, "policy/policy_entropy": 0.4}
    cells |= {"loss/avg_final_rewards": 0.1, "generate/avg_num_tokens": 400.0, "timing/step": 9.0}
    return {**({"eval/all/avg_score": level / 2} if n % 10 == 0 else {}), **cells}


@pytest.mark.parametrize("prefix", ["", "\x1b[36m(skyrl_entrypoint pid=9)\x1b[0m "])
def test_skyrl_prints_dicts_over_several_lines(tmp_path: Path, prefix: str) -> None:
    lines = ["2026 | INFO | tracking:log:118 - Step 0: ", "{'eval/all/avg_score': '0.0100'}"]
    for n, level in enumerate(REWARD, start=1):
        rounded = {key: f"{value:.4f}" for key, value in skyrl(n, level).items()}
        lines += ["INFO - Started: 'step'", f"2026 | INFO | tracking:log:118 - Step {n}: "]
        lines += pprint.pformat({**rounded, "trainer/global_step": n}).split("\n")
    text = "".join(f"{prefix}{line}\n" for line in lines)
    run = read(tmp_path, text)
    assert (run.framework, run.step_unit) == ("SkyRL", "refresh")
    assert run.reward.tolist() == REWARD
    assert run.eval_step.tolist() == [10.0, 20.0, 30.0, 40.0]
    assert "learning_rate" not in run.series, "0.0000 is a rate that was rounded, not 0"
    cut = read(tmp_path, text[: text.rfind("'reward/avg_raw_reward'")])
    assert cut.reward.tolist() == REWARD[:-1]


def test_openrlhf(tmp_path: Path) -> None:
    rows = "".join(
        f"(PPOTrainer pid=7) INFO ✨ Global step {n}: {{'policy_loss': 0.1, 'kl': 0.002, "
        f"'actor_lr': 3e-07, 'reward': np.float64({level}), 'return': 0.0, "
        f"'response_length': 400.0, 'group_reward_std': 0.3}}\n"
        for n, level in enumerate(REWARD, start=1)
    )
    run = read(tmp_path, rows)
    assert run.framework == "OpenRLHF"
    assert run.reward.tolist() == REWARD
    assert run.step_unit == "refresh"
    assert run.series["completion_length"].tolist() == [400.0] * 40
    launch = (
        "+ python3 -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen3-1.7B "
        "--n_samples_per_prompt 8 --rollout_batch_size 16 --train_batch_size 64 --max_epochs 1\n"
    )
    run = read(tmp_path, launch + rows)
    assert run.hyperparameters.group_size == 8
    assert run.step[-1] == 40 * 2


def test_torchforge(tmp_path: Path) -> None:
    text = "".join(
        f"WandbBackend: Logged 70 metrics at step {n}\n"
        f"=== [global_reduce] - METRICS STEP {n} ===\n"
        "  buffer/sample/avg_sampled_policy_age: 0.5\n"
        "  grpo_loss/kl_divergence_mean: 0.01\n  rl_trainer/learning_rate: 1e-05\n"
        f"  reward/evaluate_response/avg_MathReward_reward: {level / 2}\n"
        f"  reward/evaluate_response/avg_total_reward: {level}\n"
        "  reward/evaluate_response/std_total_reward: 0.4\n==============================\n"
        for n, level in enumerate(REWARD, start=1)
    )
    run = read(tmp_path, text)
    assert (run.framework, run.reward.tolist()) == ("torchforge", REWARD)
    assert run.hyperparameters.learning_rate == 1e-5
    assert run.series["kl"].tolist() == [0.01] * 40
    assert run.hyperparameters.lag == 0.5
    assert list(run.parts) == ["mathreward"]


def test_a_run_that_starts_again_in_its_log(tmp_path: Path) -> None:
    lines = slime(1).splitlines(keepends=True)
    again = [line for line in lines if any(f" {n}: " in line for n in range(20, 40))]
    run = read(tmp_path, "".join([*lines[: 3 * 25], *again]))
    assert run.reward.tolist() == REWARD
    assert any("logged twice" in line for line in run.warnings)


@pytest.mark.parametrize("cut", [1, 20])
def test_an_open_line_waits(tmp_path: Path, cut: int) -> None:
    run = read(tmp_path, slime(1)[:-cut].rsplit("eval", 1)[0].rstrip("\n")[:-cut])
    assert set(run.reward.tolist()) <= set(REWARD)


def test_what_logs_no_reward_is_refused_with_its_keys(tmp_path: Path) -> None:
    lines = "".join(
        f"model.py:660 - step {n}: {{'train/loss': 0.1, 'train/kl_loss': 0.6}}\n" for n in range(9)
    )
    (tmp_path / "train.log").write_text(lines)
    (item,) = advisor.inspect(tmp_path).unread
    assert "log no reward (keys seen: step, train/loss, train/kl_loss)" in item.reason
    assert "W&B or TensorBoard" in item.reason


def test_settings_of_nemo_rl(tmp_path: Path) -> None:
    rows = [
        {
            "_step": n,
            "train/reward": level,
            "train/gen_kl_error": 0.001,
            "train/lr": 1e-6,
            "train/mean_gen_tokens_per_sample": 90.0,
            "timing/train/total_step_time": 61.0,
            **({"validation/accuracy": level} if n % 5 == 0 else {}),
        }
        for n, level in enumerate(REWARD, start=1)
    ]
    (tmp_path / "config.yaml").write_text(
        "grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16, max_num_steps: 62}\n"
        "loss_fn: {reference_policy_kl_penalty: 0.01, ratio_clip_min: 0.2, ratio_clip_max: 0.28}\n"
        "policy: {model_name: Qwen/Qwen3-2B, train_global_batch_size: 256}\n"
    )
    run = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "history.jsonl")
    own = run.hyperparameters
    assert run.framework == "NeMo-RL"
    assert (own.kl_coefficient, own.clip_low, own.clip_high) == (0.01, 0.2, 0.28)
    assert (own.minibatches_per_refresh, own.epochs_per_refresh) == (2, 1)
    assert (own.group_size, own.prompts_per_step, own.planned_steps) == (16, 16, 124)
    assert run.series["mismatch_kl"].tolist() == [0.001] * 40
    assert run.series["completion_length"][0] == 90.0
    assert run.seconds_per_step == pytest.approx(61.0 / 2)
    assert run.eval_step.size == 8


@pytest.mark.parametrize("level", [0, 2])
def test_the_asynchronous_level_of_prime_rl_is_its_lag(tmp_path: Path, level: int) -> None:
    text = "".join(
        f"10:00:0{n % 10} SUCCESS Step {n} | Time: 3.21s | Reward: {value:.4f} | "
        f"Seq. Length: 1234.5 tokens/sample | Async Level: {level} | Max. Off-Policy Level: 1\n"
        for n, value in enumerate(REWARD)
    )
    run = read(tmp_path, text)
    assert run.framework == "prime-rl"
    assert run.hyperparameters.lag == level
    assert run.seconds_per_step == pytest.approx(3.21)
    assert run.series["completion_length"][0] == 1234.5
