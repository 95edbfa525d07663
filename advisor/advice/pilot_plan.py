"""Before any pilot: which few to run, how long, and whether they are worth their price.

A design is a ladder of learning rates round the one that would be run, towards where other projects
did best, all of one length, weighed by `advisor.advice.pilot_choice.Worth`. Draws of the preset
stand for what may be true, but not for how far from their best settings from few projects are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, Field, PositiveFloat, PositiveInt, ValidationError

from advisor.advice.candidates import RATE_RATIO, RATE_REACH
from advisor.advice.cost import fresh_completions
from advisor.advice.pilot_choice import FEW_PROJECTS, FEWEST_RUNS, Action, Worth
from advisor.advice.request import MOST_STEPS, Steps, whole_batches
from advisor.advice.wording import say_of_pilots
from advisor.common import DEFAULT_SEED
from advisor.errors import InputError
from advisor.forecast import MOST_PARAMETERS, SUPPORT, Forecaster, RunEffect, Target
from advisor.model import Posterior, Priors, build_cohort, load_priors, preset_for, prior_posterior
from advisor.runs import PartialSettings, PilotRun, Settings

SHARE = 0.2  # Share of the full run's price that pilots may cost

COUNTS = (FEWEST_RUNS, FEWEST_RUNS + 1, FEWEST_RUNS + 2)
"""Of fewer pilots no configuration is advised, only the next pilot."""

RATIO = 10**0.5
"""Ratio of neighbouring learning rates of a design. By the presets nearer ones are worth as much;
they taught less in worlds that had shaped no preset (case_studies/economics)."""

VARIED = ((1.0, 4.0), (0.5, 1.0))
"""Factors of group size and refresh interval that pilots beside the middle one take in turn, where
more than the learning rate is to vary."""

KEPT = ((1.0, 1.0),)
"""The same of pilots that differ in one setting, so that their curves can be compared by eye."""

LEAST_STEPS = 10  # Steps of a pilot below which its noise is all that it shows

DRAWS = 2000

PLAN = "plan.json"  # File of a plan, beside the folders of its pilots


class PlannedPilot(BaseModel, frozen=True):
    """One pilot of a plan."""

    name: str
    model: str
    parameters: float
    settings: Settings
    steps: Steps
    price: float  # share of the full run's
    stable: float  # probability that it lives, by the preset


class Design(BaseModel, frozen=True):
    """Pilots that were considered together."""

    pilots: PositiveInt
    model: str
    steps: Steps
    learning_rates: tuple[PositiveFloat, ...] = Field(min_length=1)
    price: float  # of all, as a share of the full run's
    gain: float  # expected, of the decision, as a share of the reward range
    left: int  # optimizer steps that the same money leaves for the full run
    worth: float  # the gain, less what the shorter run loses


class PilotPlan(BaseModel, frozen=True, extra="forbid"):
    """Which pilots to run before a full run."""

    kind: str  # "pilots", or "run" where no design is worth its price
    pilots: tuple[PlannedPilot, ...]  # of the best design, also where it is not worth its price
    designs: tuple[Design, ...] = Field(min_length=1)  # the best of each number of pilots and model
    run_gain: float  # expected of the full run without pilots, as a share of the reward range
    settings: Settings  # of the full run as it would be launched now
    steps: Steps  # of the full run
    share: float  # of its price that pilots may cost
    model: str
    parameters: float
    task: str
    start_reward: float | None  # mean reward before training, if it is known
    trainer: str | None  # for which the pilots' scripts were written
    devices: int  # among which the completions of a step divide
    priors: str
    projects: Steps = 1  # from which the settings are known
    reach: float = Field(SUPPORT, ge=1)  # times as long a run as intervals were tested for

    @classmethod
    def load(cls, path: str | Path) -> PilotPlan:
        """Load the plan of a folder that ``advisor plan`` wrote.

        Raises
        ------
        InputError
            The folder has no plan, or one of another version.
        """
        file = Path(path) / PLAN
        try:
            return cls.model_validate_json(file.read_bytes())
        except (ValidationError, OSError) as error:
            why, advice = "there is no plan", "Give the folder that advisor plan wrote"
            if isinstance(error, ValidationError):
                key = ".".join(str(part) for part in error.errors()[0]["loc"])[:80]
                why = f"the plan cannot be read (at '{key}'): another version wrote it, or it is"
                why, advice = f"{why} damaged", "Run advisor plan again, into another folder"
            raise InputError(why, path=file, argument="plan", advice=advice) from error

    @property
    def text(self) -> str:
        """The plan in words."""
        best = max(self.designs, key=lambda design: design.worth)
        middle = float(np.exp(np.mean(np.log(best.learning_rates))))
        is_moved = abs(math.log(middle / self.settings.learning_rate)) > 0.1
        lost = 100 * FEW_PROJECTS / self.projects
        return say_of_pilots("plan", self, best, middle if is_moved else None, lost)


def planned_settings(stated: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """Complete the settings of a run that is planned, and say what was assumed."""
    partial = PartialSettings.checked(stated, argument="overrides")
    lacking = list(partial.lacking)
    if lacking:
        problem = f"the run that is planned lacks {', '.join(lacking)}"
        advice = "Give them as you would launch the run now, each as name=value"
        raise InputError(problem, argument="overrides", advice=advice)
    return partial.completed(), [str(line) for line in partial.assumptions()]


def size_of(model: str, parameters: float | None, argument: str) -> float:
    """Parameters of a model, as given or as its name tells."""
    size = PilotRun.parameters_in(model) if parameters is None else parameters
    if size is None or not 0 < size <= MOST_PARAMETERS:
        raise InputError(
            f"the size of model '{model}' is unknown" if size is None else f"{size:g} parameters",
            argument=argument,
            advice="Give all parameters of the model, for example 7e9",
        )
    return size


def plan(
    settings: Settings,
    steps: int,
    target: Target,
    *,
    pilot_model: tuple[str, float] | None = None,
    share: float = SHARE,
    vary_all: bool = False,
    projects: int = 1,
    priors: Priors | str | None = None,
    seed: int = DEFAULT_SEED,
) -> PilotPlan:
    """Plan the pilots of a full run that nothing is known of yet.

    Parameters
    ----------
    settings : Settings
        Of the full run as it would be launched now: the pilots vary them.
    steps : int
        Optimizer steps of the full run.
    target : Target
        Task, model and size, and its mean reward before training if it is known.
    pilot_model : (str, float), optional
        A smaller model and its parameters on which pilots may run.
    share : float
        Of the full run's price that pilots may cost, in (0, 1).
    vary_all : bool
        Whether pilots differ in group size and refresh interval as well as in their learning rate.
    projects : int
        Distinct projects from which the settings are known to be best: the fewer, the more pilots
        are worth.
    priors : Priors or str, optional
        Preset [default: by adapter and size, as for a fit].
    seed : int
        Of the draws.

    Returns
    -------
    plan : PilotPlan

    Many parameters because: each is a question of its own to who plans.
    """
    steps = whole_batches(steps, settings.refresh_interval)
    _check(settings, steps, share, projects)
    models = [(target.model, target.parameters), *([pilot_model] if pilot_model else [])]
    posterior = believed(settings, target.task, models, priors, seed)
    forecaster = Forecaster(posterior, target, draws=DRAWS, seed=seed)
    few = FEW_PROJECTS / projects
    worth = Worth(forecaster, ladder(settings), settings, steps, spent=0.0, room=share, few=few)
    rate, known = settings.learning_rate, posterior.meta.priors.known_optimum
    if known is not None and known.learning_rate is not None:
        # Many projects of others count as one of the user's.
        rate *= (known.learning_rate / rate) ** (1 / (projects + 1))
    patterns = (VARIED, VARIED[1:]) if vary_all else (KEPT,)
    found = [one for name, size in models for one in _weighed(worth, name, size, rate, patterns)]
    if not found:
        raise InputError(
            f"{share:.0%} of {steps} steps leaves no {FEWEST_RUNS} pilots of {LEAST_STEPS} steps",
            argument="share",
            advice="Allow pilots a larger share, or a smaller model",
        )
    # Of shorter pilots their own answer would say that it is not supported.
    reach = posterior.meta.priors.extrapolation.times
    longest = max(design.steps for design, *_ in found)
    least = min(longest, steps / reach)
    found = [one for one in found if one[0].steps >= least]
    best, parameters, actions = max(found, key=lambda one: one[0].worth)
    kept = {}
    for design, *_ in sorted(found, key=lambda one: one[0].worth):
        kept[design.model, design.pilots] = design
    return PilotPlan(
        kind="pilots" if best.worth > 0 else "run",
        pilots=tuple(
            PlannedPilot(
                name=action.name,
                model=best.model,
                parameters=parameters,
                settings=action.settings.planned_over(best.steps),
                steps=best.steps,
                price=action.price,
                stable=action.stable,
            )
            for action in actions
        ),
        designs=tuple(kept[key] for key in sorted(kept)),
        run_gain=worth.decided() - float(forecaster.outcome(settings, [0]).mean()),
        settings=settings.planned_over(steps),
        steps=steps,
        share=share,
        **asdict(target),
        trainer=None,
        devices=1,
        priors=posterior.meta.priors.name,
        projects=projects,
        reach=reach,
    )


def _check(settings: Settings, steps: int, share: float, projects: int) -> None:
    """Raise an ``InputError`` where nothing can be planned."""
    if not 0 < share < 1:
        problem = f"{share:g} is no share of a run's price"
        raise InputError(problem, argument="share", advice="Give 0.2, say")
    if settings.group_size < 2:
        problem = f"a group of {settings.group_size} completion is compared with itself"
        raise InputError(problem, argument="group_size", advice="Give at least 2")
    for name, number in (("steps", steps), ("projects", projects)):
        if not 1 <= number <= MOST_STEPS:
            raise InputError(f"{number} {name}", argument=name, advice=f"Give 1 to {MOST_STEPS:,}")


def believed(
    settings: Settings,
    task: str,
    models: Sequence[tuple[str, float]],
    priors: Priors | str | None,
    seed: int,
) -> Posterior:
    """Draws of a preset for a task and models of which nothing was seen."""
    runs = [
        PilotRun(
            id=f"planned {number}",
            path="a plan",
            model=name,
            task=task,
            parameters=size,
            hyperparameters=settings,
            step=np.arange(1.0, PilotRun.LEAST_REWARDS + 1),
            series={"reward": np.linspace(0.2, 0.4, PilotRun.LEAST_REWARDS)},  # nothing looks at it
            reward_floor=0.0,
            reward_ceiling=1.0,
        )
        for number, (name, size) in enumerate(models)
    ]
    named = preset_for(runs[:1])[0] if priors is None else priors
    preset = load_priors(named) if isinstance(named, str) else named
    none = {run.id: None for run in runs}
    return prior_posterior(build_cohort(runs, none, none), preset, draws=DRAWS, seed=seed)


def _weighed(
    worth: Worth,
    model: str,
    parameters: float,
    middle: float,
    patterns: Sequence[Sequence[tuple[float, float]]],
) -> list[tuple[Design, float, list[Action]]]:
    """Designs on one model, its parameters, and the pilots of each."""
    target, seed = worth.forecaster.target, worth.forecaster.seed
    pilots = Forecaster(
        worth.forecaster.posterior,
        replace(target, model=model, parameters=parameters),
        draws=DRAWS,
        seed=seed,
    )
    settings, steps, size = worth.whole, worth.steps, parameters / target.parameters
    found = []
    for count in COUNTS:
        rates = [float(f"{middle * RATIO ** (at - (count - 1) / 2):.2g}") for at in range(count)]
        # Longer refresh intervals need longer pilots: where these have no room, shorter ones do.
        for shrunk, pattern in product((1.0, 1 / 4, 1 / 16), patterns):
            asked = _varied(_scaled(settings, 1.0, shrunk) or settings, rates, pattern)
            interval = math.lcm(*(one.refresh_interval for one in asked))
            batches = [fresh_completions(one) / fresh_completions(settings) for one in asked]
            # Beyond half of the full run's steps a pilot is the run.
            length = int(min(worth.room * steps / (sum(batches) * size), 0.5 * steps))
            length -= length % interval
            if length >= max(LEAST_STEPS, PilotRun.LEAST_REWARDS * interval):
                break
        else:
            continue
        prices = [length * size / steps * batch for batch in batches]
        rng = np.random.default_rng([seed, 2])
        actions = [
            # Each pilot has a seed of its own.
            Action.of(own, f"pilot-{number}", "start", one, (0, length), price, rng)
            for number, (one, price) in enumerate(zip(asked, prices, strict=True), start=1)
            for own in [pilots.with_run_effect(RunEffect.fresh((seed, 1, number)))]
        ]
        gain, left = worth.gain(actions, rng), worth.left(actions)
        design = Design(
            pilots=count,
            model=model,
            steps=length,
            learning_rates=tuple(rates),
            price=sum(prices),
            gain=gain,
            left=left,
            worth=worth.decided(actions) + gain - worth.decided(),
        )
        found.append((design, parameters, actions))
    return found


def _varied(
    settings: Settings, rates: Sequence[float], pattern: Sequence[tuple[float, float]]
) -> list[Settings]:
    """Settings of pilots at these rates: the middle one as the run, the others varied in turn."""
    turns, asked = cycle(pattern), []
    for place, rate in enumerate(rates):
        group, interval = (1.0, 1.0) if place == len(rates) // 2 else next(turns)
        own = _scaled(settings, group, interval) or settings
        asked.append(own.model_copy(update={"learning_rate": rate}))
    return asked


def _scaled(settings: Settings, group: float, interval: float) -> Settings | None:
    """Settings with another group size and refresh interval; None where these are not whole."""
    size, minibatches = settings.group_size * group, settings.minibatches_per_refresh * interval
    if size < 2 or not (float(size).is_integer() and float(minibatches).is_integer()):
        return None
    changes = {"group_size": int(size), "minibatches_per_refresh": int(minibatches)}
    return settings.model_copy(update=changes)


def ladder(settings: Settings) -> list[Settings]:
    """Settings among which the decision is made: within reach of the widest design."""
    reach = RATIO ** ((COUNTS[-1] - 1) / 2) * RATE_REACH
    count = 2 * round(np.log(reach) / np.log(RATE_RATIO)) + 1
    rates = settings.learning_rate * np.geomspace(1 / reach, reach, count)
    others = [_scaled(settings, g, k) for g in (0.5, 1, 2) for k in (0.25, 1, 4)]
    return [
        one.model_copy(update={"learning_rate": float(rate)})
        for one in others
        if one is not None
        for rate in rates
    ]
