"""Train the runs of a world and write them as rows: `train.py --world NAME --out DIR`."""

from __future__ import annotations

import argparse
import json
import math
import time
import zlib
from collections import defaultdict
from pathlib import Path

import torch
from base import make_base
from batched import Architecture, Batch, Score, Series, evaluate
from batched import train as train_batch
from plan import BY_NAME, Run, World
from problems import Problem
from torch import Tensor

DIGITS = {"reward": 4, "reward_true": 4}
OTHER_DIGITS = 3
MOST_CELLS = 24_576
"""Completions per step times width that fit a processor's cache: larger batches are split."""


def schedule(world: World, run: Run) -> list[float]:
    """Learning rate of each update of a run."""
    rates = []
    for step in range(world.steps):
        if step < world.warmup_steps:
            rates.append(run.learning_rate * step / world.warmup_steps)
            continue
        progress = (step - world.warmup_steps) / (world.steps - world.warmup_steps)
        factor = {
            "constant": 1.0,
            "linear": 1.0 - progress,
            "cosine": 0.5 + 0.5 * math.cos(math.pi * progress),
        }[world.schedule]
        rates.append(run.learning_rate * factor)
    return rates


def scorer(world: World, problem: Problem) -> Score:
    """Rewards of a world, and right answers."""

    def score(
        index: Tensor, completions: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        paid = problem.reward(world.reward, index, completions, generator)
        return paid, problem.exact(index, completions)

    return score


def batches(runs: list[Run], width: int) -> list[list[Run]]:
    """Runs of equal group size and prompts, in parts of at most `MOST_CELLS`."""
    alike: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for run in runs:
        alike[run.group_size, run.prompts].append(run)
    parts = []
    for (group, prompts), members in sorted(alike.items()):
        most = max(1, MOST_CELLS // (group * prompts * width))
        parts += [members[i : i + most] for i in range(0, len(members), most)]
    return parts


def train_runs(
    world: World,
    problem: Problem,
    shape: Architecture,
    base: Tensor,
    members: list[Run],
) -> tuple[Tensor, Series]:
    """Train one batch of runs."""
    first = members[0]
    batch = Batch(
        torch.tensor([schedule(world, run) for run in members]),
        torch.tensor([run.refresh for run in members]),
        first.prompts,
        first.group_size,
        world.optimizer,
        world.momentum,
        world.kl_coefficient,
        world.scaling,
    )
    seed = zlib.crc32(f"{world.name} {first.seed}".encode())
    generator = torch.Generator().manual_seed(seed)
    return train_batch(shape, base, problem, scorer(world, problem), batch, generator)


def train_world(world: World) -> list[dict[str, object]]:
    """Train every run of a world and lay each out as a row, in the order of the plan."""
    problem, shape, base = make_base(world)
    score = scorer(world, problem)

    def test(policy: Tensor, seed: int) -> tuple[list[float], list[float]]:
        generator = torch.Generator().manual_seed(seed)
        return evaluate(shape, policy, problem, score, generator)

    base_reward, base_right = test(base, 0)
    rows: dict[int, dict[str, object]] = {}
    for members in batches(world.runs, shape.width):
        started = time.perf_counter()
        policy, series = train_runs(world, problem, shape, base, members)
        rewards, right = test(policy, members[0].seed)
        seconds = (time.perf_counter() - started) / len(members)
        for place, run in enumerate(members):
            row = {
                **head(world, run, sum(shape.sizes)),
                "base_acc": round(base_reward[0], 5),
                "final_eval": round(rewards[place], 5),
            }
            lists = logged(world, run, series, place)
            if world.reward != "exact":
                row |= {
                    "base_true": round(base_right[0], 5),
                    "final_true": round(right[place], 5),
                }
            rows[run.seed] = row | {"seconds": round(seconds, 2)} | lists
    return [rows[seed] for seed in sorted(rows)]


def head(world: World, run: Run, parameters: int) -> dict[str, object]:
    """Settings of a run; the names are those of the other tables, or the package's."""
    return {
        "world": world.name,
        "task": world.problem,
        "size": world.size,
        "params": parameters,
        "lr": run.learning_rate,
        "G": run.group_size,
        "K": run.refresh,
        "prompts": run.prompts,
        "beta1": world.momentum,
        "use_is": True,
        "optimizer": world.optimizer,
        "schedule": world.schedule,
        "warmup_steps": world.warmup_steps,
        "kl_coefficient": world.kl_coefficient,
        "advantage_scaling": world.scaling,
        "reward_kind": world.reward,
        "seed": run.seed,
    }


def logged(world: World, run: Run, series: Series, place: int) -> dict[str, list[float | None]]:
    """What a run of a batch logged, a number per step, as rows have it."""
    lists = {name: [step[place] for step in steps] for name, steps in series.items()}
    lists["entropy"] = averaged(lists["entropy"], run.refresh)
    if world.reward == "exact":
        del lists["reward_true"]
    return {
        name: [rounded(value, DIGITS.get(name, OTHER_DIGITS)) for value in values]
        for name, values in lists.items()
    }


def averaged(values: list[float], refresh: int) -> list[float]:
    """Mean over each rollout batch, at each of its steps."""
    result: list[float] = []
    for start in range(0, len(values), refresh):
        part = values[start : start + refresh]
        result += [sum(part) / len(part)] * len(part)
    return result


def rounded(value: float, digits: int) -> float | None:
    """Round to significant digits; nothing where a dead run gives no number."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def main() -> None:
    """Train one world from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", required=True, choices=BY_NAME, metavar="NAME")
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    rows = train_world(BY_NAME[arguments.world])
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{arguments.world}.jsonl"
    text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    path.with_suffix(".part").write_text(text, encoding="utf-8")
    path.with_suffix(".part").replace(path)
    print(f"{arguments.world}: {len(rows)} runs", flush=True)


if __name__ == "__main__":
    main()
