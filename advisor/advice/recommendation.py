"""The answer: what to run, how sure that is, and what it rests on."""

from __future__ import annotations

import json
from typing import Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict

from advisor.advice.stability import Stability
from advisor.advice.wording import recommendation_text
from advisor.posterior import Target
from advisor.posterior.posterior import Provenance
from advisor.runs.pilot_run import Hyperparameters


class Interval(BaseModel):
    """Mean and central 80 % interval of a posterior quantity."""

    model_config = ConfigDict(frozen=True)

    mean: float
    lower: float
    upper: float


class Alternative(BaseModel):
    """Another configuration under the same posterior: a common recipe, or a neighbour.

    Attributes
    ----------
    name : str
    settings : Hyperparameters
    reward : float
        Expected reward at the planned step, given a stable run.
    stability : Stability
    """

    model_config = ConfigDict(frozen=True)

    name: str
    settings: Hyperparameters
    reward: float
    stability: Stability


class NextPilot(BaseModel):
    """A pilot worth running before the full run.

    Attributes
    ----------
    settings : Hyperparameters
    steps : int
        Optimizer steps.
    stability : Stability
        By the end of the pilot.
    reason : str
    """

    model_config = ConfigDict(frozen=True)

    settings: Hyperparameters
    steps: int
    stability: Stability
    reason: str


class Recommendation(BaseModel):
    """What the advisor says.

    Attributes
    ----------
    kind : {"recommendation", "next_pilot", "infeasible"}
        Whether the pilots hold an answer.
    settings : Hyperparameters
        The advised configuration; for "next_pilot" the best piloted one, as a bound; for
        "infeasible" the safest one found.
    target : Target
    steps : int
        Planned optimizer steps.
    level : float
        P(stable) wanted.
    measure : {"reward", "held-out reward"}
        What is forecast: held-out where the pilots of the target logged evaluations.
    reward : Interval
        At the planned step given a stable run, seed noise included, in units of the measure.
    peak : Interval
        Highest level that the run passes on the way, its slow wander included.
    stability : Stability
        By the planned step.
    steps_to_95 : float
        Step at which the mean curve has 95 % of its gain by the planned step.
    binding : str
        What keeps the advice from a higher reward.
    recipes : tuple of Alternative
        Common defaults under the same posterior.
    next_pilot : NextPilot or None
    pilots, collapsed : int
        How many pilots it rests on, and how many of them collapsed.
    longest_pilot : float
        Optimizer steps.
    cautions : tuple of str
        Where the answer leans on the prior or leaves the pilots' ground.
    assumptions : tuple of str
        What was assumed rather than read.
    provenance : Provenance
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["recommendation", "next_pilot", "infeasible"]
    settings: Hyperparameters
    target: Target
    steps: int
    level: float
    measure: Literal["reward", "held-out reward"]
    reward: Interval
    peak: Interval
    stability: Stability
    steps_to_95: float
    binding: str
    recipes: tuple[Alternative, ...]
    next_pilot: NextPilot | None
    pilots: int
    collapsed: int
    longest_pilot: float
    cautions: tuple[str, ...]
    assumptions: tuple[str, ...]
    provenance: Provenance

    @property
    def table(self) -> pd.DataFrame:
        """The advised configuration beside the recipes."""
        rows = [
            (
                {"recommendation": "advised", "next_pilot": "piloted", "infeasible": "safest"}[
                    self.kind
                ],
                self.settings,
                self.reward.mean,
                self.stability,
            ),
            *((r.name, r.settings, r.reward, r.stability) for r in self.recipes),
        ]
        return pd.DataFrame(
            {
                "learning rate": [s.learning_rate for _, s, _, _ in rows],
                "group size": [s.group_size for _, s, _, _ in rows],
                "mini-batches": [s.minibatches_per_refresh for _, s, _, _ in rows],
                "epochs": [s.epochs_per_refresh for _, s, _, _ in rows],
                f"reward at step {self.steps}": [reward for _, _, reward, _ in rows],
                "P(stable)": [stability.probability for _, _, _, stability in rows],
            },
            index=pd.Index([name for name, _, _, _ in rows], name="configuration"),
        )

    @property
    def text(self) -> str:
        """The answer as a person would write it; the first line can be pasted into a config."""
        return recommendation_text(self)

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=2)
