"""Worlds that pilots are simulated in: the model's own, and four that it does not contain.

Every world begins with one draw of the preset's prior: levels, laws, seed noise and collapse rate
of a task. What differs is what the reward does on the way:

- ``well specified``: the closed form of the model.
- ``late collapse``: nothing falls before a threshold of cumulative learning, which no pilot
  reaches; then everything does. The model has a constant rate instead.
- ``kl limit``: replicator kinetics under a KL penalty. The log-odds of a right answer relax to
  the tilted optimum, which depends on the KL coefficient; that is logged, differs between pilots,
  and stands in no law of the model.
- ``sparse logistic``: p(1 - p) kinetics from a start of 0.003 to 0.05, so that a run crawls before
  it rises.
- ``hacking``: the true part of the reward stops and then falls, while a proxy takes the train
  reward on upwards. Held-out evaluations score the true part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from advisor.model import LAWS, POPULATION, Covariates, Priors, Reference, planned_factors
from advisor.model import equations as eq
from advisor.model.parameters import LEVELS
from advisor.runs import PartialSettings, PilotRun, Settings
from advisor.theory import FloatArray, cumulative_clock, policy_steps

WORLDS = ("well specified", "late collapse", "kl limit", "sparse logistic", "hacking")

PILOT_STEPS = 60
FALL_STEPS = 6
"""Steps in which a collapsing policy loses everything."""

EVALUATE_EVERY, EVALUATED = 10, 64
"""Steps between held-out evaluations, and prompts of one."""

SMALLEST = 1e-6

KL_COEFFICIENTS = (0.01, 0.02, 0.04)


class Plan(NamedTuple):
    """One pilot: what `simulation.PLANS` says of it."""

    size: str
    parameters: float
    settings: PartialSettings


class Trained(NamedTuple):
    """Runs of one configuration: rewards of shape (runs, steps), held-out (runs, steps + 1)."""

    reward: FloatArray
    held_out: FloatArray


@dataclass(frozen=True)
class World:
    """A task, its models and the kind of its kinetics.

    Attributes
    ----------
    kind : str
        One of ``WORLDS``.
    reference : Reference
        Geometric mean of the pilots, at which the laws have their levels.
    population : dict of str to float
    level : dict of str to float
        Of the task: headroom, slope, onset.
    start, headroom, stiffness : dict of str to float
        Log-odds of the start and the offsets of each model, by name.
    hottest : float
        Largest learning rate among the pilots.
    crossing, heat_power : float
        Pilots' lengths after which the hottest pilot would fall, and the power of the learning rate
        by which runs come to fall sooner.
    tilt : float
        Log-odds gained by the tilted optimum at the middle KL coefficient.
    top : float
        Reward that logistic kinetics tends to.
    sparse : float
        Their start.
    turn : float
        Progress at which the proxy takes over.
    logged : int
        Steps of the log on which the memory of the slow residual rests; 0 for all.
    """

    kind: str
    reference: Reference
    population: dict[str, float]
    level: dict[str, float]
    start: dict[str, float]
    headroom: dict[str, float]
    stiffness: dict[str, float]
    hottest: float
    crossing: float
    heat_power: float
    tilt: float
    top: float
    sparse: float
    turn: float
    logged: int = 0

    def train(
        self,
        settings: Settings,
        size: str,
        parameters: float,
        runs: int,
        steps: int,
        rng: np.random.Generator,
        *,
        is_pilot: bool = False,
        luck: FloatArray | None = None,
    ) -> Trained:
        """Train runs of one configuration of a model, with all noise that a log shows.

        A pilot of ``late collapse`` ended before its threshold. Luck are the effects of the runs in
        standard deviations, shape (3, runs), which are drawn where it is not given.
        """
        factors = planned_factors(settings, steps)
        clock = cumulative_clock(factors, self.population["rate.learning_rate"])
        luck = rng.standard_normal((3, runs)) if luck is None else luck
        run = self._run(settings, size, parameters, luck)
        shown, true = self._kinetics(settings, run, clock)
        wander = self._wander(runs, steps, rng)
        alive = self._alive(settings, parameters, factors, runs, rng, is_pilot=is_pilot)
        shown = np.clip((shown + wander) * alive, SMALLEST, 1 - SMALLEST)
        behind = policy_steps(
            np.arange(1, steps + 1),
            settings.minibatches_per_refresh,
            settings.epochs_per_refresh,
            settings.lag,
        ).astype(int)
        reward = self._batches(shown[:, behind], settings, rng)
        return Trained(reward, np.clip((true + wander) * alive, SMALLEST, 1 - SMALLEST))

    def _covariates(self, settings: Settings, parameters: float) -> Covariates:
        return Covariates(
            np.log(settings.learning_rate / self.reference.learning_rate),
            np.log(settings.group_size / self.reference.group_size),
            np.log(settings.prompts_per_step / self.reference.prompts_per_step),
            np.log(parameters / self.reference.parameters),
            np.log(settings.minibatches_per_refresh),
            np.log(settings.epochs_per_refresh),
        )

    def _law(self, name: str, x: Covariates) -> float:
        design = getattr(eq, f"{name}_design")(x)
        return float(design @ [self.population[f"{name}.{term}"] for term in LAWS[name]])

    def _run(
        self, settings: Settings, size: str, parameters: float, luck: FloatArray
    ) -> eq.RunLevel:
        """Start, plateau and shape of each run, arrays of shape (runs, 1)."""
        x = self._covariates(settings, parameters)
        group = eq.group_level(
            self.population,
            self.level["headroom_logit"],
            self.level["log_slope"],
            self.start[size],
            self.headroom[size],
            self.stiffness[size],
            x.log_parameters,
        )
        plateau, rate, shape = luck
        run = eq.run_level(
            self.population,
            group,
            self._law("rate", x),
            self._law("plateau_loss", x),
            (plateau, rate, shape),
            self.level["log_onset"],
            float(settings.refresh_interval),
            float(settings.importance_ratio),
        )
        return eq.RunLevel(*(np.broadcast_to(part, plateau.shape)[:, None] for part in run))

    def _kinetics(
        self, settings: Settings, run: eq.RunLevel, clock: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Policy's train reward and its true part after 0.. steps, shape (runs, steps + 1)."""
        progress = run.stiffness * clock
        if self.kind == "kl limit":
            tilt = self.tilt * KL_COEFFICIENTS[1] / settings.kl_coefficient
            begin = np.log(run.start / (1 - run.start))
            shown = eq.sigmoid(begin - tilt * np.expm1(-progress))
        elif self.kind == "sparse logistic":
            begin = np.log(self.sparse / (1 - self.sparse))
            # A slope of k at the middle: dp/dt = 4 k p (1 - p).
            shown = self.top * eq.sigmoid(begin + 4 * progress)
        elif self.kind == "hacking":
            # Nineteen twentieths of what is meant is learned when the proxy takes over.
            learned = -np.expm1(-3 * progress / self.turn)
            meant = run.start + (run.plateau - run.start) * learned
            hacked = eq.sigmoid((progress / self.turn - 1.3) / 0.12)
            return meant + 0.6 * (1 - meant) * hacked, meant * (1 - 0.5 * hacked)
        else:
            share = eq.uncorrected(self.population, float(settings.importance_ratio))
            shown = eq.expected_reward(clock, run, settings.momentum, settings.mean_age, share)
        return shown, shown

    def _wander(self, runs: int, steps: int, rng: np.random.Generator) -> FloatArray:
        """Slow residual of the model, with its heavy tails, shape (runs, steps + 1)."""
        left = np.exp(-1 / (eq.WANDER_SHARE * (self.logged or steps)))
        path = rng.standard_normal((runs, steps + 1))
        for step in range(steps):
            path[:, step + 1] = left * path[:, step] + np.sqrt(1 - left**2) * path[:, step + 1]
        heavy = np.sqrt(eq.DEGREES / rng.chisquare(eq.DEGREES, (runs, 1)))
        return np.asarray(np.exp(self.population["log_misfit"]) * heavy * path)

    def _alive(
        self,
        settings: Settings,
        parameters: float,
        factors: FloatArray,
        runs: int,
        rng: np.random.Generator,
        *,
        is_pilot: bool,
    ) -> FloatArray:
        """Share of its level that a policy has left, shape (runs, steps + 1)."""
        threshold = rng.exponential(size=(runs, 1))
        if self.kind == "late collapse":
            heat = np.cumsum((factors * settings.learning_rate / self.hottest) ** self.heat_power)
            limit = self.crossing * PILOT_STEPS * np.exp(0.1 * rng.standard_normal((runs, 1)))
            if is_pilot:
                limit = np.maximum(limit, heat[-1] + 1)
        else:
            rate = eq.hazard(self._law("hazard", self._covariates(settings, parameters)))
            heat, limit = rate * np.cumsum(factors**2), threshold
        over = np.concatenate([np.zeros((runs, 1)), heat >= limit], axis=1)
        return np.asarray(np.clip(1 - np.cumsum(over, axis=1) / FALL_STEPS, 0.0, 1.0))

    def _batches(
        self, mean: FloatArray, settings: Settings, rng: np.random.Generator
    ) -> FloatArray:
        """Rewards of 0 and 1 over prompts of unlike difficulty; epochs score a batch again."""
        within = float(eq.sigmoid(self.population["within_log_odds"]))
        # Difficulty ~ Beta(p n, (1 - p) n) leaves the share n / (n + 1) of p(1-p) within prompts.
        size = within / (1 - within)
        level = np.repeat(mean[..., None], int(settings.prompts_per_step), axis=-1)
        prompt = rng.beta(level * size, (1 - level) * size)
        right = rng.binomial(settings.group_size, prompt).mean(axis=-1) / settings.group_size
        steps = np.arange(mean.shape[1])
        place = steps % settings.refresh_interval
        batch = place % settings.minibatches_per_refresh
        return np.asarray(right[:, steps - place + batch])


