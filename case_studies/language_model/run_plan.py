"""Which runs the table holds: drawn once, before any of them was trained."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from later_tasks import LATER_TASKS
from prompt_tasks import TASKS

PLAN_SEED = 31
STEPS = 60
PARTS = ("ladder", "repeats", "drawn", "group size", "LoRA", "long", "LoRA ladder")
LATER_PARTS = (
    "later ladder",
    "later LoRA ladder",
    "later repeats",
    "large batches",
    "later LoRA repeats",
    "equal completions",
)
LADDER = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4)
LORA_LADDER = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
"""Added to the plan when 113 of its runs were there, to try the rule by which a rate is named on
tasks whose best rate lies elsewhere; fixed before any of these was trained."""
REPEATED = 1e-5
LATER_REPEATED = (3e-6, 1e-5, 3e-5)
LORA_REPEATED = (3e-5, 1e-4, 3e-4)
"""A second seed, added when all else was trained: one seed had decided which rate was best."""

LARGE, LARGE_LADDER = 128, (3e-6, 1e-5, 3e-5, 1e-4)
"""Completions of a step that are four times as many, and the rates that they are tried at."""
EQUAL = (
    # completions of a step, group, rates; what was there when this was fixed: 60 steps of 16 groups
    # of 8 at four rates, 60 steps of 4 groups of 8 at six.
    (32, 8, (1e-5, 3e-5)),
    (64, 8, (1e-5, 3e-5)),
    (32, 8, (3e-6,)),
    (128, 32, (1e-5, 3e-5)),
    (128, 4, (1e-5, 3e-5)),
    (256, 8, (3e-5, 1e-4)),
)
"""Ways to spend 7,680 completions: as many steps as they make."""
DRAWN, LORA_DRAWN, LONG = 8, 4, 2
FACTORS = {
    1: [(1, 1)],
    2: [(2, 1), (1, 2)],
    4: [(4, 1), (2, 2)],
    8: [(8, 1), (4, 2)],
    16: [(16, 1), (8, 2)],
}
"""Mini-batches and epochs by the refresh interval that they make."""


class Configuration(NamedTuple):
    """Everything that is varied; the name of a run holds all of it.

    Attributes
    ----------
    rate : float
        Learning rate, constant.
    group : int
        Completions of a prompt.
    minibatches, epochs : int
        Optimizer steps on a batch of rollouts are their product.
    kl : float
        Coefficient of the KL term.
    completions : int
        Of an optimizer step; prompts of a step are these by ``group``.
    rank : int
        Of the adapter, where there is one.
    clip : float
        The ratio of probabilities is clipped this far from 1.
    """

    rate: float
    group: int = 8
    minibatches: int = 1
    epochs: int = 1
    kl: float = 0.0
    lora: bool = False
    completions: int = 32
    rank: int = 16
    clip: float = 0.2

    @property
    def name(self) -> str:
        """Such as ``lr1e-05_g8_k1x1_c32``."""
        parts = [f"lr{self.rate:.3g}_g{self.group}_k{self.minibatches}x{self.epochs}"]
        parts.append(f"c{self.completions}")
        parts += [f"kl{self.kl:g}"] if self.kl else []
        parts += [f"clip{self.clip:g}"] if self.clip != 0.2 else []
        parts += [("lora" if self.rank == 16 else f"lora{self.rank}")] if self.lora else []
        return "_".join(parts)


class Planned(NamedTuple):
    """One run of the table.

    Attributes
    ----------
    model : str
        Key of the model; empty for the first table, which is of SmolLM2 alone.
    """

    task: str
    configuration: Configuration
    steps: int
    seed: int
    part: str
    model: str = ""

    @property
    def place(self) -> str:
        """Folder of runs, and table, that it belongs to."""
        return f"{self.model}/{self.task}" if self.model else self.task

    @property
    def name(self) -> str:
        """Folder below the task's."""
        return f"{self.configuration.name}_n{self.steps}_s{self.seed}"


def planned() -> list[Planned]:
    """All runs, those that every comparison needs first, then turn by turn over the tasks."""
    runs = [one for task in TASKS for one in _of_task(task)]
    generator = random.Random(PLAN_SEED)
    runs.sort(key=lambda one: (PARTS.index(one.part) > 1, generator.random()))
    return runs + [
        Planned(task, Configuration(rate, lora=True), STEPS, 1, "LoRA ladder")
        for task in TASKS
        for rate in LORA_LADDER
    ]


def planned_later() -> list[Planned]:
    """Runs of the tasks that came later, in the order in which they are trained.

    Fixed before any of them was trained, and after what they are to test had been learned.
    """
    steps = [
        ("later ladder", 1, [Configuration(rate) for rate in LADDER]),
        ("later LoRA ladder", 1, [Configuration(rate, lora=True) for rate in LORA_LADDER]),
        ("later repeats", 2, [Configuration(rate) for rate in LATER_REPEATED]),
        ("later repeats", 3, [Configuration(rate) for rate in LATER_REPEATED]),
        ("large batches", 1, [Configuration(rate, completions=LARGE) for rate in LARGE_LADDER]),
        ("later LoRA repeats", 2, [Configuration(rate, lora=True) for rate in LORA_REPEATED]),
    ]
    runs = [
        Planned(task, own, STEPS, seed, part)
        for part, seed, configurations in steps
        for own in configurations
        for task in LATER_TASKS
    ]
    spent = STEPS * LARGE
    return runs + [
        Planned(
            task,
            Configuration(rate, group=group, completions=completions),
            spent // completions,
            1,
            "equal completions",
        )
        for completions, group, rates in EQUAL
        for rate in rates
        for task in LATER_TASKS
    ]


def _of_task(task: str) -> list[Planned]:
    generator = random.Random(f"{PLAN_SEED} {task}")

    def drawn(low: float, high: float, **named: Any) -> Configuration:
        rate = float(f"{low * (high / low) ** generator.random():.2g}")
        return Configuration(rate, **named)

    def factors(choices: tuple[int, ...]) -> dict[str, int]:
        minibatches, epochs = generator.choice(FACTORS[generator.choice(choices)])
        return {"minibatches": minibatches, "epochs": epochs}

    runs = [Planned(task, Configuration(rate), STEPS, 1, "ladder") for rate in LADDER]
    runs += [Planned(task, Configuration(REPEATED), STEPS, seed, "repeats") for seed in (2, 3)]
    for _ in range(DRAWN):
        own = drawn(
            1e-6,
            3e-4,
            group=generator.choice((4, 8, 16, 32)),
            kl=generator.choice((0.0, 0.0, 0.04)),
            **factors((1, 2, 4, 8, 16)),
        )
        runs.append(Planned(task, own, generator.choice((60, 80, 100)), 1, "drawn"))
    for group in (4, 16):
        # As many prompts a step as the ladder's, so that the group alone differs.
        own = Configuration(REPEATED, group=group, completions=4 * group)
        runs.append(Planned(task, own, STEPS, 1, "group size"))
    for _ in range(LORA_DRAWN):
        own = drawn(1e-5, 3e-3, group=generator.choice((4, 8, 16)), lora=True, **factors((1, 4)))
        runs.append(Planned(task, own, STEPS, 1, "LoRA"))
    for _ in range(LONG):
        own = drawn(1e-5, 2e-4, **factors((1, 2, 4)))
        runs.append(Planned(task, own, 200, 1, "long"))
    return runs
