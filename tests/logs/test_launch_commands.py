"""Settings from launch commands: in scripts near a log, and printed in the log itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import advisor
from advisor.runs import PilotRun, on_disk
from advisor.runs.logfiles.config_files import UNKNOWN
from advisor.runs.logfiles.configs import launches_of

Writer = Callable[..., Path]

VERL_ROWS = "".join(
    f"step:{n} - critic/score/mean:{0.1 + 0.01 * n} - actor/lr:1e-06 - response_length/mean:90.0\n"
    for n in range(1, 12)
)
TRL_ROWS = "".join(
    f"{{'loss': 0.01, 'grad_norm': 0.3, 'reward': {0.1 + 0.01 * n}, 'reward_std': 0.2, "
    f"'kl': 0.001, 'epoch': 0.{n:02}}}\n"
    for n in range(1, 12)
)
OPENRLHF_ROWS = "".join(
    f'{{"train/global_step": {n}, "train/reward": {0.1 + 0.01 * n}, "train/act_loss": 0.1, '
    f'"train/actor_lr": 1e-6, "train/glen": 80}}\n'
    for n in range(1, 12)
)

VERL = """#!/usr/bin/env bash
# Two machines are enough.   --learning_rate 9
set -x
export VLLM_ATTENTION_BACKEND=XFORMERS
MODEL=${MODEL:-Qwen/Qwen2.5-1.5B-Instruct}
N=8; LR=2e-6
BATCH=128
DATA="$HOME/data"

python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_files="$DATA/train.parquet" \\
    data.train_batch_size=$BATCH \\
    +data.seed=${SEED} \\
    actor_rollout_ref.model.path="$MODEL" \\
    actor_rollout_ref.actor.optim.lr=${LR} \\
    ++actor_rollout_ref.actor.ppo_mini_batch_size=32 \\
    actor_rollout_ref.actor.ppo_epochs=1 \\
    actor_rollout_ref.rollout.n="${N}" \\
    trainer.logger=['console','wandb'] \\
    trainer.total_training_steps=100 $@ 2>&1 | tee train.log
"""
TRL = """#!/bin/bash
#SBATCH --gres=gpu:4
LR="5e-6"
accelerate launch --config_file zero3.yaml --num_processes=4 train_grpo.py \\
  --model_name_or_path Qwen/Qwen2.5-0.5B-Instruct --learning-rate "$LR" \\
  --per_device_train_batch_size 8 --gradient_accumulation_steps 2 \\
  --num_generations 8 --num_iterations 1 --steps_per_generation=2 --beta 0.0 > log.txt 2>&1 &
"""
OPENRLHF = """
ARGS="--init_kl_coef 0.001 --actor_learning_rate 5e-7 --n_samples_per_prompt 8"
ray job submit --address http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray \\
  --pretrain Qwen/Qwen2.5-7B --rollout_batch_size 64 --train_batch_size 256 --max_epochs 1 $ARGS
