"""What a run of the table is, and the rates of its ladders: drawn before any was trained."""

from __future__ import annotations

from typing import NamedTuple

STEPS = 60
LADDER = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4)
LORA_LADDER = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
LARGE, LARGE_LADDER = 128, (3e-6, 1e-5, 3e-5, 1e-4)
"""Completions of a step that are four times as many, and the rates that they are tried at."""


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
    model: str = ""

    @property
    def place(self) -> str:
        """Folder of runs, and table, that it belongs to."""
        return f"{self.model}/{self.task}" if self.model else self.task

    @property
    def name(self) -> str:
        """Folder below the task's."""
        return f"{self.configuration.name}_n{self.steps}_s{self.seed}"
