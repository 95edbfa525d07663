"""Consoles of training loops of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor.errors import InputError
from advisor.runs import read_runs

LOOP = LogFormat("console of a training loop")


def saved(folder: Path, text: str, name: str = "train.log") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def runs_of(folder: Path, text: str) -> list[Logged]:
    return LOOP.read(saved(folder, text))


def claimed(folder: Path, text: str, name: str = "train.log") -> bool:
    return LOOP.claims(saved(folder, text, name))


class TestTagged(ReaderConformance):
    reader = LOOP.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        lines = ["[run_a] Connecting...", "[run_a] Run: 1b01 | LR=3e-05 group=8 temp=0.8"]
        for n, reward in enumerate(rewards, start=1):
            lines.append(
                f"[run_a] {n:3d}/{len(rewards)} | loss={-1.5 * n:.4f} | reward={reward:.4f}"
            )
            if n % 10 == 0:
                lines.append(f"[run_a]   -> ckpt s{n}")
        return saved(folder, "\n".join([*lines, "", "[run_a] DONE | last10=0.264"]) + "\n")


class TestWorded(ReaderConformance):
    reader = LOOP.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        lines = [
            f"2026-01-02 10:00:{n % 60:02d},123 - INFO - Step {n} | reward: {reward} | loss: 0.1"
            for n, reward in enumerate(rewards, start=1)
        ]
        return saved(folder, "Loading model\n" + "\n".join(lines) + "\n", "nohup.out")


@pytest.mark.parametrize(
    "line",
    [
        "[tag]  12/100 | loss=-1.5 | reward=0.25 | acc=25.0%",
        "[tag] Step  12/100 | loss=-1.5 | reward=0.25",
        "Step  12/100 | loss=-1.5 | reward=0.25",
        "step 12/100: reward=0.25 loss=-1.5",
        "Step 12 | reward: 0.25 | loss: -1.5",
        "step=12 reward=0.25 loss=-1.5",
        "Epoch 1/3 | Step 12/100 | Loss: -1.5 | Reward: 0.25",
        "[Step 12/100] Loss: -1.5, Mean Reward: 0.25, KL: 0.01",
        "Iteration 12: loss = -1.5; mean_reward = 0.25; lr = 1e-06",
        "\x1b[32m12:00:01\x1b[0m INFO | Step 12 - loss: -1.5 - avg reward: 0.25",
        "10:00:00 SUCCESS Step 12 | Time: 3.21s | Reward: 0.25 | Loss: -1.5 | Async Level: 1",
        "10:00:00 SUCCESS Step 12 |   3.2s | Reward 0.25 | Loss -1.5 | Trainable 5/8 (62.5%)",
    ],
)
def test_lines_that_log_a_step(tmp_path: Path, line: str) -> None:
    (run,) = runs_of(tmp_path, line + "\n")
    cells = {key.lower(): run.table.column(key).tolist() for key in run.table.keys}
    assert (cells["step"], cells["loss"]) == ([12], [-1.5])
    assert [0.25] in [value for key, value in cells.items() if "reward" in key]


@pytest.mark.parametrize(
    "line",
    [
        "step:12 - actor/entropy:0.115 - critic/score/mean:-0.11 - training/global_step:12",
        "{'loss': 0.1, 'reward': 0.25, 'epoch': 0.01}",
        " 50%|##   | 12/100 [00:12<00:13, 3.3s/it]{'loss': '0.1', 'reward': '0.25'}",
        "Global step 12: {'policy_loss': 0.1, 'reward': 0.25, 'return': 0.2}",
        "Episode [1/20]:  50%|##| 12/100 [00:12<00:13, 3.3s/it, reward=0.25, kl=0.1]",
        '{"step": 12, "reward": 0.25}',
        "[tag] DONE | avg_reward_last10=0.875",
        "step 12: the reward is computed next",
        "Step 12 | best_reward=0.9",
        "reward=0.25 loss=0.1",
    ],
)
def test_lines_that_do_not(tmp_path: Path, line: str) -> None:
    with suppress(InputError):
        (run,) = runs_of(tmp_path, line + "\n")
        assert "step" not in run.table.keys


def test_mixed_tags_are_several_runs(tmp_path: Path) -> None:
    lines = ["[b] Run: x | LR=1e-05 group=4", "seed=7"]
    for n in range(1, 5):
        lines += [f"[a] {n}/4 | reward=0.{n}00", f"[b] {n}/9 | reward=0.{n}50"]
    found = runs_of(tmp_path, "\n".join(lines) + "\n")
    assert [(run.label, run.has_own_id) for run in found] == [("a", True), ("b", True)]
    assert [run.planned_steps for run in found] == [4, 9]
    assert found[1].table.column("reward").tolist() == [0.15, 0.25, 0.35, 0.45]
    assert found[0].settings == {"seed": "7"}
    assert found[1].settings == {"seed": "7", "lr": "1e-05", "group": "4"}


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        (
            "[a_1] 7473 examples | model=Qwen/Qwen3-8B seed=42 rank=32 lr=3e-05",
            {"model": "Qwen/Qwen3-8B", "seed": "42", "rank": "32", "lr": "3e-05"},
        ),
        (
            "Model: Qwen/Qwen3-8B | Seed: 42 | LoRA rank: 32",
            {"model": "Qwen/Qwen3-8B", "seed": "42", "lora_rank": "32"},
        ),
        ("Steps: 50 | Group: 4 | LR: 3e-05", {"steps": "50", "group": "4", "lr": "3e-05"}),
        ("GRPO, 50 steps, group=8, model=org/m-1B", {"group": "8", "model": "org/m-1B"}),
        ("Zero-loss steps: 9/50 (18%) seed: unknown", {}),
    ],
)
def test_settings_of_headers_and_reports(
    tmp_path: Path, line: str, settings: dict[str, str]
) -> None:
    tag = "[a_1] " if line.startswith("[") else ""
    (run,) = runs_of(tmp_path, f"{line}\n{tag}1/9 | loss=-1.5 | reward=0.25\n")
    assert run.settings == settings


def test_evaluations_stand_among_the_steps(tmp_path: Path) -> None:
    text = "step 1: reward=0.1\nstep 1: eval_reward=0.2\nstep 2: reward=0.3\n"
    (run,) = runs_of(tmp_path, text)
    np.testing.assert_array_equal(run.table.column("eval_reward"), [np.nan, 0.2, np.nan])
    np.testing.assert_array_equal(run.table.column("reward"), [0.1, np.nan, 0.3])


@pytest.mark.parametrize(
    ("last", "read"), [("reward=0.125", 0.125), ("reward=0.12", np.nan), ("reward=0", np.nan)]
)
def test_a_number_that_may_be_cut_is_not_read(tmp_path: Path, last: str, read: float) -> None:
    text = "[a] 1/9 | loss=0.1 | reward=0.250\n[a] 2/9 | loss=0.2 | " + last
    (run,) = runs_of(tmp_path, text)
    np.testing.assert_array_equal(run.table.column("reward"), [0.25, read])
    assert run.table.cut.tolist() == [False, read != read]


STEPS = "".join(f"[a] {n}/9 | reward=0.5\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        (STEPS, True),
        ("download 1%\r" * 30_000 + "\n" + STEPS, True),
        ("a reward is given\n" * 2_000, False),
        ("[a] 1/9 | reward=0.5\n", False),
        ("{'loss': 0.1, 'reward': 0.2}\n" + STEPS, False),
        ("step:1 - actor/lr:1e-06 - critic/rewards/mean:0.5\n" * 9, False),
        (STEPS + "\0", False),
    ],
)
def test_claims(tmp_path: Path, text: str, is_ours: bool) -> None:
    assert claimed(tmp_path, text) is is_ours
    assert not claimed(tmp_path, text, "train.md")


def test_error_says_what_to_print(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no line logs a step with a reward\. Print lines"):
        runs_of(tmp_path, "nothing\n")


class TestEpochs(ReaderConformance):
    reader = LOOP.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        lines = [
            f"Epoch:[1/1]({n}/{len(rewards)}), Reward: {reward:.4f}, KL_ref: 0.0010, "
            f"Adv Mean: -0.0000, Actor Loss: 0.0065, Avg Response Len: 82.88, "
            f"Learning Rate: 0.00000030"
            for n, reward in enumerate(rewards, start=1)
        ]
        return saved(folder, "Model Params: 30.03M\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "form",
    [
        "Epoch:[{epoch}/2]({step}/3), Reward: {reward}, Actor Loss: 0.01",
        "Epoch [{epoch}/2], Step [{step}/3], loss: 0.1, reward: {reward}",
        "epoch {epoch}/2 | step {step}/3 | reward={reward}",
    ],
)
def test_steps_that_count_anew_in_each_epoch(tmp_path: Path, form: str) -> None:
    lines = [
        form.format(epoch=epoch, step=step, reward=epoch + step / 8)
        for epoch in (1, 2)
        for step in (1, 2, 3)
    ]
    (run,) = runs_of(tmp_path, "\n".join(lines) + "\n")
    assert run.table.column("step").tolist() == [1, 2, 3, 4, 5, 6]
    assert run.planned_steps == 6


def test_updates_that_count_nowhere_are_numbered(tmp_path: Path) -> None:
    lines = []
    for n in range(12):
        lines.append(f"2026-01-02 10:00:{n:02d},001 - train - INFO - rollout batch {n} generated")
        lines.append(
            f"2026-01-02 10:00:{n:02d},002 - train - INFO - rl_loss: -0.01, time: 9.5, "
            f"token_entropy: 0.8{n}, reward_data: {{'total_num': 64, 'total_reward': {16.0 + n}, "
            "'total_format_reward': 60.0}"
        )
        if n % 5 == 0:
            lines.append("x - INFO - reward: {'format_reward': 1.0, 'reward': 0.0}")
            lines.append(f"x - INFO - batch {n} done, eval_acc: 0.4{n}")
            lines.append(f"x - INFO - new best eval_acc: 0.4{n}, save model")
    text = "\n".join(lines)
    assert claimed(tmp_path, text)
    (run,) = runs_of(tmp_path, text)
    rewards = run.table.column("reward")
    assert rewards[np.isfinite(rewards)].tolist() == [(16.0 + n) / 64 for n in range(12)]
    evaluated = run.table.column("eval_acc")
    assert np.isfinite(evaluated).sum() == 3
    (read,) = read_runs(saved(tmp_path, text))
    assert read.step.tolist() == list(range(1, 13))
    assert read.eval_step.tolist() == [1, 6, 11]


def test_rewards_of_samples_alone_are_no_updates(tmp_path: Path) -> None:
    text = "\n".join(f"sample {n}: reward: {{'total_reward': {n}.0}}" for n in range(50))
    assert not claimed(tmp_path, text)


def test_pairs_with_a_blank_between_commas(tmp_path: Path) -> None:
    """mlx-lm-lora prints names and numbers with nothing between them."""
    rewards = np.round(0.2 + 0.6 * (1 - np.exp(-np.arange(1, 31) / 20)), 4)
    lines = [
        f"Iter {n}: Train loss 0.100, Total rewards mean {r}, Total rewards std 0.300, "
        f"Grouped rewards mean {r}, KL 0.001, r1_format mean 0.5, Learning Rate 1.000e-05, "
        "It/sec 0.5, Tokens/sec 30.0, Peak mem 10.1 GB"
        for n, r in enumerate(rewards, start=1)
    ]
    (run,) = read_runs(saved(tmp_path, "\n".join([*lines, ""])))
    np.testing.assert_allclose(run.reward, rewards)
    assert run.hyperparameters.learning_rate == 1e-5
