"""What the full run is to achieve, and what it may cost."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor.advice.cost import CostModel, completions_trained
from advisor.errors import InputError
from advisor.run.settings import Settings
from advisor.theory.arrays import FloatArray

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
        Probability, in (0, .5], of a result no better than what is compared: .1 prefers what is
        still good in the worst tenth of the draws. None compares means (medians of times).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["reward", "cheapest", "fastest"] = "reward"
    goal: float | None = None
    quantile: float | None = None

    def check(self) -> None:
        """Refuse an objective that contradicts itself.

        Raises
        ------
        InputError
            A goal is missing, superfluous or no share, or the quantile is none.
        """
        if self.quantile is not None and not 0 < self.quantile <= 0.5:
            raise InputError(
                f"risk {self.quantile:g} is no probability in (0, 0.5]",
                argument="risk",
                advice="Give 0.1 to compare configurations by their worst tenth",
            )
        if (self.goal is None) != (self.kind == "reward"):
            raise InputError(
                f"objective '{self.kind}' "
                + ("takes no goal" if self.kind == "reward" else "needs a goal"),
                argument="to_reward, to_share",
                advice="Name the reward to reach, or the share of the gain, or neither",
            )
        if self.kind == "fastest" and not 0 < (self.goal or 0.0) < 1:
            raise InputError(
                f"{self.goal:g} is no share of the gain strictly between 0 and 1",
                argument="to_share",
                advice="Give one like 0.95",
            )

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

    def check(self) -> None:
        """Refuse a budget that is empty, double or too large.

        Raises
        ------
        InputError
        """
        given = {name: value for name, value in self if value is not None}
        if len(given) > 1:
            raise InputError(
                f"a run has one budget, but {' and '.join(sorted(given))} were given",
                argument="steps, completions, gpu_hours",
                advice="Give one of them",
            )
        for name, value in given.items():
            if not 0 < value < np.inf:
                raise InputError(
                    f"a budget of {value:g} {name}",
                    argument=name,
                    advice="Plan at least one step",
                )
        if self.steps is not None and self.steps > MOST_STEPS:
            raise InputError(
                f"{self.steps:,} planned steps", argument="steps", advice="Count optimizer steps"
            )

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
            fresh = completions_trained(settings) / settings.epochs_per_refresh
            return min(int(self.completions / fresh), MOST_STEPS)
        seconds = cost.seconds_per_step(settings)
        if seconds is None or self.gpu_hours is None:
            raise InputError(
                "GPU-hours cannot be turned into steps: no pilot logged its step times",
                argument="gpu_hours",
                advice="Give `seconds_per_step`, or plan in `steps` or `completions`",
            )
        return min(int(self.gpu_hours * 3600 / cost.gpus / seconds), MOST_STEPS)


def objective_from(
    to_reward: float | None, to_share: float | None, risk: float | None
) -> Objective:
    """Objective that flags name.

    Raises
    ------
    InputError
        Two goals were named, or one cannot be.
    """
    if to_reward is not None and to_share is not None:
        raise InputError(
            "a run has one goal, but two were given",
            argument="to_reward, to_share",
            advice="Give one of them",
        )
    if to_reward is not None:
        found = Objective(kind="cheapest", goal=to_reward, quantile=risk)
    elif to_share is not None:
        found = Objective(kind="fastest", goal=to_share, quantile=risk)
    else:
        found = Objective(quantile=risk)
    found.check()
    return found
