from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processor_time import at_most
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor.errors import InputError
from advisor.runs.logs.trackers.notebook import NotebookCode, find_tables

NOTEBOOK = LogFormat("notebook")

HEADER = (
    "Step",
    "Training Loss",
    "reward",
    "reward_std",
    "completions / mean_length",
    "rewards / exact / mean",
)


def table(
    rewards: Sequence[float], total: int = 100, header: Sequence[str] = HEADER, first: int = 1
) -> str:
    """Progress table as transformers draws it."""
    lines = [f"<div><progress value='3' max='{total}' style='width:300px;'></progress>[3/{total}]"]
    lines += ['</div><table border="1" class="dataframe">', "<thead>", '<tr style="left">']
    lines += [f"  <th>{name}</th>" for name in header]
    lines += ["</tr></thead><tbody>"]
    for step, reward in enumerate(rewards, start=first):
        values = [str(step), "0.000000", f"{reward:.6f}", "0.250000", "131.5", f"{reward:.6f}"]
        lines += ["<tr>", *(f"  <td>{value}</td>" for value in values), "</tr>"]
    return "\n".join([*lines, "</tbody></table><p>"])


def drawn(html: str) -> dict[str, Any]:
    return {
        "output_type": "display_data",
        "data": {"text/html": html.splitlines(keepends=True), "text/plain": ["<HTML object>"]},
    }


