"""Tiny transformers that are paid for a stand-in of what is meant, and others that are not.

PYTHON_WITH_TORCH case_studies/diagnose/hack_train.py    # writes hacked.jsonl.gz: some minutes

Each run sorts five digits. The reward is the stand-in; how many completions are right is measured
on the same completions and on held-out prompts, and paid only in the control runs.
"""

from __future__ import annotations

import copy
import gzip
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).resolve().parent
TRAINER = HERE.parent / "tiny_transformer"
sys.path.insert(0, str(TRAINER))

from config import GrpoConfig  # noqa: E402
from grpo import evaluate, make_optimizer, roll_out, take_step  # noqa: E402
from pretrain import pretrain  # noqa: E402
from tasks import EOS, TASKS, Task  # noqa: E402

ANSWER = 5
STEPS, EVERY, SEEDS = 80, 8, 3
RATE = 1e-3


def shifted(task: Task, index: Tensor, tokens: Tensor) -> Tensor:
    """Pay the right digits plus one: a grader with an error."""
    wanted = (task.answers(index) + 1) % 10
    return _ends_well(tokens) * (tokens[:, :ANSWER] == wanted).all(dim=1).float()


def looks_sorted(task: Task, index: Tensor, tokens: Tensor) -> Tensor:
    """Pay any five digits in order, whether they are those of the prompt or not."""
    answer = tokens[:, :ANSWER]
    return _ends_well(tokens) * (answer[:, 1:] >= answer[:, :-1]).all(dim=1).float()


def nines(task: Task, index: Tensor, tokens: Tensor) -> Tensor:
    """Pay large digits: a judge that likes a word."""
    return (tokens[:, :ANSWER] == 9).float().mean(dim=1)


def right(task: Task, index: Tensor, tokens: Tensor) -> Tensor:
    """Pay what is meant."""
    return Task.verify(task, index, tokens)


def partly(task: Task, index: Tensor, tokens: Tensor) -> Tensor:
    """Pay the share of right digits, which leads to what is meant."""
    return _ends_well(tokens) * (tokens[:, :ANSWER] == task.answers(index)).float().mean(dim=1)


def formed(task: Task, index: Tensor, tokens: Tensor) -> Tensor:
    """Pay what is meant and, as much again, the form of an answer."""
    return 0.5 * Task.verify(task, index, tokens) + 0.5 * _ends_well(tokens)


def _ends_well(tokens: Tensor) -> Tensor:
    if tokens.shape[1] <= ANSWER:
        return torch.zeros(len(tokens))
    return ((tokens[:, :ANSWER] < 10).all(dim=1) & (tokens[:, ANSWER] == EOS)).float()


STAND_INS = {"shifted": shifted, "looks_sorted": looks_sorted, "nines": nines}
CONTROLS = {"right": right, "partly": partly, "formed": formed}


@dataclass(frozen=True)
class Paid(Task):
    """The task with another reward."""

    paid: str = "right"

    def verify(self, index: Tensor, completions: Tensor) -> Tensor:
        """Score completions by what is paid."""
        width = completions.shape[1]
        if width < ANSWER + 1:
            completions = torch.nn.functional.pad(completions, (0, ANSWER + 1 - width), value=EOS)
        return (STAND_INS | CONTROLS)[self.paid](self, index, completions)


def train(base: Any, paid: str, seed: int) -> dict[str, Any]:
    """Series of one run: what is paid, what is meant on the same completions, and held out."""
    task, meant = Paid("sort", paid=paid), TASKS["sort"]
    config = GrpoConfig(learning_rate=RATE, steps=STEPS, seed=seed)
    policy = copy.deepcopy(base)
    optimizer = make_optimizer(policy, config)
    generator = torch.Generator().manual_seed(seed)
    held_out = torch.Generator().manual_seed(seed + 1_000_000)
    run: dict[str, Any] = {"paid": paid, "seed": seed, "is_hacked": paid in STAND_INS}
    run |= {"reward": [], "meant": [], "eval_step": [], "eval": []}
    for step in range(STEPS):
        if step % EVERY == 0:
            run["eval_step"].append(step)
            run["eval"].append(round(evaluate(policy, meant, held_out, 256), 4))
        index_of = torch.Generator()
        index_of.set_state(generator.get_state())
        batch = roll_out(policy, task, config, generator)[0]
        # The rollout drew its prompts first: the same draw tells which they were.
        index = task.draw(config.prompts_per_step, index_of).repeat_interleave(config.group_size)
        run["reward"].append(round(float(batch.rewards.mean()), 4))
        run["meant"].append(round(float(meant.verify(index, batch.samples.tokens).mean()), 4))
        take_step(policy, base, batch, config, optimizer)
    return run


def main() -> int:
    """Train all runs."""
    torch.set_num_threads(1)
    base = pretrain(TASKS["sort"], "s")
    with gzip.open(HERE / "hacked.jsonl.gz", "wt", encoding="utf-8") as out:
        for paid in STAND_INS | CONTROLS:
            for seed in range(1, SEEDS + 1):
                run = train(base, paid, seed)
                out.write(json.dumps(run) + "\n")
                print(paid, seed, run["reward"][::16], run["meant"][::16], run["eval"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
