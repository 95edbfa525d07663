from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor.errors import InputError

TRL = LogFormat("TRL console")


def row(reward: float, **more: Any) -> str:
    """A log event as transformers 4 prints it."""
    cells = {
        "loss": 0.01,
        "grad_norm": 1.5,
        "learning_rate": 1e-05,
        "completions/mean_length": 40.5,
        "rewards/exact/mean": reward,
        "rewards/exact/std": 0.25,
        "reward": reward,
        "reward_std": 0.25,
        "frac_reward_zero_std": 0.5,
        "epoch": 0.01,
    }
    return str({**cells, **more})


def quoted(reward: float, **more: Any) -> str:
    """The same as transformers 5 prints it: four digits in quotes."""
    cells = {"loss": 0.01, "reward": reward, "reward_std": 0.25, "kl": 0.002, "epoch": 0.01}
    return str({key: f"{value:.4g}" for key, value in {**cells, **more}.items()})


def bar(done: int, total: int, description: str = "") -> str:
    share = f"{100 * done // total:3d}%"
    return f"\r{description}{share}|{'█' * (done % 10)}   | {done}/{total} [00:12<01:00,  3.2s/it]"


SUMMARY = (
    "{'train_runtime': 648.2, 'train_samples_per_second': 2.4, 'train_steps_per_second': 0.3, "
    "'train_loss': 0.18, 'epoch': 0.05}"
)


def header(total: int, per_device: int = 2, accumulated: int = 4, batch: int = 8) -> list[str]:
    return [
        "***** Running training *****",
        "  Num examples = 7,473",
        "  Num Epochs = 1",
        f"  Instantaneous batch size per device = {per_device}",
        f"  Total train batch size (w. parallel, distributed & accumulation) = {batch}",
        f"  Gradient Accumulation steps = {accumulated}",
        f"  Total optimization steps = {total:,}",
        "  Number of trainable parameters = 116,391,936",
    ]


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def _read(*lines: str, columns: dict[str, str] | None = None) -> list[Logged]:
        path = tmp_path / "train.log"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
        assert TRL.claims(path)
        return TRL.read(path, columns=columns)

    return _read


def numbers(logged: Logged, key: str) -> list[float]:
    column = logged.table.column(key)
    return [float(value) for value in column[np.isfinite(column)]]


class TestTransformers4(ReaderConformance):
    """Bare numbers, a header, no progress bars, a closing row."""

    reader = TRL.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        path = folder / "train.log"
        lines = [*header(len(rewards)), *map(row, rewards), SUMMARY]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


class TestTransformers5(ReaderConformance):
    """Quoted numbers behind progress bars on the same line, no header, not yet ended."""

    reader = TRL.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        path = folder / "nohup.out"
        total = 2 * len(rewards)
        text = bar(0, total)
        for step, reward in enumerate(rewards, start=1):
            text += f"{bar(step, total)}\r{' ' * 40}\r{quoted(reward)}\n{bar(step, total)}"
        path.write_text(text, encoding="utf-8", newline="")
        return path


def test_numbers_in_all_their_dress(read: Any) -> None:
    (run,) = read(
        "INFO x {'loss': 1, 'reward': 0.5, 'b': '0.25', 'c': nan, 'd': -inf, "
        "'e': np.float64(1e-05), 'f': tensor(3., device='cuda:0'), 'g': None, 'h': [1, 2], "
        "'i': {'reward': 9}, 'j': \"it's\"} ok",
        row(0.75),
    )
    found = {key: run.table.column(key)[0] for key in ("reward", "b", "c", "d", "e", "f")}
    known = {"reward": 0.5, "b": 0.25, "c": np.nan, "d": -np.inf, "e": 1e-5, "f": 3.0}
    assert found == pytest.approx(known, nan_ok=True)
    assert not {"g", "h"} & set(run.table.keys)


