from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import on_disk
from advisor.runs.logfiles.logged import Columns, Logged
from advisor.runs.trainers import trl as swift
from advisor.runs.trainers.trl import console as trl_console
from advisor.testing.reader_conformance import ReaderConformance


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
        "clip_ratio/region_mean": 0.0,
        "epoch": 0.01,
        "global_step/max_steps": f"{step}/{total}",
        "percentage": f"{100 * step / total:.2f}%",
        "elapsed_time": "5m 20s",
        "remaining_time": "4d 3h 37m 48s",
        "memory(GiB)": 55.33,
        "train_speed(s/it)": 35.870414,
        **more,
    }


CLOSING = {
    "train_runtime": 640.1,
    "train_loss": 0.1,
    "epoch": 1.0,
    "global_step/max_steps": "9/9",
    "elapsed_time": "11m",
}
MESSAGE = {"last_model_checkpoint": "x", "global_step": 9, "log_history": [{"reward": 0.1}] * 9}


def read(path: Path, columns: Columns | None = None) -> list[Logged]:
    assert swift.claims_swift(on_disk(path))
    return list(swift.read_swift([on_disk(path)], columns or Columns()))


def column(run: Logged, key: str) -> list[float]:
    values = run.table.column(key)
    return [float(value) for value in values[np.isfinite(values)]]


@pytest.fixture
def jsonl(tmp_path: Path) -> Any:
    def write(*rows: Any) -> Path:
        path = tmp_path / "logging.jsonl"
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


@pytest.fixture
def console(tmp_path: Path) -> Any:
    def write(*rows: Any) -> Path:
        path = tmp_path / "run.log"
        path.write_text("\n".join(map(str, rows)) + "\n", encoding="utf-8", newline="")
        return path

    return write


