"""What is asked of the advice, and how it is searched for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from advisor.advice.cost import CostModel, fresh_completions
from advisor.common import DEFAULT_SEED
from advisor.errors import InputError
from advisor.forecast import Target, named_target
from advisor.model import KnownOptimum, Posterior
from advisor.runs import Settings
from advisor.theory import FloatArray

MOST_STEPS = 1_000_000  # Optimizer steps beyond which a budget is a mistake of units
Steps = Annotated[int, Field(gt=0, le=MOST_STEPS)]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Asked(BaseModel, frozen=True, extra="forbid"):
    """Arguments that are refused as such where they are no values."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        try:
            return handler(data)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else None
            problem = f"{first['input']!r} cannot be"
            advice = str(first["msg"]).replace("Input", "It")
            if first["type"] == "extra_forbidden":
                problem = f"there is no argument '{name}'"
                advice = f"The arguments are {', '.join(cls.model_fields)}"
            raise InputError(problem, argument=name, advice=advice) from error


class Search(_Asked):
    """How the best configuration is searched for; no run is launched."""

    trials: int = 300  # of Optuna over the posterior
    storage: Any = None  # where the Optuna study is kept, as ``optuna.create_study`` takes it
    seed: int = DEFAULT_SEED  # of the search and of the seed noise


class Request(_Asked):
    """What the full run is to achieve and may cost, and among what is chosen.

    Attributes
    ----------
    steps, batches, completions, gpu_hours : int, int, float, float or None
        Budget of the full run, one of them: optimizer steps, batches of rollouts (what verl calls
        steps, each K optimizer steps), generated completions, GPU-hours. The default is three
        times the longest pilot's steps.
    level : float
        P(stable) wanted, in (0, 1).
    to_reward : float or None
        Reach this reward, in reward units, for the least.
    to_share : float or None
        Make this share, in (0, 1), of the gain soonest: of the gain that the best feasible
        configuration makes within the budget. With neither the reward at the end is maximised.
    risk : float or None
        Compare by this lower quantile, in (0, 0.5], in place of the mean: 0.1 prefers what is
        still good in the worst tenth of the draws.
    model, task : str or None
        What the full run trains; by default the largest piloted model, on its task.
    parameters : float or None
        Of a model that was not piloted and whose name does not contain its size.
    start_reward : float or None
        Its mean reward before training, in reward units, if known.
    gpus : int
        GPUs of the pilots and of the full run.
    seconds_per_step : float or None
        Time of a step at the pilots' mean batch; by default learned from the logs.
    devices : int
        Completions of a step must divide among them.
    group_sizes, learning_rates : tuple of float or None
        Restrict the choices.
    choose_from : tuple of Settings or None
        The very configurations to choose from, completed, in place of a grid.
    indifference : float
        Share of the reward range below which rewards count as equal, and the cheaper
        configuration wins; 0 compares rewards alone.
    constraint : callable or None
        Of what may be chosen: takes `Posterior.predict`'s dataset of the configurations that are
        offered, each to its end, and returns a bool for each, such as
        ``lambda said: said.final_train_reward.quantile(0.1, "draw") > 0.5``. Not saved.
    weigh_pilots : bool
        Also weigh which pilot would be worth running next.
    known : dict of str to float or None
        Settings that are known to do best in such runs, among ``learning_rate``, ``group_size`` and
        ``refresh_interval``; by default what the preset knows.
    projects : int
        Distinct projects from which they are known.

    Raises
    ------
    InputError
        The request contradicts itself.
    """

    steps: Steps | None = None
    batches: Steps | None = None
    completions: Positive | None = None
    gpu_hours: Positive | None = None
    level: Annotated[float, Field(gt=0, lt=1)] = 0.9
    to_reward: float | None = None
    to_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    risk: Annotated[float, Field(gt=0, le=0.5)] | None = None
    model: str | None = None
    task: str | None = None
    parameters: float | None = None
    start_reward: float | None = None
    gpus: Annotated[int, Field(ge=1)] = 1
    seconds_per_step: Positive | None = None
    devices: Annotated[int, Field(ge=1)] = 1
    group_sizes: Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1)] | None = (
        None
    )
    learning_rates: Annotated[tuple[Positive, ...], Field(min_length=1)] | None = None
    choose_from: tuple[Settings, ...] | None = None
    indifference: float = 0.01  # seed-to-seed spread is larger
    constraint: Callable[[Any], Any] | None = Field(default=None, exclude=True)
    weigh_pilots: bool = True
    known: Mapping[str, float] | None = None
    projects: int = 1

    @property
    def budget(self) -> Budget:
        """How long the run may last; empty where nothing was named."""
        return Budget(**{name: getattr(self, name) for name in Budget.model_fields})

    def in_steps(self, intervals: Iterable[int | None]) -> Request:
        """The same with its batches of rollouts as optimizer steps, for pilots of one K."""
        known = sorted({interval or 1 for interval in intervals})
        if self.batches is None:
            return self
        if len(known) > 1:
            raise InputError(
                f"the pilots differ in K ({', '.join(map(str, known))} optimizer steps a batch)",
                argument="batches",
                advice="Give `steps`, or `completions` for runs that generate as much",
            )
        return Request(**{**dict(self), "batches": None, "steps": self.batches * known[0]})

    @property
    def objective(self) -> Objective:
        """What is made as large, or as cheap, as possible."""
        if self.to_reward is not None:
            return Objective(kind="cheapest", goal=self.to_reward, quantile=self.risk)
        if self.to_share is not None:
            return Objective(kind="fastest", goal=self.to_share, quantile=self.risk)
        return Objective(quantile=self.risk)

    def known_optimum(self) -> KnownOptimum | None:
        """What the user knows of where such runs do best."""
        if self.known is None:
            return None
        names = [name for name in KnownOptimum.model_fields if name not in ("projects", "source")]
        given = {**self.known, "projects": self.projects, "source": "stated by the user"}
        try:
            return KnownOptimum.model_validate(given)
        except ValidationError as error:
            problem = f"what is known, {dict(self.known)} from {self.projects} projects, cannot be"
            advice = f"Give positive numbers for {', '.join(names)}, and at least 1 project"
            raise InputError(problem, argument="known, projects", advice=advice) from error

    def target_in(self, posterior: Posterior) -> Target:
        """Target that is named; by default the largest piloted model, on its task."""
        return named_target(posterior, self.model, self.task, self.parameters, self.start_reward)

    @model_validator(mode="after")
    def _check(self) -> Request:
        """Refuse what no pilots could answer, before anything is fitted."""
        self.known_optimum()
        if self.to_reward is not None and self.to_share is not None:
            problem = "a run has one goal, but two were given"
            raise InputError(problem, argument="to_reward, to_share", advice="Give one of them")
        names = ("steps", "batches", "completions", "gpu_hours")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) > 1:
            problem = f"a run has one budget, but {' and '.join(sorted(given))} were given"
            raise InputError(problem, argument=", ".join(names), advice="Give one of them")
        return self