def printed(*lines: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": [f"{line}\n" for line in lines]}


def cell(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source.splitlines(keepends=True),
        "outputs": list(outputs),
    }


def write(folder: Path, *cells: dict[str, Any]) -> Path:
    path = folder / "grpo.ipynb"
    markdown = {"cell_type": "markdown", "source": ["GRPOConfig(beta=9)"]}
    document = {"nbformat": 4, "metadata": {}, "cells": [markdown, *cells]}
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def read(path: Path, columns: dict[str, str] | None = None) -> list[Logged]:
    assert NOTEBOOK.claims(path)
    return NOTEBOOK.read(path, columns=columns)


def column(run: Logged, key: str) -> list[float]:
    values = run.table.column(key)
    return [float(value) for value in values[np.isfinite(values)]]


BANNER = (
    "==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1",
    r"   \\   /|    Num examples = 7,473 | Num Epochs = 1 | Total steps = 100",
    r"O^O/ \_/ \    Batch size per device = 4 | Gradient accumulation steps = 2",
    r"\        /    Data Parallel GPUs = 1 | Total batch size (4 x 2 x 1) = 8",
)

MODEL = """\
from unsloth import FastLanguageModel
max_seq_length = 1024  # longer traces need more
lora_rank = 32
!pip install --upgrade trl
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name = "unsloth/Qwen3-4B-Base",
    max_seq_length = max_seq_length,
)
model = FastLanguageModel.get_peft_model(model, r = lora_rank, lora_alpha = lora_rank * 2)
"""

CONFIG = """\
%%capture
max_prompt_length = 287 + 1
from trl import GRPOConfig
args = GRPOConfig(
    learning_rate = 5e-6,
    lr_scheduler_type = "cosine",
    bf16 = is_bfloat16_supported(),
    per_device_train_batch_size = 1,
    gradient_accumulation_steps = 2,
    num_generations = 4,
    max_prompt_length = max_prompt_length,
    max_completion_length = max_seq_length - max_prompt_length,
    max_steps = 100,
    scale_rewards = False,
    **extra,
)
"""


class TestTable(ReaderConformance):
    reader = NOTEBOOK.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        return write(folder, cell(CONFIG), cell("trainer.train()", drawn(table(rewards))))


class TestPrintedRows(ReaderConformance):
    reader = NOTEBOOK.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [
            str({"loss": 0.1, "reward": reward, "reward_std": 0.5, "epoch": step / 10})
            for step, reward in enumerate(rewards, start=1)
        ]
        header = f"  Total optimization steps = {len(rewards)}"
        closing = "{'train_runtime': 12.5, 'train_loss': 0.1}"
        return write(folder, cell("!python train.py", printed(header, *rows, closing)))


def test_keys_values_and_length_of_a_table(tmp_path: Path) -> None:
    path = write(tmp_path, cell("trainer.train()", drawn(table([0.5, -0.25], total=500))))
    (run,) = read(path)
    assert run.table.keys == list(HEADER)
    assert column(run, "Step") == [1, 2]
    assert column(run, "reward") == [0.5, -0.25]
    assert column(run, "rewards / exact / mean") == [0.5, -0.25]
    assert run.planned_steps == 500
    assert run.label is None
    assert run.framework == "TRL"
    assert dict(run.facts) == {"kl_coefficient": 0.0}
    with_kl = table([0.5] * 3, header=(*HEADER[:4], "kl", HEADER[5]))
    assert dict(read(write(tmp_path, cell("", drawn(with_kl))))[0].facts) == {}


def test_of_the_states_of_a_table_the_last_counts(tmp_path: Path) -> None:
    rewards = [0.1, 0.2, 0.3, 0.4]
    for order in ((4, 1, 3), (1, 3, 4), (3, 4, 4)):
        states = [drawn(table(rewards[:size])) for size in order]
        (run,) = read(write(tmp_path, cell("trainer.train()", *states)))
        assert column(run, "reward") == rewards


def test_each_training_is_a_run(tmp_path: Path) -> None:
    first = cell("trainer.train()", drawn(table([0.1] * 4)))
    second = cell("GRPOConfig(beta=0.5)\ntrainer.train()", drawn(table([0.2] * 4)))
    both = cell("", drawn(table([0.3] * 4)), drawn(table([0.4] * 4)))
    runs = read(write(tmp_path, cell("GRPOConfig(beta=0.25)"), first, second, both))
    assert [run.label for run in runs] == ["1", "2", "3", "4"]
    assert [column(run, "reward")[0] for run in runs] == [0.1, 0.2, 0.3, 0.4]
    assert [run.settings["beta"] for run in runs] == [0.25, 0.5, 0.5, 0.5]


def test_other_tables_are_no_runs(tmp_path: Path) -> None:
    frame = table([0.5] * 3, header=("", "question", "reward", "a", "b", "c"))
    tuning = table([0.5] * 3, header=("Step", "Training Loss", "x", "y", "z", "v"))
    assert len(read(write(tmp_path, cell("", drawn(table([0.5] * 3)), drawn(frame))))) == 1
    path = write(tmp_path, cell("df", drawn(frame)), cell("sft.train()", drawn(tuning)))
    with pytest.raises(InputError, match="no output of the notebook shows a reward"):
        NOTEBOOK.read(path)


def test_metrics_beside_a_validation_loss_are_evaluations(tmp_path: Path) -> None:
    header = ("Step", "Training Loss", "Validation Loss", "Reward", "Rewards/exact/mean", "Kl")
    html = table([0.5] * 3, header=header)
    html = html.replace("<td>0.000000</td>", "<td>No log</td>")
    (run,) = read(write(tmp_path, cell("trainer.train()", drawn(html))))
    assert run.table.keys == [*header[:3], "eval_reward", "eval_rewards/exact/mean", "eval_kl"]
    assert not run.table.has("Training Loss").any()
    assert column(run, "eval_reward") == [0.25] * 3


def test_settings_come_from_the_code_and_from_what_was_printed(tmp_path: Path) -> None:
    data = 'data = load_dataset("openai/gsm8k", "main")\ntest = load_dataset("x/y", split="test")'
    training = cell("trainer.train()", printed(*BANNER), drawn(table([0.5] * 3)))
    (run,) = read(write(tmp_path, cell(MODEL), cell(data), cell(CONFIG), training))
    assert dict(run.settings) == {
        "model_name_or_path": "unsloth/Qwen3-4B-Base",
        "lora_r": 32,
        "lora_alpha": 64,
        "dataset_name": "openai/gsm8k",
        "learning_rate": 5e-06,
        "lr_scheduler_type": "cosine",
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "num_generations": 4,
        "max_prompt_length": 288,
        "max_completion_length": 736,
        "max_steps": 100,
        "scale_rewards": False,
        "total_train_batch_size": 8,
        "world_size": 1,
        "total_optimization_steps": 100,
    }
    assert run.warnings == ()


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("GRPOConfig(max_steps=250)", 250),
        ("n = 10\nGRPOConfig(max_steps=n * 25 // 2 + 1 - 1)", 125),
        ("n = 10\nn = ask()\nGRPOConfig(max_steps=n)", None),
        ("n = 10\nfor n in range(3): pass\nGRPOConfig(max_steps=n)", None),
        ("n: int = 10\nGRPOConfig(max_steps=n / 4)", 2.5),
        ("n = 10\nn += 1\nGRPOConfig(max_steps=n)", None),
        ("n = 10\nn = 20\nGRPOConfig(max_steps=n)", None),
        ("n = 10\nn = 10\nGRPOConfig(max_steps=n)", 10),
        ("n = 10\nm = n * 2\nGRPOConfig(max_steps=m)", 20),
        ("n = 10\ndef f(n=3):\n    return GRPOConfig(max_steps=n)", None),
        ("n = 10\ndef f():\n    n = 3\n    return GRPOConfig(max_steps=n)", None),
        ("n = 10\ndef f():\n    n = 3\nGRPOConfig(max_steps=n)", 10),
        ("n = 10\ndef f():\n    global n\n    n = 3\nGRPOConfig(max_steps=n)", None),
        ("n = 10\nx = [n for n in y]\nGRPOConfig(max_steps=n)", 10),
        ("n = 10\nx = [GRPOConfig(max_steps=n) for n in y]", None),
        ("n = 10\nfor m in y:\n    n = m\n    GRPOConfig(max_steps=n)", None),
        ("GRPOConfig(max_steps=-1)", -1),
        ("GRPOConfig(max_steps=1 / 0)", None),
        ("GRPOConfig(max_steps=2 ** 10)", None),
        ("GRPOConfig(max_steps=True + 1)", None),
        ("GRPOConfig(max_steps=max(3, 4))", None),
        ("GRPOConfig(max_steps=[1])", None),
        ("GRPOConfig(max_steps=10 ** 9 * 9)", None),
        ("GRPOConfig(max_steps=" + "9" * 400 + ")", None),
        ("args = trl.GRPOConfig(max_steps=7)", 7),
        ("def f():\n    return GRPOConfig(max_steps=8)", 8),
        ("if x:\n    !pip install trl\nGRPOConfig(max_steps=9)", 9),
        ("%%capture\nfiles = !ls\ntrainer?\nGRPOConfig(max_steps=10)", 10),
        ("text = 'a' \\\n    % 1\nGRPOConfig(max_steps=11)", 11),
        ("GRPOConfig(max_steps=12, pattern='\\d')", 12),
        ("%%bash\nGRPOConfig(max_steps=13)", None),
        ("GRPOConfig(max_steps=14", None),
        ("__import__('os').abort()\nGRPOConfig(max_steps=15)", 15),
    ],
)
def test_only_literals_names_of_them_and_arithmetic_are_read(source: str, value: Any) -> None:
    code = NotebookCode()
    code.feed(source)
    assert code.settings.get("max_steps") == value


