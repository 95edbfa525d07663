"""Pilots simulated from known parameters, and posteriors made up without sampling, in no time.

What was simulated the model should find again; made-up posteriors pass the code that names real
ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from advisor.model import (
    LAWS,
    NO_LINE,
    POPULATION,
    RUN_EFFECTS,
    SPECTRUM,
    Cohort,
    Covariates,
    Family,
    NormalPrior,
    Posterior,
    Priors,
    Reference,
    build_cohort,
    load_priors,
    make_posterior,
    planned_factors,
)
from advisor.model import equations as eq
from advisor.runs import PartialSettings, PilotRun, Settings
from advisor.theory import cumulative_clock, policy_steps

PRESET = "small_models"


@dataclass(frozen=True)
class Plan:
    """A pilot to simulate.

    ``learning_rate`` is the peak, ``group_size`` counts completions per prompt, ``prompts`` prompts
    per optimizer step. One batch of rollouts is used for ``minibatches`` times ``epochs`` optimizer
    steps (K), older by ``lag`` optimizer steps than within a refresh; ``ratio`` tells whether an
    importance ratio corrects stale rollouts. The learning rate follows ``schedule`` after
    ``warmup`` of the ``steps`` optimizer steps. ``parameters`` are those of the model; a row is
    logged every ``logging`` optimizer steps, and the run collapses at step ``collapse``.
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
        run = PilotRun(
            id=name,
            path=f"{name}.jsonl",
            model=self.model,
            task=self.task,
            parameters=self.parameters,
            hyperparameters=self.settings,
            step=self.logging * np.arange(1.0, reward.size + 1),
            series={"reward": reward},
            logging_steps=self.logging,
        )
        return run.with_updates(**updates)


def rising(steps: int = 60, start: float = 0.2, end: float = 0.8, time: float = 15.0) -> Any:
    """Smooth curve that saturates; all but 1/e of the gain is made within ``time`` steps."""
    return end - (end - start) * np.exp(-np.arange(steps) / time)


HEADROOM_LOGIT, LOG_SLOPE = 1.2, -2.6

STILL = {
    f"log_{name}_spread": -30.0
    for name in ("headroom", "model", "run_rate", "run_plateau", "run_shape", "run_loss")
}
"""Models and runs that differ in nothing but what is known of them."""

KNOWN_SIZES = {"curvature_exponent": 0.0, "plateau_loss.size": 0.5, "hazard.size": 0.5}
"""Size laws of pilots on several sizes, each known within one half; a prior alone knows less."""


def prior_means(
    headroom_logit: float = HEADROOM_LOGIT, log_slope: float = LOG_SLOPE
) -> dict[str, float]:
    """Population in the middle of the prior of a task with these levels, as the laws use it.

    Except for the size laws: few models tolerate a hundred times the size as the prior expects.
    """
    priors = load_priors(PRESET)
    means = {name: getattr(priors, name.replace(".", "_")).mean for name in POPULATION}
    means |= KNOWN_SIZES
    stiffness = eq.task_log_stiffness(np.array([headroom_logit]), np.array([log_slope]))
    return {name: float(mean) for name, mean in eq.at_reference(means, stiffness).items()}


