"""What an answer holds: settings, numbers, alternatives, evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from advisor.advice.cost import Cost, CostModel
from advisor.advice.request import Budget, Objective
from advisor.forecast import Interval, Stability, Target
from advisor.model import Provenance
from advisor.runs import Settings


class Alternative(BaseModel):
    """Another configuration under the same posterior: a recipe, a trade-off, the best pilot."""

    model_config = ConfigDict(frozen=True)

    name: str
    settings: Settings
    reward: float  # expected at its last step, given a stable run
    stability: Stability
    cost: Cost
    steps_to_95: float | None  # at which its mean curve has 95 % of the advised gain; None: never


class NextPilot(BaseModel):
    """A pilot worth running before the full run.

    ``gain`` is the expected rise of the final reward by its result, as a share of the reward's
    range; where too little was piloted for a recommendation, over the best of what was piloted.
    ``loss`` is what the run would lose by being shorter by this price; None where not weighed.
    """

    model_config = ConfigDict(frozen=True)

    settings: Settings
    steps: int
    stability: Stability
    gain: float
    cost: Cost
    reason: str
    loss: float | None = None

    @property
    def is_worth_its_price(self) -> bool:
        """Whether its result gains more than a run loses by being shorter by its price."""
        return self.loss is None or self.gain > self.loss


class PriorCheck(BaseModel):
    """The answer with every prior raised to a power: above 1 surer, below 1 less sure."""

    model_config = ConfigDict(frozen=True)

    power: float
    reward: float  # of the advised configuration
    stability: float
    best: Settings | None  # that would be chosen of the best tried; None: none is stable enough
    pareto_k: float  # of the importance weights: above 0.7 the check cannot be trusted


class AnswerFields(BaseModel):
    """What an answer holds.

    Attributes
    ----------
    kind : {"recommendation", "next_pilot", "infeasible"}
        Whether the pilots hold an answer.
    settings : Settings
        The advised configuration; for "next_pilot" the best piloted one, as a bound; for
        "infeasible" the nearest to feasible one found.
    target : Target
    objective : Objective
    budget : Budget
    steps : int
        Planned optimizer steps of the advised run.
    level : float
        P(stable) wanted.
    measure : {"reward", "held-out reward"}
        What is forecast: held-out where the pilots of the target logged evaluations.
    reward : Interval
        Of a run that stays stable, in units of the measure: the mean is the posterior mean at the
        last step, which was maximised; the interval is that of the mean over the last tenth of one
        run, with its seed noise, its slow residual and the noise of its batches
        (`predictive.final_reward`).
    peak : Interval
        Highest level that the run passes on the way, its slow wander included.
    stability : Stability
        By the last step.
    cost : Cost
        Of the advised run.
    cost_model : CostModel
    steps_to_95 : float
        Step at which the mean curve has 95 % of its gain by the last step.
    binding : str
        What keeps the advice from a better value, and what freeing it would give.
    alternatives : tuple of Alternative
        Cheaper, safer and faster configurations, where there are any.
    equal_completions : tuple of Alternative
        Half the group for twice the steps, and the reverse: the same completions spent otherwise.
    recipes : tuple of Alternative
        Common defaults under the same posterior.
    best_piloted : Alternative
        The best of the piloted configurations, carried on instead.
    frontier : tuple of Alternative
        Configurations tried that none beats in reward, price and P(stable) together.
    informed : dict of str to float
        Share of the prior's variance that the pilots removed, of the numbers that decide.
    prior_checks : tuple of PriorCheck
        Reward, P(stable) and choice with the priors less and more sure; none in older answers.
    outside : str or None
        In what the target lies outside the evidence of the priors and pilots.
    beyond_pilots : tuple of str
        Settings outside what any pilot ran, each with what was; none in older answers.
    next_pilot : NextPilot or None
    pilots, collapsed : int
        How many pilots it rests on, and how many of them collapsed.
    pilots_cost : float
        Completions that the pilots generated.
    longest_pilot : float
        Optimizer steps.
    cautions : tuple of str
        Where the answer leans on the prior or leaves the pilots' ground.
    assumptions : tuple of str
        What was assumed rather than read.
    devices : int
        Among which the completions of a step divide.
    choices : dict of str to tuple
        What could be chosen for each setting.
    trainer : str
        Of the pilots, in whose names settings are written.
    priors : str
        Name of the preset.
    seed : int
        Of the search.
    provenance : Provenance
        Of the posterior: data hash, versions, the sampler's seed.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["recommendation", "next_pilot", "infeasible"]
    settings: Settings
    target: Target
    objective: Objective
    budget: Budget
    steps: int
    level: float
    measure: Literal["reward", "held-out reward"]
    reward: Interval
    peak: Interval
    stability: Stability
    cost: Cost
    cost_model: CostModel
    steps_to_95: float
    binding: str
    alternatives: tuple[Alternative, ...]
    equal_completions: tuple[Alternative, ...]
    recipes: tuple[Alternative, ...]
    best_piloted: Alternative
    frontier: tuple[Alternative, ...]
    informed: dict[str, float]
    prior_checks: tuple[PriorCheck, ...] = ()
    outside: str | None
    beyond_pilots: tuple[str, ...] = ()
    next_pilot: NextPilot | None
    pilots: int
    collapsed: int
    pilots_cost: float
    longest_pilot: float
    cautions: tuple[str, ...]
    assumptions: tuple[str, ...]
    devices: int
    choices: dict[str, tuple[float, ...]]
    trainer: str = "TRL"
    priors: str
    seed: int
    provenance: Provenance
