"""Pilots simulated from known parameters, and posteriors made up without sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from advisor.model import equations as eq
from advisor.model.cohort import Cohort, Covariates, Reference, build_cohort
from advisor.model.families import SPECTRUM, Family
from advisor.model.parameters import LAWS, POPULATION, RUN_EFFECTS
from advisor.model.posterior import Posterior, make_posterior
from advisor.model.priors import Priors, load_priors
from advisor.run.pilot_run import PilotRun
from advisor.run.settings import PartialSettings, Settings
from advisor.theory import cumulative_clock, policy_steps, schedule_factors

PRESET = "small_models"


@dataclass(frozen=True)
class Plan:
    """A pilot to simulate."""

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
        return self.settings.completed()

    def run(self, reward: Any, name: str = "run", **updates: Any) -> PilotRun:
        """Log rewards, one per logged row, under this plan."""
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
    """A smooth curve that saturates, one value per step."""
    return end - (end - start) * np.exp(-np.arange(steps) / time)


# Known truth -----------------------------------------------------------------------------------


HEADROOM_LOGIT, LOG_SLOPE = 1.2, -2.6


KNOWN_SIZES = {"curvature_exponent": 0.0, "plateau_loss.size": 0.5, "hazard.size": 0.5}
"""Size laws of pilots on several sizes, each known within one half; a prior alone knows less."""


def prior_means(
    headroom_logit: float = HEADROOM_LOGIT, log_slope: float = LOG_SLOPE
) -> dict[str, float]:
    """Population in the middle of the prior of a task with these levels, as the laws use it.

    But for the size laws: few models stand a hundred times the size as the prior expects.
    """
    priors = load_priors(PRESET)
    means = {name: getattr(priors, name.replace(".", "_")).mean for name in POPULATION}
    means |= KNOWN_SIZES
    stiffness = eq.task_log_stiffness(np.array([headroom_logit]), np.array([log_slope]))
    return {name: float(mean) for name, mean in eq.at_reference(means, stiffness).items()}


@dataclass(frozen=True)
class Truth:
    """Parameters that pilots are simulated from; starts by model name, offsets zero."""

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
        return Covariates(
            np.log(plan.learning_rate / self.reference.learning_rate),
            np.log(plan.group_size / self.reference.group_size),
            np.log(plan.prompts / self.reference.prompts_per_step),
            np.log(float(plan.parameters or 0) / self.reference.parameters),
            np.log(plan.minibatches),
            np.log(plan.epochs),
        )

    def law(self, name: str, plan: Plan) -> float:
        design = getattr(eq, f"{name}_design")(self.covariates(plan))
        return float(design @ [self.population[f"{name}.{term}"] for term in LAWS[name]])

    def group(self, plan: Plan) -> eq.GroupLevel:
        return eq.group_level(
            self.population,
            self.headroom_logit,
            self.log_slope,
            self.start_logit.get(str(plan.model), -1.4),
            0.0,
            0.0,
            self.covariates(plan).log_parameters,
        )

    def reward(self, plan: Plan, steps: Any, luck: Sequence[float] = (0.0, 0.0, 0.0)) -> Any:
        """Expected reward of the policy after so many optimizer steps; luck is plateau, stiffness
        and shape.
        """
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
            float(bool(settings.importance_ratio)),
        )
        steps = np.asarray(steps, dtype=float)
        factors = schedule_factors(
            settings.schedule or "constant",
            int(steps.max()),
            warmup_steps=settings.warmup_steps or 0,
            planned_steps=plan.steps,
        )
        clock = cumulative_clock(factors, self.population["rate.learning_rate"])
        return eq.expected_reward(
            np.interp(steps, np.arange(clock.size), clock),
            run,
            settings.momentum,
            settings.mean_age,
            eq.uncorrected(self.population, float(bool(settings.importance_ratio))),
        )

    def hazard(self, plan: Plan) -> float:
        return float(eq.hazard(self.law("hazard", plan)))


def simulate(truth: Truth, plan: Plan, rng: np.random.Generator, name: str = "run") -> PilotRun:
    """Log one run: seed noise, slow wander, prompt difficulty, Bernoulli rewards, reused batches.

    A run collapses at ``plan.collapse``: its policy loses everything within six steps.
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


# Made-up posteriors ----------------------------------------------------------------------------

PILOTED = {"plateau_loss.level": -4.0, "hazard.level": -7.6}
"""Levels at the reference that pilots show of which one in five collapsed, at ten times its rate.
A prior that knows no pilots expects neither loss nor collapse where so little is learned per step.
"""

