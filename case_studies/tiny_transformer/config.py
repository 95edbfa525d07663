"""Hyperparameters of one GRPO run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GrpoConfig:
    """Hyperparameters of one run.

    Attributes
    ----------
    learning_rate : float
        Constant.
    group_size : int
        Completions per prompt.
    prompts_per_step : int
        Prompts per optimizer step.
    minibatches_per_refresh : int
        Optimizer steps with new samples per rollout batch.
    epochs_per_refresh : int
        Passes over a rollout batch. The refresh interval is the product of the two.
    lag : int
        Age of the sampling policy, in optimizer steps, at a refresh.
    momentum : float
        First-moment decay of AdamW, or heavy-ball momentum of SGD (no dampening, so SGD then
        moves by about learning_rate / (1 - momentum) per unit of gradient).
    optimizer : {"adamw", "sgd"}
        Without weight decay and without gradient clipping.
    clip_low, clip_high : float
        The importance ratio is clipped to [1 - clip_low, 1 + clip_high].
    importance_ratio : bool
        False uses the rollouts as if they were on-policy.
    steps : int
        Optimizer steps.
    seed : int
        Seed of prompts and completions.
    """

    learning_rate: float = 3e-4
    group_size: int = 8
    prompts_per_step: int = 16
    minibatches_per_refresh: int = 1
    epochs_per_refresh: int = 1
    lag: int = 0
    momentum: float = 0.9
    optimizer: str = "adamw"
    clip_low: float = 0.2
    clip_high: float = 0.2
    importance_ratio: bool = True
    steps: int = 200
    seed: int = 0

    def learning_rate_at(self, step: int) -> float:
        """Learning rate of the update that follows `step` finished ones."""
        return self.learning_rate
