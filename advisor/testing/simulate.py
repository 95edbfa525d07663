"""Pilots simulated from known parameters: what the model should find again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from advisor.model import LAWS, POPULATION, RUN_EFFECTS, Covariates, Reference, load_priors
from advisor.model import equations as eq
from advisor.runs import PartialSettings, PilotRun, Settings
from advisor.theory import cumulative_clock, policy_steps, schedule_factors

PRESET = "small_models"


@dataclass(frozen=True)
class Plan:
    """A pilot to simulate.

    Attributes
    ----------
    learning_rate : float
        Peak.
    group_size : int
        Completions per prompt.
    minibatches, epochs : int
        Optimizer steps on one batch of rollouts: K is their product.
    model, task : str or None
    parameters : float or None
        Of the model.
    steps : int
        Optimizer steps.
    prompts : float
        Prompts per optimizer step.
    lag : float or None
        Age of the rollouts beyond that within a refresh, in optimizer steps.
    momentum : float or None
    schedule : str or None
        Of the learning rate.
    warmup : int or None
        Optimizer steps.
    ratio : bool or None
        Whether an importance ratio corrects stale rollouts.
    optimizer : {"adamw", "sgd"} or None
    logging : int
        Optimizer steps per logged row.
    collapse : int or None
        Step at which the run collapses.
    """

    learning_rate: float = 3e-4
    group_size: int = 8
    minibatches: int = 1
    epochs: int = 1
    model: str | None = "tiny-s"
    parameters: float | None = 1e5
    task: str | None = "sort"
    steps: int = 60
    prompts: float = 16.0
    lag: float | None = None
    momentum: float | None = None
    schedule: str | None = None
    warmup: int | None = None
    ratio: bool | None = None
    optimizer: Literal["adamw", "sgd"] | None = None
    logging: int = 1
    collapse: int | None = None

    @property
    def settings(self) -> PartialSettings:
        """What a log of this run would tell."""
        return PartialSettings(
            learning_rate=self.learning_rate,
            group_size=self.group_size,
            prompts_per_step=self.prompts,
            minibatches_per_refresh=self.minibatches,
            epochs_per_refresh=self.epochs,
            lag=self.lag,
            momentum=self.momentum,
            schedule=self.schedule,
            warmup_steps=self.warmup,
            planned_steps=self.steps,
            importance_ratio=self.ratio,
            optimizer=self.optimizer,
        )

    @property
    def completed(self) -> Settings:
        """Settings with the defaults for what is not given."""
        return self.settings.completed()

    def run(self, reward: Any, name: str = "run", **updates: Any) -> PilotRun:
        """Run that logged these rewards, one per row; ``updates`` replace its fields."""
        reward = np.asarray(reward, dtype=float)
        step = self.logging * np.arange(1.0, reward.size + 1)
        given: dict[str, Any] = {
            "id": name,
            "path": f"{name}.jsonl",
            "model": self.model,
            "task": self.task,
            "parameters": self.parameters,
            "hyperparameters": self.settings,
            "step": step,
            "series": {"reward": reward},
            "logging_steps": self.logging,
        }
        return PilotRun(**{**given, **updates})


def rising(steps: int = 60, start: float = 0.2, end: float = 0.8, time: float = 15.0) -> Any:
    """Smooth curve that saturates.

    Parameters
    ----------
    steps : int
    start, end : float
        Rewards.
    time : float
        Steps in which all but 1/e of the gain is made.

    Returns
    -------
    reward : ndarray of shape (steps,)
    """
    return end - (end - start) * np.exp(-np.arange(steps) / time)


HEADROOM_LOGIT, LOG_SLOPE = 1.2, -2.6


KNOWN_SIZES = {"curvature_exponent": 0.0, "plateau_loss.size": 0.5, "hazard.size": 0.5}
"""Size laws of pilots on several sizes, each known within one half; a prior alone knows less."""


def prior_means(
    headroom_logit: float = HEADROOM_LOGIT, log_slope: float = LOG_SLOPE
) -> dict[str, float]:
    """Population in the middle of the prior of a task with these levels, as the laws use it.

    Except for the size laws: few models tolerate a hundred times the size as the prior expects.

    Parameters
    ----------
    headroom_logit, log_slope : float
        Levels of the task.

    Returns
    -------
    population : dict of str to float
    """
    priors = load_priors(PRESET)
    means = {name: getattr(priors, name.replace(".", "_")).mean for name in POPULATION}
    means |= KNOWN_SIZES
    stiffness = eq.task_log_stiffness(np.array([headroom_logit]), np.array([log_slope]))
    return {name: float(mean) for name, mean in eq.at_reference(means, stiffness).items()}


@dataclass(frozen=True)
class Truth:
    """Parameters that pilots are simulated from; offsets of models are zero.

    Attributes
    ----------
    reference : Reference
        Configuration at which the laws have their levels.
    population : dict of str to float
    headroom_logit, log_slope, log_onset : float
        Levels of the task.
    start_logit : dict of str to float
        Start by name of the model.
    """

    reference: Reference
    population: dict[str, float] = field(default_factory=prior_means)
    headroom_logit: float = HEADROOM_LOGIT
    log_slope: float = LOG_SLOPE
    log_onset: float = 0.0
    start_logit: dict[str, float] = field(default_factory=dict)

    def moved(self, **population: float) -> Truth:
        """Copy with some population parameters replaced; dots are written as two underscores."""
        renamed = {name.replace("__", "."): value for name, value in population.items()}
        assert renamed.keys() <= self.population.keys()
        return replace(self, population={**self.population, **renamed})

    def covariates(self, plan: Plan) -> Covariates:
        """Logarithms of a plan over the reference."""
        return Covariates(
            np.log(plan.learning_rate / self.reference.learning_rate),
            np.log(plan.group_size / self.reference.group_size),
            np.log(plan.prompts / self.reference.prompts_per_step),
            np.log(float(plan.parameters or 0) / self.reference.parameters),
            np.log(plan.minibatches),
            np.log(plan.epochs),
        )

    def law(self, name: str, plan: Plan) -> float:
        """Value of a law for a plan."""
        design = getattr(eq, f"{name}_design")(self.covariates(plan))
        return float(design @ [self.population[f"{name}.{term}"] for term in LAWS[name]])

    def group(self, plan: Plan) -> eq.GroupLevel:
        """Level of the plan's task and model."""
        return eq.group_level(
            self.population,
            self.headroom_logit,
            self.log_slope,
            self.start_logit.get(str(plan.model), -1.4),
            0.0,
            0.0,
            self.covariates(plan).log_parameters,
        )

    def reward(self, plan: Plan, steps: Any, luck: Any = (0.0, 0.0, 0.0)) -> Any:
        """Expected reward after so many optimizer steps; luck: plateau, stiffness and shape."""
        settings = plan.completed
        interval = plan.minibatches * plan.epochs
        run = eq.run_level(
            self.population,
            self.group(plan),
            self.law("rate", plan),
            self.law("plateau_loss", plan),
            (luck[0], luck[1], luck[2]),
            self.log_onset,
            interval,
            float(settings.importance_ratio),
        )
        steps = np.asarray(steps, dtype=float)
        factors = schedule_factors(
            settings.schedule,
            int(steps.max()),
            warmup_steps=settings.warmup_steps,
            planned_steps=plan.steps,
        )
        clock = cumulative_clock(factors, self.population["rate.learning_rate"])
        return eq.expected_reward(
            np.interp(steps, np.arange(clock.size), clock),
            run,
            settings.momentum,
            settings.mean_age,
            eq.uncorrected(self.population, float(settings.importance_ratio)),
        )

    def hazard(self, plan: Plan) -> float:
        """Collapses per optimizer step at the peak learning rate."""
        return float(eq.hazard(self.law("hazard", plan)))


