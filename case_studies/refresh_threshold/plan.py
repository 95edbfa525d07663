"""Which runs the study makes, and how finished ones reach the advisor."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from config import GrpoConfig
from records import Run

from advisor.runs import PilotRun, read_runs

GROUP, PROMPTS, MOMENTUM = 8, 16, 0.9
UNCLIPPED = {"clip_low": 1.0, "clip_high": 1e9}  # no ratio is negative, none as large as this
Row = dict[str, Any]


class Cell(NamedTuple):
    """Place of a sweep: learning rate, steps per refresh, age at a refresh, correction for it.

    A ratio that is clipped is so to 1 +- 0.2.
    """

    rate: float
    interval: int
    lag: int
    ratio: bool
    clipped: bool = True


@dataclass(frozen=True)
class Setup:
    """One optimizer on one task: its pilots and its sweeps.

    Attributes
    ----------
    optimizer, task, size : str
    pilot_rates : tuple of float
        Each is piloted on policy at two group sizes, all but the first once more. None: the pilots
        of the trainer's own folder are taken.
    rates : tuple of float
        Of the sweeps.
    intervals : tuple of int
        K at lag 0, for every rate.
    lags : tuple of tuple of int
        Lags at K = 1, one tuple per rate: they bracket the predicted limit.
    unclipped : tuple of tuple of (float, int, int)
        Rate, K and lag of cells that are also made with a ratio without clipping.
    steps, pilot_steps : int
        Length of runs and of pilots.
    """

    optimizer: str
    task: str
    size: str
    pilot_rates: tuple[float, ...]
    rates: tuple[float, ...]
    intervals: tuple[int, ...]
    lags: tuple[tuple[int, ...], ...]
    unclipped: tuple[tuple[float, int, int], ...] = ()
    steps: int = 256
    pilot_steps: int = 60

    @property
    def name(self) -> str:
        """For tables and figures."""
        return f"{self.optimizer}, {self.task}"

    def run(self, cell: Cell, seed: int, group: int = GROUP, steps: int | None = None) -> Run:
        """Run of this setup at a cell."""
        config = GrpoConfig(
            cell.rate,
            group,
            PROMPTS,
            cell.interval,
            lag=cell.lag,
            momentum=MOMENTUM,
            optimizer=self.optimizer,
            importance_ratio=cell.ratio,
            **({} if cell.clipped else UNCLIPPED),
            steps=steps or self.steps,
            seed=seed,
        )
        return Run(self.task, self.size, config)

    def pilots(self) -> list[Run]:
        """On policy, short."""
        grid = [(r, g, 50) for r, g in itertools.product(self.pilot_rates, (8, 16))]
        again = [(r, 8, 51) for r in self.pilot_rates[1:]]
        return [
            self.run(Cell(rate, 1, 0, True), seed, group, self.pilot_steps)
            for rate, group, seed in grid + again
        ]

    def cells(self) -> list[Cell]:
        """Every cell of the sweeps."""
        places = [(r, k, 0) for r, k in itertools.product(self.rates, self.intervals)]
        places += [(r, 1, a) for r, lags in zip(self.rates, self.lags, strict=True) for a in lags]
        found = [Cell(*place, ratio) for ratio in (False, True) for place in places]
        return found + [Cell(*place, True, clipped=False) for place in self.unclipped]

    def sweeps(self, seeds: int) -> list[Run]:
        """Every cell with every seed."""
        return [self.run(cell, seed) for seed in range(1, seeds + 1) for cell in self.cells()]


def as_runs(runs: Sequence[Run], rows: Sequence[Row]) -> list[PilotRun]:
    """Read rows of one optimizer as anybody's logs are read, with the rate that is effective.

    AdamW averages gradients, torch's SGD sums them, so the latter moves 1 / (1 - momentum) times
    as far (docs/theory, T2). A row contains neither lag nor optimizer: the former is added to it,
    the latter given to the reader, as a user would by a flag.
    """
    (optimizer,) = {run.config.optimizer for run in runs}
    reach = 1 / (1 - MOMENTUM) if optimizer == "sgd" else 1.0
    told = [
        row | {"lr": reach * run.config.learning_rate, "lag": run.config.lag}
        for run, row in zip(runs, rows, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in told), encoding="utf-8")
        return read_runs([path], overrides={"optimizer": optimizer})


SETUPS = (
    Setup(
        "adamw",
        "sort",
        "s",
        (1e-4, 3e-4, 1e-3),
        (3e-4, 1e-3),
        (1, 4, 16, 32, 64, 128),
        ((8, 16, 32, 64), (1, 2, 4, 8, 16)),
        unclipped=((1e-3, 16, 0), (1e-3, 32, 0), (1e-3, 1, 16)),
    ),
    Setup(
        "sgd",
        "sort",
        "s",
        (1e-3, 3e-3, 1e-2),
        (3e-3, 1e-2),
        (1, 4, 16, 32, 64),
        ((8, 16, 32, 64), (2, 4, 8, 16)),
        unclipped=((3e-3, 1, 16), (3e-3, 1, 32), (1e-2, 4, 0), (1e-2, 16, 0), (1e-2, 1, 4)),
    ),
    Setup(
        "adamw",
        "running",
        "s",
        (1e-4, 3e-4, 1e-3),
        (3e-4, 1e-3),
        (1, 4, 16, 64),
        ((), ()),
    ),
)

QUICK = (
    Setup(
        "adamw",
        "sort",
        "s",
        (),
        (2e-3,),
        (1, 8),
        ((4,),),
        unclipped=((2e-3, 8, 0),),
        steps=24,
    ),
)
"""Small enough for every change to be tried; says nothing."""
