"""The plan: every world, its runs and their seeds."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass
from pathlib import Path

RATES_PATH = Path(__file__).resolve().parent / "rates.json"
GROUP_SIZES = (4, 8, 16, 32)
REFRESH_INTERVALS = (1, 2, 4, 8, 16)
PROMPTS = 8  # per step
ROWS_PER_STEP = 128  # completions per step where all group sizes get equally many
REPEATED = 3  # configurations of a world that are run with further seeds
FURTHER_SEEDS = 2

SIZES = {
    "xs": (16, 2),
    "s": (32, 2),
    "m": (64, 2),
    "10k": (16, 3),
    "100k": (64, 2),
    "1m": (144, 4),
}
"""Width and layers; a head is 16 wide."""


@dataclass(frozen=True)
class Run:
    """What the runs of a world differ in; `seed` is the place in the plan, from 1."""

    learning_rate: float
    group_size: int
    refresh: int
    prompts: int
    seed: int


@dataclass(frozen=True)
class World:
    """Runs of one problem from one base.

    Attributes
    ----------
    problem : str
        Key of `problems.RULES`, or "arithmetic".
    size : str
        Key of `SIZES`.
    table : str
        Stem of the file that holds its rows.
    offset : float
        Log-odds of a right demonstration of the base where the first digit is 0.
    variant : str
        Last part of the name.
    count, steps : int
        Configurations, optimizer steps.
    optimizer, schedule, scaling, reward : str
        The last is one of `problems.REWARDS`.
    momentum, kl_coefficient : float
    warmup_steps : int
    scale : float
        Weights are stored divided by this.
    solvable, empty : float
        Shares of prompts that the verifier pays for, and of demonstrations without an answer.
    equal_samples : bool
        Whether each group size gets as many prompts as make `ROWS_PER_STEP` completions.
    repeats : bool
        Whether some configurations are run with further seeds.
    """

    problem: str
    size: str
    table: str
    offset: float
    variant: str = ""
    count: int = 24
    steps: int = 200
    optimizer: str = "adamw"
    schedule: str = "constant"
    scaling: str = "group"
    reward: str = "exact"
    momentum: float = 0.9
    kl_coefficient: float = 0.0
    warmup_steps: int = 0
    scale: float = 1.0
    solvable: float = 1.0
    empty: float = 0.0
    equal_samples: bool = False
    repeats: bool = False

    @property
    def name(self) -> str:
        """Problem, size and variant."""
        return "_".join(part for part in (self.problem, self.size, self.variant) if part)

    def prompts_of(self, group_size: int) -> int:
        """Prompts per step of a run."""
        return ROWS_PER_STEP // group_size if self.equal_samples else PROMPTS

    @property
    def runs(self) -> list[Run]:
        """Configurations drawn without replacement from the grid, then the further seeds."""
        rates = json.loads(RATES_PATH.read_text(encoding="utf-8"))[self.name]["grid"]
        grid = list(itertools.product(rates, GROUP_SIZES, REFRESH_INTERVALS))
        chance = random.Random(self.name)
        points = chance.sample(grid, self.count)
        if self.repeats:
            points += FURTHER_SEEDS * chance.sample(points, REPEATED)
        return [
            Run(rate, group, refresh, self.prompts_of(group), seed)
            for seed, (rate, group, refresh) in enumerate(points, start=1)
        ]


def _plain(problem: str, size: str, offset: float, **settings: object) -> World:
    return World(problem, size, "plain", offset, **settings)  # type: ignore[arg-type]


WORLDS = (
    _plain("reverse4", "xs", -3.2, repeats=True),
    _plain("sort4", "xs", -3.0, repeats=True),
    _plain("shift4", "xs", -4.0),
    _plain("sums4", "xs", -3.0, repeats=True),
    _plain("maximum5", "xs", -2.5),
    _plain("checksum5", "xs", -2.5),
    _plain("parity6", "xs", -2.5, repeats=True),
    _plain("larger2", "xs", -3.0),
    _plain("palindrome3", "xs", -3.5, repeats=True),
    _plain("interleave6", "xs", -3.0),
    _plain("swap6", "xs", -1.2),
    _plain("shift8", "xs", -3.0, repeats=True),
    _plain("modulo31", "xs", -1.5, steps=120),
    World("reverse4", "xs", "divergence", -3.2, "leash", kl_coefficient=0.2),
    World("sort4", "xs", "divergence", -3.0, "leash", kl_coefficient=0.6),
    World("maximum5", "xs", "divergence", -2.5, "leash", kl_coefficient=0.05),
    World("reverse4", "xs", "scaling", -3.2, "unscaled", scaling="none"),
    World("sums4", "xs", "scaling", -3.0, "unscaled", scaling="none"),
    World("sort4", "xs", "scaling", -3.0, "whitened", scaling="batch"),
    World("larger2", "xs", "scaling", -3.0, "whitened", scaling="batch"),
    World("sort4", "xs", "reward", -3.0, "proxy", reward="last"),
    World("reverse4", "xs", "reward", -3.2, "loophole", reward="empty", empty=0.02),
    World("palindrome3", "xs", "reward", -3.5, "loophole", reward="empty", empty=0.01),
    World("parity6", "xs", "reward", -2.5, "partial", reward="partial"),
    World("interleave6", "xs", "reward", -3.0, "partial", reward="partial"),
    World("sums4", "xs", "reward", -3.0, "noise", reward="noisy", repeats=True),
    World("swap6", "xs", "reward", -1.2, "ceiling", solvable=0.6),
    World("larger2", "xs", "reward", -3.0, "ceiling", solvable=0.7),
    World("reverse4", "xs", "schedule", -3.2, "decay", schedule="linear", warmup_steps=20),
    World("maximum5", "xs", "schedule", -2.5, "cosine", schedule="cosine", warmup_steps=10),
    World("sort4", "xs", "schedule", -3.0, "decay", schedule="linear"),
    World("reverse4", "xs", "momentum", -3.2, "memoryless", momentum=0.0),
    World("sort4", "xs", "momentum", -3.0, "inertia", momentum=0.95),
    World("larger2", "xs", "momentum", -3.0, "inertia", momentum=0.95),
    World("palindrome3", "xs", "momentum", -3.5, "memoryless", momentum=0.0),
    World("reverse4", "xs", "descent", -3.2, "descent", optimizer="sgd"),
    World("shift4", "xs", "descent", -2.5, "descent", optimizer="sgd", momentum=0.0),
    World("reverse4", "xs", "late", -3.2, "edge", steps=300, repeats=True),
    World("reverse4", "xs", "moved", -3.2, "magnified", scale=10.0),
    World("sort4", "xs", "moved", -3.0, "shrunk", scale=0.1),
    World("swap6", "xs", "moved", -1.2, "equal", equal_samples=True),
    World("shift4", "xs", "moved", -4.0, "equal", equal_samples=True),
    _plain("carry2", "s", -2.5, steps=150),
    _plain("modulo53", "s", -2.0, steps=120),
    _plain("product", "s", -2.0, steps=120),
    _plain("unique5", "s", -3.5, steps=150),
    _plain("rotate5", "s", -2.5, steps=120),
    _plain("difference2", "s", -2.5, steps=150),
    _plain("reverse4", "m", -4.0, steps=120, count=16),
    World("arithmetic", "10k", "language", -1.0, count=18, steps=150, repeats=True),
    World("arithmetic", "100k", "language", -2.5, count=16, steps=120, repeats=True),
    World("arithmetic", "1m", "language", -2.5, count=10, steps=80),
)
"""In the order in which they are trained: small models first."""

BY_NAME = {world.name: world for world in WORLDS}
if len(BY_NAME) != len(WORLDS):
    raise ValueError("two worlds of the plan have one name")
