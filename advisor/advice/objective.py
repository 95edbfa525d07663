"""What the full run is to achieve, and what it may cost."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor.advice.cost import CostModel, fresh_completions
from advisor.errors import InputError
from advisor.runs import Settings
from advisor.theory import FloatArray

MOST_STEPS = 1_000_000
"""Optimizer steps beyond which a budget is a mistake of units."""


class Objective(BaseModel):
    """What is made as large, or as cheap, as possible.

    Attributes
    ----------
    kind : {"reward", "cheapest", "fastest"}
        The reward at the end of the budget; the price of reaching ``goal``; the steps to a share
        ``goal`` of the gain.
    goal : float or None
        Reward to reach for "cheapest", in reward units; share of the gain, in (0, 1), for
        "fastest": of the gain that the best feasible configuration makes within the budget.
    quantile : float or None
        Probability, in (0, 0.5], of a result no better than what is compared: 0.1 prefers what is
        still good in the worst tenth of the draws. None compares means (medians of times).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["reward", "cheapest", "fastest"] = "reward"
    goal: float | None = None
    quantile: float | None = None

    def of(self, draws: FloatArray) -> float:
        """Value of a reward whose draws are given: what is compared."""
        return float(draws.mean() if self.quantile is None else np.quantile(draws, self.quantile))

    @property
    def confidence(self) -> float:
        """Probability with which a goal must be reached at a stated step."""
        return 0.5 if self.quantile is None else 1 - self.quantile


class Budget(BaseModel):
    """How long the full run may last; one of the three.

    Attributes
    ----------
    steps : int or None
        Optimizer steps.
    completions : float or None
        Generated completions: larger groups then mean fewer steps.
    gpu_hours : float or None
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int | None = None
    completions: float | None = None
    gpu_hours: float | None = None

    def steps_of(self, settings: Settings, cost: CostModel) -> int:
        """Whole optimizer steps that the budget pays for; 0 where it does not pay for one.

        Raises
        ------
        InputError
            GPU-hours were given, and nothing tells the time of a step.
        """
        if self.steps is not None:
            return self.steps
        if self.completions is not None:
            return min(int(self.completions / fresh_completions(settings)), MOST_STEPS)
        seconds = cost.seconds_per_step(settings)
        if seconds is None or self.gpu_hours is None:
            raise InputError(
                "GPU-hours cannot be turned into steps: no pilot logged its step times",
                argument="gpu_hours",
                advice="Give `seconds_per_step`, or plan in `steps` or `completions`",
            )
        return min(int(self.gpu_hours * 3600 / cost.gpus / seconds), MOST_STEPS)