def test_the_last_number_of_a_cut_row_is_left_out(read: Any) -> None:
    (run,) = read(*map(row, (0.25, 0.5)), "{'loss': 0.5, 'kl': 0.25, 'reward': 0.12")
    assert run.table.column("kl")[-1] == 0.25
    assert np.isnan(run.table.column("reward")[-1])


def test_rows_of_a_run_that_ended_give_logging_steps(read: Any) -> None:
    (run,) = read(*header(200), *(row(n / 40) for n in range(40)), SUMMARY)
    assert run.logging_steps == 5
    assert run.planned_steps == 200
    assert run.assumptions == ("logging_steps = 200 optimization steps / 40 rows = 5",)
    assert run.label is None
    assert "step" not in run.table.keys
    assert numbers(run, "reward") == [n / 40 for n in range(40)]
    assert dict(run.settings) == {
        "per_device_train_batch_size": 2,
        "total_train_batch_size": 8,
        "gradient_accumulation_steps": 4,
        "total_optimization_steps": 200,
    }


def test_steps_left_over_at_the_end_have_no_row(read: Any) -> None:
    (run,) = read(*header(205), *(row(0.5, epoch=n) for n in range(20)), SUMMARY)
    assert run.logging_steps == 10
    assert "rounded down" in run.assumptions[0]


def test_a_row_at_the_first_step_is_placed_there(read: Any) -> None:
    (run,) = read(*header(200), *(row(0.5, epoch=n) for n in range(21)), SUMMARY)
    assert run.logging_steps == 10
    assert numbers(run, "step") == [1, *range(10, 201, 10)]


@pytest.mark.parametrize("lines", [header(200), []])
def test_a_run_that_goes_on_tells_no_logging_steps(read: Any, lines: list[str]) -> None:
    (run,) = read(*lines, *(row(0.5, epoch=n) for n in range(20)))
    assert run.logging_steps is None
    assert run.assumptions == ()
    assert "step" not in run.table.keys


def test_progress_bars_tell_the_step(read: Any) -> None:
    vllm = bar(8, 8, "Processed prompts: ")
    lines = [bar(0, 100)]
    for step in (1, 5, 10, 15):
        lines.append(f"{vllm}{bar(step, 100)}\r      \r{row(step / 20)}")
        # An evaluation draws a bar of its own, without a description too.
        lines.append(bar(3, 7) + "\r" + str({"eval_loss": 0.1, "eval_reward": step / 10}))
        lines.append(bar(step, 100))
    (run,) = read(*lines)
    assert numbers(run, "step") == [1, 1, 5, 5, 10, 10, 15, 15]
    assert numbers(run, "reward") == [0.05, 0.25, 0.5, 0.75]
    assert numbers(run, "eval_reward") == [0.1, 0.5, 1.0, 1.5]
    assert (run.logging_steps, run.planned_steps) == (5, 100)
    assert "1/100 at the first row" in run.assumptions[0]


def test_a_resumed_run_starts_where_it_was(read: Any) -> None:
    resumed = "  Continuing training from global step 100"
    rows = [row(n / 20, epoch=n) for n in range(20)]
    (run,) = read(*header(200), resumed, *rows, SUMMARY)
    assert numbers(run, "step") == list(range(105, 201, 5))
    assert run.assumptions == (
        "logging_steps = (200 optimization steps - 100 before it was resumed) / 20 rows = 5",
    )


def test_a_run_that_crashed_and_went_on_is_one(read: Any) -> None:
    def part(steps: range) -> list[str]:
        return [bar(0, 40), *(bar(s, 40) + "\r" + row(s / 40, epoch=s) for s in steps)]

    (run,) = read(
        *header(40),
        *part(range(1, 13)),
        "Traceback (most recent call last):",
        "torch.OutOfMemoryError: CUDA out of memory.",
        *header(40),
        "  Continuing training from global step 10",
        *part(range(11, 41)),
    )
    assert numbers(run, "step") == [*range(1, 13), *range(11, 41)]


