"""What is piloted, what is asked, and what is trained to judge the answer."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from config import GrpoConfig
from pretrain import pretrain
from records import Run
from tasks import Task
from torch import Tensor
from transformer import Transformer

Place = tuple[float, int, int]
"""Learning rate, group size, mini-batches per refresh."""

PILOT_GRID: list[Place] = list(
    itertools.product((3e-5, 1e-4, 3e-4, 1e-3, 3e-3), (4, 8, 16, 32), (1, 2, 4, 8, 16))
)
PROMPTS = 16

REPEATED = 3
"""Learning rates of a target that get all the seeds."""


@dataclass(frozen=True)
class Plan:
    """Tasks, sizes and settings of one study."""

    tasks: tuple[str, ...] = ("sort", "reverse", "running")
    pilot_sets: tuple[tuple[str, ...], ...] = (("s",), ("xs", "s"), ("s", "m"))
    targets: tuple[str, ...] = ("ml", "xl")
    rates: tuple[float, ...] = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
    group: int = 8
    cut: int = 40
    steps: int = 80  # within three times a pilot: the extrapolation asked for is in size
    pilots: int = 8
    draws: int = 3
    seeds: int = 2

    @property
    def sizes(self) -> tuple[str, ...]:
        """Every size, piloted ones first."""
        return (*dict.fromkeys(size for sizes in self.pilot_sets for size in sizes), *self.targets)

    def pilots_of(self, task: str, sizes: tuple[str, ...], draw: int) -> list[Run]:
        """Pilots at random, shared out among the sizes."""
        places = random.Random(f"{task} {draw}").sample(PILOT_GRID, self.pilots)
        return [
            run_of(task, sizes[at % len(sizes)], place, 100 + draw, self.cut)
            for at, place in enumerate(places)
        ]

    def full_runs(self) -> list[Run]:
        """One full run per rate of every size; the piloted sizes show what moves with size."""
        return [
            run_of(task, size, (rate, self.group, 1), 0, self.steps)
            for size in self.sizes
            for task in self.tasks
            for rate in self.rates
        ]

    def repeated(self, rows: Sequence[dict[str, Any]]) -> list[Run]:
        """Other seeds of a target's best rates: between the others no second seed can decide."""
        ranked = sorted(rows, key=lambda row: -row["final_eval"])
        return [
            run_of(task, size, (row["lr"], self.group, 1), seed, self.steps)
            for seed in range(1, self.seeds)
            for size in self.targets
            for task in self.tasks
            for row in [r for r in ranked if (r["task"], r["size"]) == (task, size)][:REPEATED]
        ]


def run_of(task: str, size: str, place: Place, seed: int, steps: int) -> Run:
    """A run of the trainer."""
    rate, group, refresh = place
    return Run(task, size, GrpoConfig(rate, group, PROMPTS, refresh, 1, steps=steps, seed=seed))


QUICK = Plan(("sort",), (("xs", "s"),), ("m",), (1e-4, 1e-3), 4, 24, 32, 6, 1, 1)
QUICK_STEPS = {"xs": 220, "s": 160, "m": 100}


class Shown(Task):
    """A task whose demonstrations are all right, so that a base is soon worth training."""

    def right_probability(self, index: Tensor) -> Tensor:
        """One."""
        return torch.ones(len(index))


@functools.cache
def quick_base(task: Task, size: str) -> Transformer:
    """Base after a few steps, kept in memory alone."""
    return pretrain(Shown(task.name), size, steps=QUICK_STEPS[size])


def parameters(size: str) -> float:
    """Number of parameters."""
    return float(sum(weights.numel() for weights in Transformer(size).parameters()))
