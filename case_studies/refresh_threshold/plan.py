"""Which runs the study makes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

from job import Job

GROUP = 8


class Cell(NamedTuple):
    """Place of a sweep; fields as in `Job`."""

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

    def job(self, rate: float, seed: int, **changed: Any) -> Job:
        """Make a job of this setup; on policy with a ratio unless said otherwise."""
        values = {"group": GROUP, "interval": 1, "ratio": True, "steps": self.steps, **changed}
        return Job(
            rate,
            seed=seed,
            optimizer=self.optimizer,
            task=self.task,
            size=self.size,
            **values,
        )

    def pilots(self) -> list[Job]:
        """On policy, short."""
        grid = [(r, g, 50) for r, g in itertools.product(self.pilot_rates, (8, 16))]
        again = [(r, 8, 51) for r in self.pilot_rates[1:]]
        return [self.job(r, s, group=g, steps=self.pilot_steps) for r, g, s in grid + again]

    def cells(self) -> list[Cell]:
        """Every cell of the sweeps."""
        places = [(r, k, 0) for r, k in itertools.product(self.rates, self.intervals)]
        places += [(r, 1, a) for r, lags in zip(self.rates, self.lags, strict=True) for a in lags]
        found = [Cell(*place, ratio) for ratio in (False, True) for place in places]
        return found + [Cell(*place, True, clipped=False) for place in self.unclipped]

    def sweeps(self, seeds: int) -> list[Job]:
        """Every cell with every seed."""
        return [
            self.job(**cell._asdict(), seed=seed)
            for seed in range(1, seeds + 1)
            for cell in self.cells()
        ]


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