def draw_world(kind: str, plans: Sequence[Plan], priors: Priors, rng: np.random.Generator) -> World:
    """Draw a world from a prior; what a kind adds is drawn from ranges stated here."""
    settings = [plan.settings.completed() for plan in plans]
    sizes = {plan.size: plan.parameters for plan in plans}
    reference = Reference(
        *(
            float(np.exp(np.mean(np.log(values))))
            for values in (
                [one.learning_rate for one in settings],
                [one.group_size for one in settings],
                [one.prompts_per_step for one in settings],
                list(sizes.values()),
            )
        )
    )

    def one(name: str) -> float:
        prior = getattr(priors, name.replace(".", "_"))
        return float(prior.mean + prior.sd * rng.standard_normal())

    drawn = {name: one(name) for name in POPULATION}
    level = {name: one(name) for name in LEVELS[:3]}
    stiffness = eq.task_log_stiffness(
        np.array([level["headroom_logit"]]), np.array([level["log_slope"]])
    )
    population = {name: float(v) for name, v in eq.at_reference(drawn, stiffness).items()}
    world = World(
        kind=kind,
        reference=reference,
        population=population,
        level=level,
        start={name: one("start_logit") for name in sizes},
        headroom={name: float(rng.standard_normal()) for name in sizes},
        stiffness={name: float(rng.standard_normal()) for name in sizes},
        hottest=max(one.learning_rate for one in settings),
        crossing=float(rng.uniform(1.1, 2.5)),
        heat_power=float(rng.uniform(1.0, 2.0)),
        tilt=float(rng.uniform(1.0, 2.5)),
        top=float(rng.uniform(0.7, 1.0)),
        sparse=float(np.exp(rng.uniform(np.log(0.003), np.log(0.05)))),
        turn=1.0,
    )
    if kind != "hacking":
        return world
    reached = []
    for plan, own in zip(plans, settings, strict=True):
        run = world._run(own, plan.size, plan.parameters, np.zeros((3, 1)))
        factors = planned_factors(own, PILOT_STEPS)
        clock = cumulative_clock(factors, population["rate.learning_rate"])
        reached.append(float(run.stiffness[0, 0] * clock[-1]))
    # Between two fifths and four fifths of the fastest pilot's way.
    share = float(rng.uniform(0.4, 0.8))
    return World(**{**world.__dict__, "turn": share * max(reached)})


def pilots(world: World, plans: Sequence[Plan], rng: np.random.Generator) -> list[PilotRun]:
    """Pilots of a world as logs; evaluations on held-out prompts where what is meant parts."""
    step = np.arange(1.0, PILOT_STEPS + 1)
    tested = np.arange(0, PILOT_STEPS + 1, EVALUATE_EVERY)
    runs = []
    for number, plan in enumerate(plans):
        settings = plan.settings.completed()
        trained = world.train(
            settings, plan.size, plan.parameters, 1, PILOT_STEPS, rng, is_pilot=True
        )
        more = {}
        if world.kind == "hacking":
            right = rng.binomial(EVALUATED, trained.held_out[0, tested]) / EVALUATED
            more = {"eval_step": tested.astype(float), "eval_reward": right}
        runs.append(
            PilotRun(
                id=f"run{number}",
                path="simulated",
                model=plan.size,
                task="task",
                parameters=plan.parameters,
                hyperparameters=plan.settings,
                step=step,
                series={"reward": trained.reward[0]},
                reward_floor=0.0,
                reward_ceiling=1.0,
                **more,
            )
        )
    return runs
