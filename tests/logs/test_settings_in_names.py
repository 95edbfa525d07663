"""What names of runs, models and folders tell, and the block for pilots.toml that asks for more."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

import advisor
from advisor.cli.inspection import show
from advisor.runs.trainers.registry import settings_in_name

Writer = Callable[..., Path]


def rows(shift: float = 0.0) -> str:
    return "step,reward\n" + "".join(f"{n},{0.1 + 0.013 * n + shift}\n" for n in range(1, 12))


def block(folder: Path) -> str:
    """The block that an inspection prints, as it is pasted."""
    console = Console(file=io.StringIO(), width=200)
    show(advisor.inspect(folder), console)
    printed = console.file.getvalue().partition("Paste into pilots.toml next to the logs:\n")[2]  # type: ignore[attr-defined]
    return "\n".join(line for line in printed.split("\n") if line.startswith("  "))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lr_1e-5", {"learning_rate": 1e-5}),
        ("grpo-lr1e-05-g8", {"learning_rate": 1e-5, "group_size": 8}),
        ("lr-5e-6_G16", {"learning_rate": 5e-6, "group_size": 16}),
        ("exp/lr0.0001.n8", {"learning_rate": 1e-4, "group_size": 8}),
        (
            "group_size_16_mu_2_bs64",
            {"group_size": 16, "epochs_per_refresh": 2, "prompts_per_step": 64},
        ),
        ("rate_1e-5", {"learning_rate": 1e-5}),
        ("failure_rate_0.5", {}),
        ("lr1e-5/lr2e-5", {}),
        ("lr5_gpu8_alg8x_v2_n", {}),
        ("mug8", {}),
    ],
)
def test_settings_in_a_name(name: str, settings: dict[str, float]) -> None:
    assert settings_in_name(name) == settings


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("/models/Qwen2.5-7B-Instruct/", 7e9),
        ("Qwen__Qwen2.5-1.5B", 1.5e9),
        ("qwen2.5_3b_grpo", 3e9),
        ("llama_8b", 8e9),
        ("qwen-1_5b", None),
        ("mixtral-8x7b", None),
    ],
)
def test_size_in_the_name_of_a_model(name: str, size: float | None) -> None:
    assert advisor.PilotRun.parameters_in(name) == size


@pytest.mark.parametrize(
    ("name", "model", "size"),
    [
        ("qwen2.5-3b-grpo-lr1e-6", "qwen2.5-3b", 3e9),
        ("out__Qwen2.5-Math-1.5B_lr", "Qwen2.5-Math-1.5B", 1.5e9),
        ("grpo_run_deepseek7b_llm", "deepseek7b", 7e9),
        ("Llama-3.2-1B/seed1", "Llama-3.2-1B", 1e9),
        ("qwen34b", None, None),
        ("qwen-3b-and-qwen-7b", None, None),
        ("lr1e-6_10m", None, None),
    ],
)
def test_model_in_the_name_of_a_run(
    write: Writer, tmp_path: Path, name: str, model: str | None, size: float | None
) -> None:
    write(f"{name}.csv", rows())
    write("other.csv", rows(0.01))
    (run,) = (run for run in advisor.inspect(tmp_path).runs if run.id != "other")
    assert (run.model, run.parameters) == (model, size)
    assert ("parameters" in run.needs) == (size is None)
    if size:
        assert any(line.startswith(f"parameters = {size:g} assumed") for line in run.assumptions)
        write(f"{name}.json", {"model_name_or_path": "/ckpt/last", "num_generations": 8})
        run = next(run for run in advisor.inspect(tmp_path).runs if run.id != "other")
        assert (run.model, run.parameters) == ("/ckpt/last", size)


@pytest.mark.parametrize(
    ("folder", "printed", "overrides", "size"),
    [
        ("run", "", {}, 3.09e9),
        ("run", "model = 'unsloth/Phi-4'", {}, 3.09e9),
        # A name that tells a size stays with it: other logs of the model have no count.
        ("run", "model = 'Qwen/Qwen2.5-3B'", {}, 3e9),
        ("qwen2.5-3b", "", {}, 3e9),
        ("run", "", {"model": "Qwen/Qwen2.5-3B"}, 3e9),
        ("run", "", {"parameters": 7e9}, 7e9),
    ],
)
def test_the_size_that_unsloth_prints_counts_where_no_name_has_one(
    tmp_path, folder, printed, overrides, size
):
    banner = '"-____-"  Trainable parameters = 29,933,568 of 3,115,872,256 (0.96% trained)'
    rows = [f"{{'loss': 0.1, 'reward': {n / 40}, 'learning_rate': 1e-06}}" for n in range(1, 21)]
    (tmp_path / folder).mkdir()
    log = tmp_path / folder / "train.log"
    log.write_text("\n".join([printed, banner, *rows]))
    (run,) = advisor.read_runs(log, overrides=overrides)
    assert run.parameters == size
    is_counted = size == 3.09e9
    told = "parameters 3,085,938,688 (Unsloth's count) [the log]"
    assert (run.derivations.get("parameters") == told) == is_counted
    assert "parameters" not in run.needs