def test_each_header_announces_a_run(read: Any) -> None:
    first = [*header(4, batch=8), *(row(0.1, epoch=n) for n in range(4)), SUMMARY]
    second = [*header(6, batch=16), *(row(0.2, epoch=n) for n in range(6)), SUMMARY]
    runs = read("Model: Qwen/Qwen2.5-7B", *first, "model=Qwen/Qwen3-4B", *second)
    assert [run.label for run in runs] == ["1", "2"]
    assert [run.planned_steps for run in runs] == [4, 6]
    assert [run.settings["total_train_batch_size"] for run in runs] == [8, 16]
    names = [run.settings["model_name_or_path"] for run in runs]
    assert names == ["Qwen/Qwen2.5-7B", "Qwen/Qwen3-4B"]
    assert [set(numbers(run, "reward")) for run in runs] == [{0.1}, {0.2}]


def test_rows_between_batches_of_rollouts_keep_the_steps_right(read: Any) -> None:
    reused = "{'loss': 0.02, 'grad_norm': 0.3, 'clip_ratio/region_mean': 0.1, 'epoch': 0.5}"
    lines = [line for n in range(5) for line in (row(n / 5, epoch=n), reused)]
    (run,) = read(*header(10), *lines, SUMMARY)
    rewarded = np.isfinite(run.table.column("reward"))
    assert run.table.column("step")[rewarded].tolist() == [1, 3, 5, 7, 9]
    assert run.logging_steps == 1


def test_rows_that_every_node_prints_count_once(read: Any) -> None:
    lines = [line for n in range(20) for line in [row(n / 20, epoch=n)] * 2]
    (run,) = read(*header(20), *lines, SUMMARY)
    assert numbers(run, "reward") == [n / 20 for n in range(20)]
    assert run.logging_steps == 1
    assert "printed several times" in run.assumptions[-1]


def test_what_reward_functions_print_is_no_row(read: Any) -> None:
    noise = [
        "{'reward': 1.0, 'answer': '42'}",
        "This model supports multiple tasks: {'score', 'reward', 'embed'}. Defaulting to 'embed'.",
        "config {'loss': 'grpo', 'reward': 'accuracy', 'epoch': 'all'}",
    ]
    (run,) = read(*noise, row(0.25), *noise, f"\x1b[32mINFO\x1b[0m {row(0.5)}\x1b[0m")
    assert numbers(run, "reward") == [0.25, 0.5]


def test_unsloth_prints_a_banner(read: Any) -> None:
    (run,) = read(
        "==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 2",
        r"   \\   /|    Num examples = 7,473 | Num Epochs = 1 | Total steps = 1,000",
        r"O^O/ \_/ \    Batch size per device = 8 | Gradient accumulation steps = 4",
        r"\        /    Data Parallel GPUs = 1 | Total batch size (8 x 4 x 1) = 32",
        ' "-____-"     Trainable parameters = 97,255,424 of 3,310,005,248 (2.94% trained)',
        row(0.5),
    )
    assert dict(run.settings) == {
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 4,
        "total_train_batch_size": 32,
        "world_size": 1,
        "total_optimization_steps": 1000,
        "trained_percent": "2.94",
        "base_parameters": 3_212_749_824,
    }