PLANS = (
    Plan(1e-4, 16, 2),
    Plan(3e-4, 8, 8),
    Plan(3e-3, 8, 2, collapse=25),
    Plan(3e-4, 16, 1, 2, model="tiny-m", parameters=4e5),
    Plan(1e-3, 32, 4, model="tiny-m", parameters=4e5),
)


def cohort_of_plans(
    plans: Sequence[Plan] = PLANS, bounds: tuple[float, float] = (0.0, 1.0)
) -> Cohort:
    """Smooth rising pilots; those with a ``collapse`` fall to the floor there."""
    low, high = bounds
    runs, collapse = [], {}
    for index, plan in enumerate(plans):
        curve = rising(plan.steps, end=0.8 - 0.01 * index)
        if plan.collapse is not None:
            curve[plan.collapse - 1 :] = 0.0
        name = f"run{index}"
        runs.append(
            plan.run(low + (high - low) * curve, name, reward_floor=low, reward_ceiling=high)
        )
        collapse[name] = None if plan.collapse is None else float(plan.collapse)
    healthy = {name: None if step is None else step - 3 for name, step in collapse.items()}
    return build_cohort(runs, collapse, healthy)


def made_up(
    plans: Sequence[Plan] = PLANS,
    *,
    seed: int = 1,
    width: float = 0.3,
    moved: dict[str, float] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    draws: int = 200,
    statistics: dict[str, Any] | None = None,
    diagnostics: dict[str, Any] | None = None,
    family: Family = SPECTRUM,
    is_prior: bool = False,
) -> Posterior:
    """Posterior of random draws around the prior means, ``moved``, through the real namer.

    ``width`` is the spread of a draw over that of its prior. Levels of plateau loss and collapse
    are those at the reference, around ``PILOTED``; with ``is_prior`` those that the prior implies.
    """
    rng = np.random.default_rng(seed)
    cohort, priors = cohort_of_plans(plans, bounds), load_priors(PRESET)
    raw = raw_draws(cohort, priors, rng, draws, width, moved or {}, is_prior)
    shape = (2, draws)
    return make_posterior(
        cohort,
        priors,
        family,
        raw,
        statistics or {"diverging": np.zeros(shape), "n_steps": np.full(shape, 15.0)},
        diagnostics or {name: (np.array([1.001]), np.array([900.0])) for name in raw},
        {"pymc": "none"},
        seed=seed,
    )


def raw_draws(
    cohort: Cohort,
    priors: Priors,
    rng: np.random.Generator,
    draws: int,
    width: float,
    moved: dict[str, float],
    is_prior: bool = False,
) -> dict[str, Any]:
    """Draws by the names and shapes that the model samples."""
    known = {} if is_prior else PILOTED | KNOWN_SIZES

    def around(names: Sequence[str], *shape: int) -> Any:
        given = [getattr(priors, name.replace(".", "_")) for name in names]
        centre = {n: p.mean for n, p in zip(names, given, strict=True)} | known | moved
        mean = np.array([centre[name] for name in names])
        sizes = KNOWN_SIZES if known else {}
        spread = np.array(
            [
                0.0 if n in moved else 0.5 if n in sizes else p.sd
                for n, p in zip(names, given, strict=True)
            ]
        )
        noise = rng.standard_normal((2, draws, *shape, len(names)))
        return mean + width * spread * noise

    groups, runs = len(cohort.groups), len(cohort.runs)
    levels = around(["headroom_logit", "log_slope", "log_onset"], len(cohort.tasks))
    tests = around(["eval_start_logit", "log_eval_gain"], groups)
    population = around(POPULATION)
    if is_prior:
        anchored = dict(zip(POPULATION, np.moveaxis(population, -1, 0), strict=True))
        stiffness = eq.task_log_stiffness(levels[..., 0], levels[..., 1])
        population = np.stack(list(eq.at_reference(anchored, stiffness).values()), axis=-1)
    return {
        "population": population,
        "task_level": np.swapaxes(levels, 2, 3),
        "start_logit": around(["start_logit"], groups)[..., 0],
        "eval_level": np.swapaxes(tests, 2, 3),
        "group_offset": width * rng.standard_normal((2, draws, 2, groups)),
        "run_offset": width * rng.standard_normal((2, draws, len(RUN_EFFECTS), runs)),
    }
