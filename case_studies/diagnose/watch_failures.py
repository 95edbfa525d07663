"""Runs of the tiny trainer into which a failure is put half-way."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRAINER = Path(__file__).resolve().parents[1] / "tiny_transformer"
sys.path.insert(0, str(TRAINER))

from config import GrpoConfig  # noqa: E402

CAUSE = 64
"""Optimizer step after which the cause acts: a multiple of all refresh intervals used."""

STEPS = 160


@dataclass(frozen=True)
class FailingConfig(GrpoConfig):
    """Settings that change after ``CAUSE`` steps, as a hand or a broken weight sync changes them.

    Attributes
    ----------
    rate_factor : float
        By which the learning rate jumps.
    stale_interval : int
        Refresh interval from then on, without importance ratio; 0 leaves it.
    """

    rate_factor: float = 1.0
    stale_interval: int = 0

    def learning_rate_at(self, step: int) -> float:
        """Learning rate of the update that follows ``step`` finished ones."""
        # The trainer asks once per step, last of all: what changes acts from the next step on.
        if self.stale_interval and step + 1 == CAUSE:
            object.__setattr__(self, "minibatches_per_refresh", self.stale_interval)
            object.__setattr__(self, "importance_ratio", False)
        return super().learning_rate_at(step) * (self.rate_factor if step >= CAUSE else 1.0)


BASE: dict[str, Any] = {
    "learning_rate": 3e-4,
    "group_size": 8,
    "prompts_per_step": 16,
    "minibatches_per_refresh": 2,
    "steps": STEPS,
}

HOT: dict[str, Any] = {**BASE, "learning_rate": 1e-3}

FAILURES: dict[str, dict[str, Any]] = {
    "healthy": BASE,
    "healthy at 1e-3": HOT,
    "rate x 10": {**BASE, "rate_factor": 10.0},
    "rate x 30": {**BASE, "rate_factor": 30.0},
    "stale, K = 16, uncorrected": {**HOT, "stale_interval": 16},
}


def config_of(failure: str, seed: int) -> FailingConfig:
    """Settings of one run."""
    return FailingConfig(**FAILURES[failure], seed=seed)


def train_one(job: tuple[str, int]) -> tuple[str, int, str]:
    """Train one run; its log in the shape of TRL's trainer_state.json."""
    import torch
    from grpo import train
    from pretrain import pretrain
    from records import trainer_state
    from tasks import TASKS

    torch.set_num_threads(1)
    failure, seed = job
    config = config_of(failure, seed)
    rows = train(pretrain(TASKS["sort"], "s"), TASKS["sort"], config)
    # What was planned is what a log would say; the change is not in it.
    return failure, seed, trainer_state(rows, dataclasses.replace(config, stale_interval=0))
