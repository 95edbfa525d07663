"""The answer: what to run, how sure that is, what it rests on, and configs that run it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from advisor.advice.cost import Cost, CostModel
from advisor.advice.request import Budget, Objective
from advisor.advice.wording import details_text, in_trainer_names, percent, summary_text
from advisor.errors import InputError
from advisor.forecast import Interval, Stability, Target
from advisor.model import Provenance
from advisor.runs import UNNAMED_MODEL, Settings, export_config, exports, find_trainer

if TYPE_CHECKING:
    import pandas as pd

TITLES = {
    "recommendation": "Recommended configuration",
    "next_pilot": "Run one more pilot first",
    "infeasible": "No feasible configuration",
}
"""What an answer is headed by."""


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


class Recommendation(BaseModel):
    """What the advisor says, as numbers, table and text.

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

    @property
    def table(self) -> pd.DataFrame:
        """The advised configuration next to trade-offs and recipes."""
        import pandas as pd

        own = {"recommendation": "advised", "next_pilot": "piloted", "infeasible": "nearest"}
        others = (*self.alternatives, *self.equal_completions, self.best_piloted, *self.recipes)
        rows = [
            (own[self.kind], self.settings, self.reward.mean, self.stability, self.cost),
            *((one.name, one.settings, one.reward, one.stability, one.cost) for one in others),
        ]
        return pd.DataFrame(
            [
                {
                    "learning rate": settings.learning_rate,
                    "group size": settings.group_size,
                    "prompts per step": settings.prompts_per_step,
                    "mini-batches": settings.minibatches_per_refresh,
                    "epochs": settings.epochs_per_refresh,
                    "steps": cost.steps,
                    "reward at the last step": reward,
                    "P(stable)": stability.probability,
                    "completions": cost.completions,
                    "GPU-hours": math.nan if cost.gpu_hours is None else cost.gpu_hours,
                }
                for _, settings, reward, stability, cost in rows
            ],
            index=pd.Index([name for name, *_ in rows], name="configuration"),
        )

    @property
    def summary(self) -> str:
        """The answer as a person would write it; its first line can be pasted into a config."""
        return summary_text(self)

    @property
    def text(self) -> str:
        """The answer, and what stands behind it."""
        return f"{self.summary}\n\n{details_text(self)}"

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=2)

    def __repr__(self) -> str:
        """Kind of answer, target, reward and P(stable), and a line to paste."""
        return (
            f"Recommendation({self.kind} for {self.target.model} on {self.target.task}, "
            f"{self.steps} steps: {self.measure} {self.reward.mean:.3f}, P(stable) "
            f"{percent(self.stability.probability)})\n"
            f"{in_trainer_names(self.settings, self.trainer)}"
        )

    def __str__(self) -> str:
        """The answer in full."""
        return self.text

    def _repr_html_(self) -> str:
        """Answer and table, as notebooks show them."""
        from advisor.common import heading, paragraph, table, whole

        frame = self.table.reset_index()
        # A probability never rounds to certainty.
        frame["P(stable)"] = [percent(one) for one in frame["P(stable)"]]
        first, _, rest = self.summary.partition("\n")
        return whole(
            heading(TITLES[self.kind]),
            heading(first),
            paragraph(rest.strip()),
            table([*map(str, frame)], frame.itertuples(index=False)),
        )


def export(
    recommendation: Recommendation, trainer: str | None = None, devices: int | None = None
) -> str:
    """Text of a trainer's configuration that runs what was advised: the run, or the next pilot.

    Parameters
    ----------
    recommendation : Recommendation
    trainer : str, optional
        ``trl``, ``verl``, ``openrlhf`` or a registered one; by default that of the pilots.
    devices : int, optional
        By default those that the advice was for.

    Returns
    -------
    text : str

    Raises
    ------
    InputError
        There is no such trainer, or it cannot run these settings; nothing is rounded.

    Notes
    -----
    A decaying schedule keeps the length of the budget: cut short, it would be another schedule. A
    run with a goal is then stopped by hand where the goal is reached.
    """
    if recommendation.kind == "next_pilot" and recommendation.next_pilot is not None:
        return export_pilot(recommendation, recommendation.next_pilot, trainer, devices)
    settings, steps = recommendation.settings, recommendation.steps
    if settings.schedule not in (None, "constant"):
        steps = settings.planned_steps or steps
    mark = ""
    if recommendation.kind != "recommendation":
        mark = f"NOT a recommendation ({recommendation.kind}): see recommendation.json.\n"
    return _config(recommendation, settings, steps, trainer, devices, mark)


def export_pilot(
    recommendation: Recommendation,
    pilot: NextPilot,
    trainer: str | None = None,
    devices: int | None = None,
) -> str:
    """Text of a trainer's configuration that runs a next pilot; parameters as for `export`."""
    mark = f"A pilot of {pilot.steps} steps, not the full run. {pilot.reason}\n"
    return _config(recommendation, pilot.settings, pilot.steps, trainer, devices, mark)


def _config(
    advice: Recommendation,
    settings: Settings,
    steps: int,
    name: str | None,
    devices: int | None,
    mark: str,
) -> str:
    """Config of a run or a pilot for a trainer, with where it comes from after its mark."""
    own = find_trainer(advice.trainer)
    name = name or (own.export.name if own and own.export else None)
    if name is None:
        raise InputError(
            f"the pilots were trained with {advice.trainer}, for which no config is written",
            argument="to",
            advice=f"Choose one of {', '.join(exports())}",
        )
    return export_config(
        settings,
        steps,
        name,
        devices=devices or advice.devices,
        model=None if advice.target.model == UNNAMED_MODEL else advice.target.model,
        note=f"{mark}Advised by grpo-advisor {advice.provenance.package} for "
        f"{advice.target.subject}, from pilots {advice.provenance.data_sha256[:8]} under priors "
        f"'{advice.priors}', seed {advice.seed}.",
    )


def trainer_configs(recommendation: Recommendation) -> dict[str, str]:
    """Config of every trainer that can run the advised settings; `missing_configs` has others."""
    found = _exported(recommendation)
    return {name: text for name, text in found.items() if not isinstance(text, InputError)}


def missing_configs(recommendation: Recommendation) -> dict[str, str]:
    """Trainers that cannot run the advised settings, and why."""
    found = _exported(recommendation)
    return {name: str(error) for name, error in found.items() if isinstance(error, InputError)}


def _exported(recommendation: Recommendation) -> dict[str, str | InputError]:
    found: dict[str, str | InputError] = {}
    for name in exports():
        try:
            found[name] = export(recommendation, name)
        except InputError as error:
            found[name] = error
    return found
