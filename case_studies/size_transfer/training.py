"""Runs of the study: trained or taken from the cache, read as anybody's logs, fitted."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tiny_transformer"))

import numpy as np  # noqa: E402
from config import GrpoConfig  # noqa: E402
from pretrain import pretrain  # noqa: E402
from records import Run  # noqa: E402
from table import train_row  # noqa: E402
from tasks import TASKS  # noqa: E402

from advisor.errors import AdvisorError  # noqa: E402
from advisor.forecast import fit  # noqa: E402
from advisor.model import Posterior, Sampling  # noqa: E402
from advisor.runs import PartialSettings, PilotRun, Settings, read_runs  # noqa: E402

CACHE = HERE / ".cache"
PROMPTS = 16
LOOKED_AT = 10

Place = tuple[float, int, int]
"""Learning rate, group size, mini-batches per refresh."""

PILOT_GRID: list[Place] = list(
    itertools.product((3e-5, 1e-4, 3e-4, 1e-3, 3e-3), (4, 8, 16, 32), (1, 2, 4, 8, 16))
)


class Trained(NamedTuple):
    """One run: its row as the tables have it, and what it cost."""

    row: dict[str, Any]

    @property
    def final(self) -> float:
        """Held-out accuracy at the end."""
        return float(self.row["final_eval"])

    @property
    def seconds(self) -> float:
        """Of training, on one core."""
        return float(self.row["seconds"])

    @property
    def seen(self) -> float:
        """Mean train reward of the last steps."""
        return float(np.mean(self.row["reward"][-LOOKED_AT:]))


def trained(task: str, size: str, place: Place, seed: int, steps: int) -> Trained:
    """Train a run, or take it from the cache."""
    rate, group, refresh = place
    path = CACHE / f"{task}_{size}_{rate:g}_{group}_{refresh}_{seed}_{steps}.json"
    if path.exists():
        return Trained(json.loads(path.read_text(encoding="utf-8")))
    config = GrpoConfig(rate, group, PROMPTS, refresh, 1, steps=steps, seed=seed)
    started = time.process_time()
    row = train_row(Run(task, size, config), pretrain(TASKS[task], size))
    row["seconds"] = round(time.process_time() - started, 2)
    CACHE.mkdir(exist_ok=True)
    path.write_text(json.dumps(row), encoding="utf-8")
    return Trained(row)


def as_runs(rows: Iterable[Trained]) -> list[PilotRun]:
    """Read rows as anybody's logs are read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pilots.jsonl"
        path.write_text("".join(json.dumps(one.row) + "\n" for one in rows), encoding="utf-8")
        return read_runs([path])


def settings(place: Place) -> Settings:
    """A configuration, completed."""
    rate, group, refresh = place
    given = PartialSettings(
        learning_rate=rate,
        group_size=group,
        prompts_per_step=PROMPTS,
        minibatches_per_refresh=refresh,
        epochs_per_refresh=1,
    )
    return given.completed()


def fitted(runs: list[PilotRun], seed: int) -> Posterior | None:
    """Posterior of pilots, or None where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fit(runs, sampling=Sampling(seed=seed + 1))
        except AdvisorError:
            return None