def asked(
    request: Request | None, search: Search | None, fields: Mapping[str, Any]
) -> tuple[Request, Search]:
    """Request and search with some of their fields replaced."""
    own = {name: value for name, value in fields.items() if name in Search.model_fields}
    rest = {name: value for name, value in fields.items() if name not in own}
    return (
        Request(**{**(dict(request) if request else {}), **rest}),
        Search(**{**(dict(search) if search else {}), **own}),
    )


class Objective(BaseModel, frozen=True, extra="forbid"):
    """What is made as large, or as cheap, as possible.

    ``goal`` is a reward for "cheapest", for "fastest" a share of the best feasible gain;
    ``quantile`` is the probability of a result no better than what is compared, None a mean.
    """

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


class Budget(BaseModel, frozen=True, extra="forbid"):
    """How long the full run may last; one of the three."""

    steps: int | None = None  # optimizer steps
    completions: float | None = None  # larger groups then mean fewer steps
    gpu_hours: float | None = None

    def steps_of(self, settings: Settings, cost: CostModel) -> int:
        """Steps that the budget pays for, in whole batches of rollouts; 0 where for none."""
        interval = settings.minibatches_per_refresh * settings.epochs_per_refresh
        if self.steps is not None:
            return whole_batches(self.steps, interval)
        if self.completions is not None:
            steps = min(int(self.completions / fresh_completions(settings)), MOST_STEPS)
            return whole_batches(steps, interval)
        seconds = cost.seconds_per_step(settings)
        if seconds is None or self.gpu_hours is None:
            problem = "GPU-hours cannot be turned into steps: no pilot logged its step times"
            advice = "Give `seconds_per_step`, or plan in `steps` or `completions`"
            raise InputError(problem, argument="gpu_hours", advice=advice)
        steps = min(int(self.gpu_hours * 3600 / cost.gpus / seconds), MOST_STEPS)
        return whole_batches(steps, interval)


def whole_batches(steps: int, interval: int) -> int:
    """Optimizer steps without those of a batch of rollouts that would not be used up."""
    # Some trainers count batches, and all would generate the last one in part for nothing.
    return steps - steps % interval if steps > interval else steps