def simulate_run(truth: Truth, plan: Plan, rng: np.random.Generator, name: str = "run") -> PilotRun:
    """Simulate one run with all noise that a log shows.

    An effect of the run, a slow AR(1) residual, difficulty of prompts, rewards of 0 and 1, reused
    batches. A run collapses at ``plan.collapse``: its policy loses everything within six steps.

    Parameters
    ----------
    truth : Truth
    plan : Plan
    rng : numpy.random.Generator
    name : str

    Returns
    -------
    run : PilotRun
    """
    luck = rng.standard_normal(len(RUN_EFFECTS))
    interval = plan.minibatches * plan.epochs
    rows = np.arange(1, plan.steps + 1)
    behind = policy_steps(rows, plan.minibatches, plan.epochs, plan.lag or 0)
    mean = truth.reward(plan, behind, luck)
    slow = wandering(plan.steps, rng)[behind.astype(int)]
    mean = mean + np.exp(truth.population["log_misfit"]) * slow
    if plan.collapse is not None:
        mean = mean * np.clip(1 - (behind - plan.collapse + 1) / 6, 0.0, 1.0)
    share = 1 / (1 + np.exp(-truth.population["within_log_odds"]))
    # Difficulty ~ Beta(p n, (1 - p) n) leaves the share n / (n + 1) of p(1-p) within prompts.
    size = share / (1 - share)
    reward = np.empty(plan.steps)
    for step in range(plan.steps):
        place = step % interval
        if place >= plan.minibatches:
            reward[step] = reward[step - plan.minibatches]
            continue
        level = float(np.clip(mean[step], 1e-6, 1 - 1e-6))
        prompt = rng.beta(level * size, (1 - level) * size, int(plan.prompts))
        reward[step] = rng.binomial(plan.group_size, prompt).mean() / plan.group_size
    return plan.run(reward, name)


def wandering(steps: int, rng: np.random.Generator) -> Any:
    """Ornstein-Uhlenbeck process of unit variance, correlated over half the steps."""
    left = np.exp(-2 / steps)
    values = rng.standard_normal(steps + 1)
    for step in range(steps):
        values[step + 1] = left * values[step] + np.sqrt(1 - left**2) * values[step + 1]
    return values


def simulate_runs(
    plans: Sequence[Plan], truth: Truth | None = None, *, seed: int = 1
) -> list[PilotRun]:
    """Simulate pilots, say to try the advisor on a design before any GPU is paid for.

    Parameters
    ----------
    plans : sequence of Plan
    truth : Truth, optional
        Parameters to simulate from; by default those in the middle of the prior, at a reference
        between the plans.
    seed : int

    Returns
    -------
    runs : list of PilotRun
        Named ``run0``, ``run1``, ...

    Examples
    --------
    >>> [run.id for run in simulate_runs([Plan(1e-4), Plan(1e-3)])]
    ['run0', 'run1']
    """
    if truth is None:
        truth = Truth(
            Reference(
                *(
                    float(np.exp(np.mean(np.log([getattr(plan, name) for plan in plans]))))
                    for name in ("learning_rate", "group_size", "prompts", "parameters")
                )
            )
        )
    rng = np.random.default_rng(seed)
    return [simulate_run(truth, plan, rng, f"run{n}") for n, plan in enumerate(plans)]