@pytest.mark.parametrize("nesting", ["(", "[", "-", "f(", "1+", "a.", "not ", "x=", "{", "lambda:"])
def test_hostile_code_costs_no_time(nesting: str) -> None:
    code = NotebookCode()
    with at_most(3):
        code.feed(nesting * (90_000 // len(nesting)) + "1")
        code.feed(" " * 90_000 + "GRPOConfig")
        code.feed("GRPOConfig(beta=1)" + " " * 200_000)
    assert code.settings == {}


@pytest.mark.parametrize("piece", ["<table>", "<th>", "<!--", "<", "<table><tr><th>Step<td>", "&#"])
def test_hostile_html_costs_no_time(piece: str) -> None:
    with at_most(3):
        find_tables(piece * (500_000 // len(piece)))


def test_it_claims_notebooks_with_rewards_only(tmp_path: Path) -> None:
    tuning = table([0.5] * 3, header=("Step", "Training Loss", "x", "y", "z", "v"))
    assert not NOTEBOOK.claims(write(tmp_path, cell("x", drawn(tuning))))
    tasks = "supports multiple tasks: {'score', 'reward', 'embed'}"
    assert not NOTEBOOK.claims(write(tmp_path, cell("x", printed(tasks))))
    picture = {"output_type": "display_data", "data": {"image/png": "A" * 3_000_000}}
    path = write(tmp_path, cell("x", picture), cell("x", drawn(table([0.5] * 3))))
    assert NOTEBOOK.claims(path)
    assert not NOTEBOOK.claims(path.rename(tmp_path / "grpo.json"))


def test_a_training_that_was_resumed_is_one_run(tmp_path: Path) -> None:
    levels = [round(0.01 * n, 6) for n in range(1, 41)]
    first = cell(CONFIG + "trainer.train()", drawn(table(levels[:20])))
    again = "trainer.train(resume_from_checkpoint=True)"
    for start, runs in ((15, 1), (20, 1), (0, 2), (25, 2)):
        later = cell(again, drawn(table(levels[start:], first=start + 1)))
        found = read(write(tmp_path, first, later))
        assert len(found) == runs
        assert found[0].table.column("Step").tolist() == (
            [*range(1, 21), *range(start + 1, 41)] if runs == 1 else [*range(1, 21)]
        )
    # Of other settings it is another run, wherever it begins.
    later = cell(CONFIG.replace("5e-6", "1e-5") + again, drawn(table(levels[15:], first=16)))
    assert len(read(write(tmp_path, first, later))) == 2
