"""What is piloted, what is asked, and what is trained to judge the answer."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import training as loop
from pretrain import pretrain
from tasks import Task
from torch import Tensor
from transformer import Transformer

Job = tuple[str, str, loop.Place, int, int]
"""Task, size, configuration, seed, steps."""

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

    def pilot_jobs(self, task: str, sizes: tuple[str, ...], draw: int) -> list[Job]:
        """Pilots at random, shared out among the sizes."""
        places = random.Random(f"{task} {draw}").sample(loop.PILOT_GRID, self.pilots)
        return [
            (task, sizes[at % len(sizes)], place, 100 + draw, self.cut)
            for at, place in enumerate(places)
        ]

    def full_jobs(self) -> list[Job]:
        """One full run per rate of every size; the piloted sizes show what moves with size."""
        return [
            (task, size, (rate, self.group, 1), 0, self.steps)
            for size in self.sizes
            for task in self.tasks
            for rate in self.rates
        ]

    def repeated(self, runs: Sequence[loop.Trained]) -> list[Job]:
        """Other seeds of a target's best rates: between the others no second seed can decide."""
        done = sorted(zip(self.full_jobs(), runs, strict=True), key=lambda both: -both[1].final)
        ranked = [job for job, _ in done]
        return [
            (task, size, place, seed, self.steps)
            for seed in range(1, self.seeds)
            for own_size in self.targets
            for own_task in self.tasks
            for task, size, place, *_ in [job for job in ranked if job[:2] == (own_task, own_size)][
                :REPEATED
            ]
        ]


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