class TestJsonl(ReaderConformance):
    reader = swift.SWIFT_READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        path = folder / "logging.jsonl"
        rows = [cells(step, len(rewards), reward) for step, reward in enumerate(rewards, start=1)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path


class TestConsole(ReaderConformance):
    reader = swift.SWIFT_READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        path = folder / "run.log"
        lines = ["[INFO:swift] The training of Epoch 0 starts..."]
        for step, reward in enumerate(rewards, start=1):
            lines.append(f"\rTrain:  33%|███▎ | {step}/99 [06:42<06:43, 201.99s/it]")
            lines.append(str(cells(step, 99, reward)))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
        return path


class TestMegatron(ReaderConformance):
    reader = swift.SWIFT_READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        path = folder / "megatron.log"
        lines = [
            f" [2025-11-25 07:19:22] iteration {step:8d}/    2174 | consumed samples:  448 | "
            "elapsed time per iteration (ms): 215613.0 | elapsed time: 17m 33s | "
            "learning rate: 4.999872E-05 | global batch size:    64 | loss: -2.365559E-06 | "
            f"reward: {reward:.6E} | reward_std: 1.261245E-01 | grad norm: 0.016 | "
            "number of nan iterations:   0 |"
            for step, reward in enumerate(rewards, start=1)
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


def test_the_fraction_is_the_step(jsonl: Any) -> None:
    rows = [cells(step, 1000, step / 10) for step in (1, 5, 10)]
    closing = {**CLOSING, "global_step/max_steps": "10/1000"}
    (run,) = read(jsonl(*rows, closing, MESSAGE))
    assert column(run, "step") == [1, 5, 10, 10]
    assert column(run, "reward") == [0.1, 0.5, 1.0]
    assert run.planned_steps == 1000
    assert run.framework == "TRL"
    assert run.logging_steps is None
    assert dict(run.facts) == {"kl_coefficient": 0.0}
    assert len(run.table) == 4


def test_the_history_in_the_closing_message_may_be_endless(jsonl: Any) -> None:
    message = {**MESSAGE, "log_history": [{"reward": 0.1, "note": "x" * 100}] * 12_000}
    (run,) = read(jsonl(*(cells(n, 3, 0.5) for n in (1, 2, 3)), message))
    assert column(run, "reward") == [0.5] * 3
    assert run.warnings == ()


def test_megatron_names_the_fraction_iteration(jsonl: Any) -> None:
    rows = []
    for step in (1, 2):
        row = cells(step, 50, 0.5, kl=0.1)
        row["iteration"] = row.pop("global_step/max_steps")
        rows.append(row)
    (run,) = read(jsonl(*rows))
    assert column(run, "step") == [1, 2]
    assert run.planned_steps == 50
    assert dict(run.facts) == {}


def test_a_last_line_that_is_cut_is_left_out(jsonl: Any) -> None:
    whole = [cells(step, 9, 0.5) for step in (1, 2, 3)]
    path = jsonl(*whole)
    for size in (30, -60, -10):
        path.write_text(
            "".join(json.dumps(row) + "\n" for row in whole) + json.dumps(cells(4, 9, 1.0))[:size],
            encoding="utf-8",
        )
        (run,) = read(path)
        assert column(run, "reward") == [0.5] * 3
        assert run.warnings == ("the last line is cut and was left out",)


def test_a_broken_line_in_the_middle_is_named(jsonl: Any) -> None:
    broken = json.dumps(cells(2, 9, 0.5))[:-1]
    with pytest.raises(InputError, match="not valid JSON") as raised:
        read(jsonl(cells(1, 9, 0.5), broken, cells(3, 9, 0.5)))
    assert raised.value.row == 2


def test_rows_of_a_console_stand_among_noise(console: Any) -> None:
    first = {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in cells(1, 9, 0.5).items()}
    bar = "\rTrain:  11%|█▎        | 1/9 [01:35<12:44, 95.6s/it]"
    (run,) = read(
        console(
            "[rank0]: Traceback (most recent call last):",
            "[rank0]: KeyError: 'reward'",
            f"{bar}\r{' ' * 60}\r{first}",
            f"[rank0]: {cells(2, 9, 0.75)}",
            str(cells(2, 9, 0.75)),
            "{'eval_loss': 0.1, 'eval_reward': 0.6, 'global_step/max_steps': '2/9'}",
            str(cells(3, 9, 1.0))[:-300],
            str(CLOSING),
        )
    )
    # What a cut row had of its step is lost, and the row with it; a row printed twice counts once.
    assert column(run, "reward") == [0.5, 0.75]
    assert column(run, "step") == [1, 2, 2, 9]
    assert column(run, "eval_reward") == [0.6]


def test_rows_between_batches_of_rollouts_have_no_reward(jsonl: Any) -> None:
    reused = cells(2, 9, 0.5)
    for key in ("reward", "reward_std", "frac_reward_zero_std"):
        del reused[key]
    (run,) = read(jsonl(cells(1, 9, 0.5), reused, cells(3, 9, 0.75)))
    rewarded = np.isfinite(run.table.column("reward"))
    assert run.table.column("step")[rewarded].tolist() == [1, 3]


def test_the_printed_arguments_are_settings(console: Any) -> None:
    (run,) = read(
        console(
            "run sh: `python swift/cli/rlhf.py --rlhf_type grpo --model Qwen/Qwen3-8B --tuner_type "
            "lora --lora_rank 8 --num_generations 8 --external_plugins a.py`",
            "[INFO:swift] args: RLHFArguments(",
            "_n_gpu=-1,",
            "async_generate=False,",
            "beta=0.04,",
            "steps_per_generation=4,",
            "system='You are a helpful assistant',",
            ")",
            *(cells(step, 9, 0.5) for step in (1, 2, 3)),
        )
    )
    assert dict(run.settings) == {
        "model": "Qwen/Qwen3-8B",
        "tuner_type": "lora",
        "lora_rank": "8",
        "num_generations": "8",
        "_n_gpu": "-1",
        "async_generate": "False",
        "beta": "0.04",
        "steps_per_generation": "4",
    }


def test_a_run_after_one_that_ended_is_another(console: Any) -> None:
    first = [cells(step, 9, 0.1) for step in range(1, 10)]
    second = [cells(step, 9, 0.2) for step in range(1, 10)]
    runs = read(console(*first, CLOSING, *second))
    assert [run.label for run in runs] == ["1", "2"]
    assert [set(column(run, "reward")) for run in runs] == [{0.1}, {0.2}]


def test_megatron_tells_the_batch(tmp_path: Path) -> None:
    (run,) = read(TestMegatron().write_sample(tmp_path, [0.5, 0.75]))
    assert dict(run.settings) == {"global_batch_size": "64"}
    assert column(run, "learning rate") == [4.999872e-05] * 2
    assert run.planned_steps == 2174


@pytest.mark.parametrize(
    "row",
    [
        {"loss": 0.1, "global_step/max_steps": "1/9", "train_speed(s/it)": 1.0},
        {"step": 1, "reward": 0.5},
        {"reward": 0.5, "iteration": 3},
    ],
)
def test_it_claims_no_log_of_another_kind(jsonl: Any, console: Any, row: dict[str, Any]) -> None:
    assert not swift.claims_swift(on_disk(jsonl(*[row] * 4)))
    assert not swift.claims_swift(on_disk(console(*[row] * 4)))


def test_only_one_reader_claims_a_console(console: Any) -> None:
    log = on_disk(console(*(cells(step, 9, 0.5) for step in (1, 2, 3))))
    assert swift.claims_swift(log)
    assert not trl_console.claims(log)


def test_real_logs_of_others_are_left_alone(real_logs: Path) -> None:
    for path in sorted(p for p in real_logs.rglob("*") if p.is_file()):
        assert not swift.claims_swift(on_disk(path)), path
