"""Rows of finished runs, one JSON object each: tables, and what other studies train."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import torch
from config import GrpoConfig
from engine_flags import results
from grpo import Rollouts, make_optimizer, reward_row, roll_out, take_step
from pretrain import pretrain
from records import Run
from tasks import MAX_COMPLETION_LENGTH, TASKS, Task, _shuffled
from torch import Tensor
from transformer import Transformer, completion_statistics, sample

from advisor.common import EngineSettings, Item, digest_of

FOLDER = Path(__file__).resolve().parent / "tables"
STEPS = 200
EVALUATION_PROMPTS = 2048
BASE_EVALUATION_SEED = 1_000_000

Point = tuple[str, str, float, int, int]
"""Task, model size, learning rate, group size, refresh interval."""


def draw(task: str, size: str, rates: tuple[float, ...], count: int) -> list[Point]:
    """Draw configurations without replacement from the grid of rates, group sizes and refreshes."""
    grid = itertools.product((task,), (size,), rates, (4, 8, 16, 32), (1, 2, 4, 8, 16))
    return random.Random(f"{task} {size}").sample(list(grid), count)


def plan(points: list[Point]) -> list[Run]:
    """Make runs whose refresh interval is their number of minibatches; seeds count from 1.

    A row does not hold its seed: the place in the plan gives it.
    """
    return [
        Run(task, size, GrpoConfig(rate, group, 16, refresh, 1, steps=STEPS, seed=seed))
        for seed, (task, size, rate, group, refresh) in enumerate(points, start=1)
    ]


TABLES = {
    # The rates where, in exploratory runs with seed 0, many died between steps 40 and 200.
    "late_collapse": plan(
        [
            *draw("sort", "s", (1e-3, 1.4e-3, 2e-3, 2.8e-3), 20),
            *draw("sort", "m", (7e-4, 1e-3, 1.4e-3, 2e-3), 20),
            *draw("mod", "s", (1.4e-3, 2e-3, 2.8e-3), 8),
        ]
    ),
    "mod_m": plan(draw("mod", "m", (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2), 40)),
}


def write_table(name: str) -> None:
    """Append the runs that a table's file does not hold yet, each as soon as it is done.

    Parameters
    ----------
    name : str
        Key of `TABLES`, and stem of the file.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    path, runs, started = FOLDER / f"{name}.jsonl", TABLES[name], time.perf_counter()
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    finished = {_configuration(json.loads(line)) for line in lines}
    for position, run in enumerate(runs, start=1):
        if _configuration(_head(run)) in finished:
            continue
        row = train_row(run, pretrain(TASKS[run.task], run.size))
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
        print(
            f"{name} {position}/{len(runs)} {run.name}: base {row['base_acc']:.2f}, "
            f"final {row['final_eval']:.2f} ({time.perf_counter() - started:.0f} s)",
            file=sys.stderr,
            flush=True,
        )


def trained_rows(runs: Sequence[Run], where: EngineSettings) -> list[dict[str, object]]:
    """Train runs from the bases that are kept; those of which a row is kept are not repeated."""
    items = [Item(f"{run.task} {run.name}", run, (digest_of(asdict(run)),)) for run in runs]
    return results(_trained, items, "Training", where)


def _trained(run: Run) -> dict[str, object]:
    torch.set_num_threads(1)
    return train_row(run, pretrain(TASKS[run.task], run.size))


def train_row(run: Run, base: Transformer) -> dict[str, object]:
    """Train one run and lay it out as a row.

    The same steps as `grpo.train` for one pass and a constant rate, so the rewards are the same
    numbers; here the entropy is that of the whole rollout batch when it was sampled, and the only
    evaluations are those of the base and of the last policy.

    Parameters
    ----------
    run : Run
        Task, size and hyperparameters.
    base : Transformer
        Start of the policy.

    Returns
    -------
    dict
        Settings, accuracies of base and last policy, seconds of the processor, and a list per
        logged series with one entry per optimizer step, rounded to five decimals.
    """
    started = time.process_time()
    task, config = TASKS[run.task], run.config
    policy, behaviour = copy.deepcopy(base), copy.deepcopy(base)
    optimizer = make_optimizer(policy, config)
    generator = torch.Generator().manual_seed(config.seed)
    snapshots: deque[dict[str, Tensor]] = deque(maxlen=config.lag + 1)
    steps: list[dict[str, float]] = []
    for step in range(config.steps):
        snapshots.append({name: value.clone() for name, value in policy.state_dict().items()})
        within = step % config.minibatches_per_refresh
        if within == 0:
            behaviour.load_state_dict(snapshots[0])
            rollout_batch = roll_out(behaviour, task, config, generator)
            entropy = entropy_at_generation(behaviour, rollout_batch)
        batch = rollout_batch[within]
        _, norm, update = take_step(policy, batch, config, optimizer)
        rewards = reward_row(batch)
        steps.append(
            {
                "reward": rewards["reward"],
                "reward_std": rewards["reward_std"],
                "frac_reward_zero_std": rewards["frac_reward_zero_std"],
                "entropy": entropy,
                "grad_norm": norm,
                "clip_ratio": update["clip_ratio/region_mean"],
            }
        )
    return {
        **_head(run),
        "base_acc": accuracy(base, task, BASE_EVALUATION_SEED),
        # The same offset as in grpo.train: training and evaluation share no random numbers.
        "final_eval": accuracy(policy, task, BASE_EVALUATION_SEED + config.seed),
        "seconds": round(time.process_time() - started, 2),
        **{name: [_rounded(row[name]) for row in steps] for name in steps[0]},
    }


def _rounded(value: float) -> float | None:
    """A diverged run has no finite gradient, and JSON has no name for that."""
    return round(value, 5) if math.isfinite(value) else None


@torch.no_grad()
def entropy_at_generation(policy: Transformer, rollout_batch: list[Rollouts]) -> float:
    """Mean entropy (nats per token) of the sampling policy over its own rollout batch."""
    total = tokens = 0.0
    for part in rollout_batch:
        _, entropy = completion_statistics(policy, part.prompts, part.samples.tokens)
        total += float((entropy * part.samples.mask).sum())
        tokens += float(part.samples.mask.sum())
    return total / tokens


def accuracy(policy: Transformer, task: Task, seed: int) -> float:
    """Accuracy at temperature 1 on 2,048 distinct held-out prompts, or on all if they are fewer."""
    generator = torch.Generator().manual_seed(seed)
    index: Tensor = _shuffled(task.number_of_prompts)[: task.number_held_out]
    index = index[torch.randperm(len(index), generator=generator)[:EVALUATION_PROMPTS]]
    samples = sample(policy, task.prompts(index), MAX_COMPLETION_LENGTH, generator)
    return float(task.verify(index, samples.tokens).mean())


def _head(run: Run) -> dict[str, object]:
    """Return the settings of a run under the names of the shared tables."""
    config = run.config
    return {
        "task": run.task,
        "size": run.size,
        "params": sum(parameter.numel() for parameter in Transformer(run.size).parameters()),
        "lr": config.learning_rate,
        "G": config.group_size,
        "K": config.minibatches_per_refresh,
        "prompts": config.prompts_per_step,
        "beta1": config.momentum,
        "use_is": config.importance_ratio,
    }


def _configuration(row: dict[str, object]) -> tuple[object, ...]:
    """Return what tells a row of a table from the others."""
    return tuple(row[name] for name in ("task", "size", "lr", "G", "K"))
