"""A run that is to be made, and how finished runs reach the advisor."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config import GrpoConfig

from advisor.runs import PilotRun, read_runs

CACHE = Path(__file__).resolve().parent / ".cache"
PROMPTS, MOMENTUM = 16, 0.9
UNCLIPPED = {"clip_low": 1.0, "clip_high": 1e9}  # no ratio is negative, none as large as this


@dataclass(frozen=True)
class Job:
    """A run that is to be made.

    Attributes
    ----------
    rate : float
        Learning rate as the optimizer is given it.
    group, interval, lag : int
        Completions per prompt, optimizer steps per refresh, age at a refresh.
    ratio : bool
        Whether an importance ratio corrects for the age.
    seed, steps : int
    optimizer : {"adamw", "sgd"}
    task, size : str
    clipped : bool
        Whether the ratio is, to 1 +- 0.2.
    """

    rate: float
    group: int
    interval: int
    ratio: bool
    seed: int
    steps: int
    lag: int = 0
    optimizer: str = "adamw"
    task: str = "sort"
    size: str = "s"
    clipped: bool = True

    @property
    def config(self) -> GrpoConfig:
        """Settings of the trainer."""
        return GrpoConfig(
            self.rate,
            self.group,
            PROMPTS,
            self.interval,
            lag=self.lag,
            momentum=MOMENTUM,
            optimizer=self.optimizer,
            importance_ratio=self.ratio,
            **({} if self.clipped else UNCLIPPED),
            steps=self.steps,
            seed=self.seed,
        )

    @property
    def path(self) -> Path:
        """Where the run is kept: what is as in the first runs of this study goes unnamed."""
        named = [
            f"{self.rate:g}_{self.group}_{self.interval}_{self.ratio:d}_{self.seed}_{self.steps}",
            *([f"lag{self.lag}"] if self.lag else []),
            *([self.optimizer] if self.optimizer != "adamw" else []),
            *([] if self.clipped else ["unclipped"]),
            *([f"{self.task}-{self.size}"] if (self.task, self.size) != ("sort", "s") else []),
        ]
        return CACHE / f"{'_'.join(named)}.json"


def effective_rate(job: Job) -> float:
    """Rate per unit of gradient once momentum has built up: what the theory calls eta.

    AdamW averages gradients, torch's SGD sums them, so the latter moves 1 / (1 - momentum) times
    as far (docs/theory, T2).
    """
    return job.rate / (1 - MOMENTUM) if job.optimizer == "sgd" else job.rate


def as_runs(jobs: list[Job], rows: list[dict[str, Any]]) -> list[PilotRun]:
    """Read rows of one optimizer as anybody's logs are read, with the rate that is effective.

    Such a table says nothing of lag or optimizer: the former is added to the row, the latter told
    to the reader, as a user would by a flag.
    """
    (optimizer,) = {job.optimizer for job in jobs}
    told = [
        row | {"lr": effective_rate(job), "lag": job.lag}
        for job, row in zip(jobs, rows, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in told), encoding="utf-8")
        return read_runs([path], overrides={"optimizer": optimizer})
