"""Rows of finished runs, one JSON object each: tables, and what other studies train."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import torch
from config import GrpoConfig
from engine_flags import results
from grpo import Rollouts, steps_of
from pretrain import CACHE, pretrain
from records import Run
from tasks import MAX_COMPLETION_LENGTH, TASKS, Task, _shuffled
from torch import Tensor
from transformer import Transformer, completion_statistics, sample

from advisor.common import EngineSettings, Item, digest_of, usable_jobs

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
    """Train the runs of a table, or go on where it was broken off, and write its file."""
    rows = trained_rows(TABLES[name], {"jobs": usable_jobs(), "keep": CACHE})
    text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    (FOLDER / f"{name}.jsonl").write_text(text, encoding="utf-8")


def trained_rows(runs: Sequence[Run], where: EngineSettings) -> list[dict[str, object]]:
    """Train runs from the bases that are kept; those of which a row is kept are not repeated."""
    items = [Item(f"{run.task} {run.name}", run, (digest_of(asdict(run)),)) for run in runs]
    return results(_trained, items, "Training", where)


def _trained(run: Run) -> dict[str, object]:
    torch.set_num_threads(1)
    return train_row(run, pretrain(TASKS[run.task], run.size))


def train_row(run: Run, base: Transformer) -> dict[str, object]:
    """Train one run from a copy of a base and lay it out as a row.

    Settings, accuracies of base and last policy, seconds of the processor, and a list per logged
    series with one entry per optimizer step, rounded to five decimals. The entropy is that of the
    whole rollout batch when it was sampled.
    """
    started = time.process_time()
    task, config, policy = TASKS[run.task], run.config, copy.deepcopy(base)
    series: dict[str, list[float | None]] = {}
    for step in steps_of(policy, task, config):
        if step.fresh:
            entropy = entropy_at_generation(step.sampler, step.fresh)
        for name in ("reward", "reward_std", "frac_reward_zero_std"):
            series.setdefault(name, []).append(_rounded(step.logged[name]))
        for name, value in (
            ("entropy", entropy),
            ("grad_norm", step.gradient_norm),
            ("clip_ratio", step.logged["clip_ratio/region_mean"]),
        ):
            series.setdefault(name, []).append(_rounded(value))
    return {
        **_head(run),
        "base_acc": accuracy(base, task, BASE_EVALUATION_SEED),
        # The same offset as in grpo.train: training and evaluation share no random numbers.
        "final_eval": accuracy(policy, task, BASE_EVALUATION_SEED + config.seed),
        "seconds": round(time.process_time() - started, 2),
        **series,
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