def test_dumped_arguments_are_settings(read: Any) -> None:
    (run,) = read(
        "INFO - Model parameters ModelConfig(model_name_or_path='Qwen/Qwen3-4B', lora_r=16, x=[1])",
        "INFO - Training parameters GRPOConfig(",
        "_n_gpu=1,",
        "adam_beta1=0.9,",
        "learning_rate=1e-06,",
        "lr_scheduler_type=SchedulerType.COSINE,",
        "num_generations=16,",
        "output_dir='x',",
        ")",
        "seed=7, beta=9,",
        "vLLM config: model='Qwen/Qwen3-4B', seed=0, speculative_config=SpeculativeConfig(seed=3)",
        "+ accelerate launch train.py --gradient-accumulation-steps 4 --num_generations=16 --x y",
        row(0.5),
    )
    assert dict(run.settings) == {
        "model_name_or_path": "Qwen/Qwen3-4B",
        "lora_r": "16",
        "_n_gpu": "1",
        "adam_beta1": "0.9",
        "learning_rate": "1e-06",
        "lr_scheduler_type": "SchedulerType.COSINE",
        "num_generations": "16",
        "gradient_accumulation_steps": "4",
    }


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("csd_pilot: CSD Pilot — model=Qwen/Qwen3.5-9B, pilot=1, max_steps=200", "Qwen/Qwen3.5-9B"),
        ("train: Model: Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ('"model_name_or_path": "meta-llama/Llama-3.2-3B"', "meta-llama/Llama-3.2-3B"),
        ("model=outputs/checkpoint-200", None),
        ("model=/data/models/qwen", None),
        ("Reward model: nvidia/judge-7B", None),
        ("reward_model=nvidia/judge-7B", None),
        ("model: a/b/c", None),
    ],
)
def test_a_model_is_named_only_where_it_clearly_is(read: Any, line: str, name: str | None) -> None:
    assert read(line, row(0.5))[0].settings.get("model_name_or_path") == name


def test_a_console_without_rows_says_what_to_give(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("Traceback (most recent call last):\n", encoding="utf-8")
    with pytest.raises(InputError, match="no line holds a logged row"):
        TRL.read(path)


def index(real_logs: Path) -> list[dict[str, str]]:
    with (real_logs / "INDEX.tsv").open(encoding="utf-8", newline="") as stream:
        entries = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [entry for entry in entries if entry["reader"] == "trl_console"]


def test_real_logs(real_logs: Path) -> None:
    entries = index(real_logs)
    assert len(entries) == 48
    named = []
    for entry in entries:
        log = real_logs / entry["local_file"]
        assert TRL.claims(log), entry["id"]
        (run,) = TRL.read(log)
        reward = np.array(numbers(run, "reward"))
        assert reward.size == int(entry["n_steps_logged"]), entry["id"]
        assert run.logging_steps == int(entry["log_every"]), entry["id"]
        named.append(run.settings.get("model_name_or_path"))
        assert named[-1] in (None, entry["model"])
        found = re.match(
            r"(\S+) -> (\S+) \(means of first/last (\d+)", entry["reward_first_to_last"]
        )
        assert found is not None
        first, last, rows = float(found[1]), float(found[2]), int(found[3])
        assert reward[:rows].mean() == pytest.approx(first, abs=6e-4), entry["id"]
        assert reward[-rows:].mean() == pytest.approx(last, abs=6e-4), entry["id"]
    assert sum(name is not None for name in named) >= 40


def test_rows_printed_several_at_a_time_follow_the_bars(read: Any) -> None:
    """A stream into a file is written when its buffer is full, and the bars are not."""
    lines, held = [], []
    for step in range(1, 121):
        lines.append(bar(step, 1000))
        if step % 5 == 0:
            held.append(row(0.5 + 0.001 * step, learning_rate=1e-5 * (1 - (step - 1) / 1000)))
        if len(held) == 6:
            lines += held[:5]
            held = held[5:]
    (run,) = read(*lines, *held)
    expected = [5.0 * n for n in range(1, 25)]
    assert numbers(run, "step") == expected
    assert run.logging_steps == 5
    assert any("moves 5 steps a row" in line for line in run.assumptions)


def test_rows_that_a_hole_took_away_move_the_others(read: Any) -> None:
    lines = []
    for step in [*range(1, 51), *range(301, 351)]:
        lines.append(bar(step, 1000))
        if step % 25 == 0:
            lines += [row(0.5 + 0.001 * at) for at in range(step - 20, step + 1, 5)]
    (run,) = read(*lines)
    assert numbers(run, "step") == [*np.arange(5.0, 51, 5), *np.arange(305.0, 351, 5)]
    assert any("50 rows are lost before row 11" in line for line in run.warnings)