@dataclass(frozen=True)
class Truth:
    """Parameters that pilots are simulated from; offsets of models are zero.

    At the ``reference`` configuration the laws have their levels; ``headroom_logit``, ``log_slope``
    and ``log_onset`` are levels of the task, ``start_logit`` the start by name of the model.
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
        given = (plan.learning_rate, plan.group_size, plan.prompts, float(plan.parameters or 0))
        ratios = np.log(np.array(given) / np.array([*vars(self.reference).values()])).tolist()
        return Covariates(*ratios, *np.log([plan.minibatches, plan.epochs]).tolist())

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
        run = eq.run_level(
            self.population,
            self.group(plan),
            self.law("rate", plan),
            self.law("plateau_loss", plan),
            (luck[0], luck[1], luck[2]),
            self.log_onset,
            settings.refresh_interval,
            float(settings.importance_ratio),
        )
        steps = np.asarray(steps, dtype=float)
        factors = planned_factors(settings, int(steps.max()))
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


def truth_at(reference: Reference, levels: dict[str, float], **population: float) -> Truth:
    """Truth of one point: levels of the task, and parameters that are not in the middle."""
    named = dict(levels)
    start = dict.fromkeys(("tiny-s", "tiny-m"), named.pop("start_logit"))
    return Truth(reference, {**prior_means(), **population}, **named, start_logit=start)


def simulate_run(truth: Truth, plan: Plan, rng: np.random.Generator, name: str = "run") -> PilotRun:
    """Simulate one run with all noise that a log shows.

    An effect of the run, a slow AR(1) residual, difficulty of prompts, rewards of 0 and 1, reused
    batches. A run collapses at ``plan.collapse``: its policy loses everything within six steps.
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
    """Simulate pilots ``run0``, ``run1``, ...

    Without a truth parameters are those in the middle of the prior, at a reference between the
    plans.
    """
    if truth is None:
        names = ("learning_rate", "group_size", "prompts", "parameters")
        values = np.log([[getattr(plan, name) for name in names] for plan in plans])
        truth = Truth(Reference(*np.exp(values.mean(axis=0)).tolist()))
    rng = np.random.default_rng(seed)
    return [simulate_run(truth, plan, rng, f"run{n}") for n, plan in enumerate(plans)]


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
    """Cohort of smooth rising pilots; those with a ``collapse`` fall to the floor there."""
    low, high = bounds
    runs = []
    collapse = {f"run{n}": plan.collapse and float(plan.collapse) for n, plan in enumerate(plans)}
    for index, (name, plan) in enumerate(zip(collapse, plans, strict=True)):
        curve = rising(plan.steps, end=0.8 - 0.01 * index)
        if plan.collapse is not None:
            curve[plan.collapse - 1 :] = 0.0
        reward = low + (high - low) * curve
        runs.append(plan.run(reward, name, reward_floor=low, reward_ceiling=high))
    healthy = {name: None if step is None else step - 3 for name, step in collapse.items()}
    return build_cohort(runs, collapse, healthy)


def made_up_posterior(
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
    """Posterior of random draws around the prior means.

    ``width`` is the spread of a draw over that of its prior, ``moved`` are parameters that stand at
    one value. As a prior, levels of plateau loss and collapse are those that it implies; otherwise
    they are those at the reference, around ``PILOTED``.

    Many parameters because: a test sets the one that it is about.
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


def with_meta(posterior: Posterior, **changed: Any) -> Posterior:
    """The same draws, and something else beside them."""
    return replace(posterior, meta=posterior.meta.model_copy(update=changed))


def with_priors(posterior: Posterior, **changed: Any) -> Posterior:
    """The same draws under other entries of the preset."""
    return with_meta(posterior, priors=posterior.meta.priors.model_copy(update=changed))


def with_runs(posterior: Posterior, **changed: Any) -> Posterior:
    """The same draws of pilots that were all something else."""
    runs = tuple(run.model_copy(update=changed) for run in posterior.meta.runs)
    return with_meta(posterior, runs=runs)


def without_line(posterior: Posterior) -> Posterior:
    """Posterior whose P(stable) is the model's own."""
    return with_priors(posterior, stability_line=NO_LINE)


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
    if is_prior:
        placed, centre, spread = priors.at(cohort.reference), moved, {}
    else:
        source = "Of made-up pilots, whatever a preset believes of real ones."
        speed = NormalPrior(mean=-4.0, sd=1.5, source=source)
        placed = priors.model_copy(update={"log_slope": speed})
        centre, spread = PILOTED | KNOWN_SIZES | moved, dict.fromkeys(KNOWN_SIZES, 0.5)
    spread |= dict.fromkeys(moved, 0.0)

    def around(names: Sequence[str], *shape: int) -> Any:
        given = {name: getattr(placed, name.replace(".", "_")) for name in names}
        mean = np.array([centre.get(name, prior.mean) for name, prior in given.items()])
        sd = np.array([spread.get(name, prior.sd) for name, prior in given.items()])
        return mean + width * sd * rng.standard_normal((2, draws, *shape, len(names)))

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