"""


def only(folder: Path) -> PilotRun:
    (run,) = advisor.inspect(folder).runs
    return run


def known(run: PilotRun) -> dict[str, object]:
    names = ("group_size", "prompts_per_step", "minibatches_per_refresh", "epochs_per_refresh")
    return {name: getattr(run.hyperparameters, name) for name in names}


@pytest.mark.parametrize("place", ["", "logs/", "out/logs/"])
def test_verl(write: Writer, tmp_path: Path, place: str) -> None:
    write(f"{place}train.log", VERL_ROWS)
    assert only(tmp_path).needs
    write("run_grpo.sh", VERL)
    run = only(tmp_path)
    assert not run.needs
    assert run.hyperparameters.learning_rate == 1e-6  # the log's rows come first
    assert known(run) == {
        "group_size": 8,
        "prompts_per_step": 32,
        "minibatches_per_refresh": 4,
        "epochs_per_refresh": 1,
    }
    assert run.model == "Qwen/Qwen2.5-1.5B-Instruct"
    assert run.parameters == 1.5e9
    assert "seed" not in run.derivations  # only the shell knew it
    assert run.derivations["group_size"].endswith("[run_grpo.sh, line 10]")


def test_trl(write: Writer, tmp_path: Path) -> None:
    write("train.log", TRL_ROWS)
    write("job.slurm", TRL)
    run = only(tmp_path)
    assert not run.needs
    assert run.hyperparameters.learning_rate == 5e-6
    assert known(run)["prompts_per_step"] == 8 * 2 * 4 / 8
    assert run.derivations["learning_rate"].endswith("[job.slurm, line 4]")
    # On how many devices is not known, so one is not assumed.
    write("job.slurm", TRL.replace("--num_processes=4", ""))
    assert list(only(tmp_path).needs) == ["prompts_per_step"]
    write("job.slurm", "trl grpo --num_generations 4 --learning_rate=3e-6\n")
    run = only(tmp_path)
    assert run.hyperparameters.learning_rate == 3e-6
    assert run.hyperparameters.group_size == 4


def test_a_command_changes_the_config_that_it_names(write: Writer, tmp_path: Path) -> None:
    write("train.log", TRL_ROWS)
    write("config.yaml", "learning_rate: 1e-5\nnum_generations: 4\n")
    write("run.sh", "trl grpo --config recipes/config.yaml --num_generations 8")
    run = only(tmp_path)
    assert (run.hyperparameters.learning_rate, run.hyperparameters.group_size) == (1e-5, 8)
    write("run.sh", "trl grpo --num_generations 8")
    assert only(tmp_path).hyperparameters.group_size == 4


def test_openrlhf(write: Writer, tmp_path: Path) -> None:
    write("metrics.jsonl", OPENRLHF_ROWS)
    write("train_ppo.sh", OPENRLHF)
    run = only(tmp_path)
    assert not run.needs
    assert known(run)["group_size"] == 8
    assert known(run)["prompts_per_step"] == 32
    assert run.parameters == 7e9


def commands(write: Writer, text: str, name: str = "run.sh") -> list[dict[str, object]]:
    found = launches_of(on_disk(write(name, text)))
    return [{k: v for k, v in one.settings.items() if v != UNKNOWN} for one in found]


def test_the_shell(write: Writer) -> None:
    start = "python train_grpo.py"
    cases = {
        f"{start} --lr $1 --num_generations 8": {"num_generations": 8},
        f"LR=${{1:-1e-6}}\n{start} --lr $LR --n 8": {"n": 8},
        f"LR=1e-6\nif [ -n $x ]; then LR=2e-6; fi\n{start} --lr $LR --n 8": {"n": 8},
        f"LR=1e-6\nwhile [[ $# -gt 0 ]]; do\n case $1 in\n --lr) LR=$2; shift;;\n esac\ndone\n"
        f"{start} --lr $LR --n 8": {"n": 8},
        f"if true; then\n {start} --lr 1e-6\nfi": {"lr": 1e-6},
        f"{start} --lr=1e-6 # --lr 2e-6": {"lr": 1e-6},
        f'A=(\n  --lr 1e-6 # why\n  --n 8\n)\n{start} "${{A[@]}}" "$@"': {"lr": 1e-6, "n": 8},
        f'A="--lr 1e-6 --n 8"\n{start} $A': {"lr": 1e-6, "n": 8},
        f"LR=1e-6\nLR=2e-6\n{start} --lr $LR --n 8": {"n": 8},
        f"for LR in 1e-6 2e-6; do\n {start} --lr $LR --n 8\ndone": {"n": 8},
        f"M='a b'; {start} --model \"$M\" --n '$M' 2>&1 | tee x.log": {"model": "a b", "n": "$M"},
        f"X=1 Y=2 {start} --lr 1e-6 --n $(( 4*4 )) --seed $(date +%s)": {"lr": 1e-6},
        f'srun bash -c "cd x && {start} --lr 1e-6"': {"lr": 1e-6},
        "torchrun --nnodes 2 --nproc-per-node=4 x.py --num_generations 8": {
            "nnodes": 2,
            "nproc_per_node": 4,
            "num_generations": 8,
            "num_processes": 8,
        },
    }
    for text, settings in cases.items():
        assert commands(write, text) == [settings], text
    for text in (
        "python eval_grpo.py --num_generations 8",
        "python sft.py --lr 1e-5",
        "echo python train_grpo.py",
        "trl dpo --lr 1",
        'echo "a',
    ):
        assert commands(write, text) == [], text


def test_no_default_takes_the_place_of_what_only_the_shell_knew(
    write: Writer, tmp_path: Path
) -> None:
    write("train.log", VERL_ROWS)
    for value in ("$1", "$BATCH", "$((32 * 4))", "${B[0]}", "`nproc`"):
        write("run.sh", VERL.replace("BATCH=128", "").replace("=$BATCH", f"={value}"))
        run = only(tmp_path)
        assert run.hyperparameters.minibatches_per_refresh is None, value
        assert run.hyperparameters.group_size == 8
    write("run.sh", VERL.replace("    data.train_batch_size=$BATCH \\\n", ""))
    assert only(tmp_path).hyperparameters.minibatches_per_refresh == 1024 / 32  # verl's default


def test_a_script_that_may_be_of_another_run_is_not_believed(write: Writer, tmp_path: Path) -> None:
    write("a.log", TRL_ROWS)
    write("run_a.sh", "trl grpo --num_generations 4")
    write("run_b.sh", "trl grpo --num_generations 8")
    assert only(tmp_path).hyperparameters.group_size == 4  # by its name
    (tmp_path / "run_a.sh").rename(tmp_path / "run_c.sh")
    run = only(tmp_path)
    assert run.hyperparameters.group_size is None
    assert any("run_b.sh is read for none of 1 logs" in line for line in run.warnings)
    (tmp_path / "run_b.sh").unlink()
    assert only(tmp_path).hyperparameters.group_size == 4
    write("b.log", TRL_ROWS.replace("0.01", "0.02"))
    for run in advisor.inspect(tmp_path).runs:
        assert run.hyperparameters.group_size is None
        assert any("run_c.sh is read for none of 2 logs" in line for line in run.warnings)
    write("run_c.sh", "trl grpo --num_generations 4 > b.log")
    found = {run.id: run.hyperparameters.group_size for run in advisor.inspect(tmp_path).runs}
    assert found == {"a": None, "b": 4}


@pytest.mark.parametrize(
    "line",
    [
        "+ python3 -m trl.scripts.grpo {}",
        "++ CUDA_VISIBLE_DEVICES=0 accelerate launch train_grpo.py {}",
        "CMD: /usr/bin/python -u train_grpo.py {}",
        "Running: accelerate launch --num_processes 1 train.py {}",
        "[launch] trl grpo {}",
        "2025-01-01 10:00:00 INFO Command: torchrun train_grpo.py \\\n   {}",
    ],
)
def test_a_command_that_the_log_prints(write: Writer, tmp_path: Path, line: str) -> None:
    log = line.format("--learning_rate 3e-6 --num_generations=8") + "\n" + TRL_ROWS
    write("train.log", "first\n" + log)
    run = only(tmp_path)
    assert run.hyperparameters.learning_rate == 3e-6
    assert run.hyperparameters.group_size == 8
    assert run.derivations["learning_rate"].endswith("[train.log, line 2]")
    other = line.format("--learning_rate 5e-6 --num_generations=8") + "\n"
    write("train.log", other + log)
    assert not only(tmp_path).derivations["learning_rate"].endswith("line 1]")
