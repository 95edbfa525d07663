"""Runs of a problem that no table holds, trained when they are asked for, and what they cost."""

from __future__ import annotations

import json
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "worlds"))

import numpy as np  # noqa: E402
import plan as worlds  # noqa: E402
import torch  # noqa: E402
from base import make_base  # noqa: E402
from batched import evaluate  # noqa: E402
from train import head, logged, scorer, train_runs  # noqa: E402

from advisor.runs import Settings  # noqa: E402

AVERAGED = 10
"""Last steps whose train reward stands for a run."""


class Trained(NamedTuple):
    """A run from its first step to its last.

    Attributes
    ----------
    row : dict
        As the tables of worlds have it, with a list per logged quantity.
    seconds : float
        Of a processor, for all of its steps.
    """

    row: dict[str, Any]
    seconds: float

    @property
    def steps(self) -> int:
        """Optimizer steps."""
        return len(self.row["reward"])

    def reward(self, steps: int | None = None) -> float:
        """Mean train reward of the last steps."""
        return float(np.mean(self.row["reward"][:steps][-AVERAGED:]))

    def price(self, steps: int) -> float:
        """Seconds of its first steps."""
        return self.seconds * steps / self.steps


class Problem:
    """One problem and size, with its supervised base."""

    def __init__(self, name: str) -> None:
        torch.set_num_threads(1)
        self.world = worlds.BY_NAME[name]
        self.problem, self.shape, self.base = make_base(self.world)

    @property
    def parameters(self) -> int:
        """Of the model."""
        return sum(self.shape.sizes)

    def train(self, settings: Settings, steps: int, seed: int) -> Trained:
        """Train a configuration; its schedule is constant, so a run holds all shorter ones."""
        run = worlds.Run(
            settings.learning_rate,
            settings.group_size,
            settings.refresh_interval,
            self.world.prompts,
            zlib.crc32(f"{settings.learning_rate:.6g} {settings.group_size} {seed}".encode()),
        )
        world = replace(self.world, steps=steps)
        started = time.process_time()
        policy, series = train_runs(world, self.problem, self.shape, self.base, [run])
        seconds = time.process_time() - started
        score, count = scorer(world, self.problem), self.problem.held_out
        generator = torch.Generator().manual_seed(seed)
        ends, _ = evaluate(
            self.shape, policy, self.problem.prompts, score, self.problem.longest, count, generator
        )
        row = head(world, run, self.parameters) | {"final_eval": round(ends[0], 5)}
        return Trained(row | logged(world, run, series, 0), seconds)


def write_log(trained: Trained, steps: int, folder: Path) -> None:
    """Leave the first steps of a run in a folder, as a trainer would."""
    folder.mkdir(parents=True, exist_ok=True)
    row = {
        name: value[:steps] if isinstance(value, list) else value
        for name, value in trained.row.items()
        if name != "final_eval"
    }
    (folder / "log.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
