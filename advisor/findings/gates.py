"""What may be published of a (task, model): plateau and timescale only where they are identified.

A pilot shorter than the timescale shows its start and its slope (docs/theory, T36). The answer then
is that it is too early, with a bound on the plateau and the steps that would identify it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from advisor.common import Words, counted, scientific
from advisor.forecast import Forecaster, Interval, interval_of
from advisor.model import (
    INTERVAL,
    LAWS,
    POPULATION,
    Covariates,
    Meta,
    Posterior,
    RunSummary,
    clock_polynomial,
    clock_table,
    covariates_of,
)
from advisor.model import equations as eq
from advisor.runs import Settings
from advisor.theory import FloatArray

PLATEAU_WIDTH = 0.2
"""Width of the plateau's interval, in reward ranges, from which it is not published: a window of
one timescale leaves 0.21 (sd 0.081, docs/theory, T36)."""

TIMESCALE_FACTOR = 3.0
"""Upper over lower end of the timescale's interval from which it is not published; a window of one
timescale leaves 1.9, of half a one 8 (docs/theory, T36)."""

CONTRACTED = 0.7
"""Width of a posterior interval over that of its prior from which the pilots show too little. They
then contain no more information than the prior did (1 / sqrt(2) = 0.71)."""

PLATEAU_WINDOW = 2.0
TIMESCALE_WINDOW = 1.0
"""Logged window over timescale at which plateau and timescale are identified: sd(R*) = 0.022 and
sd(log T) = 0.26 (docs/theory, T36, at a noise of 0.03). They are stated for one exponential, which
then has e^-2 and e^-1 of its way left. A curve with a slow start or a long tail is taken to show
as much when as much of its way is left."""

FARTHEST = 100_000  # Optimizer steps beyond which no user is advised to log


class MoreSteps(NamedTuple):
    """Steps at peak rate that a pilot lacks, 0 or less where none: median and upper 80 % end."""

    run: str
    median: float
    upper: float


@dataclass(frozen=True)
class Identified:
    """Whether the pilots identify one quantity."""

    span: Interval
    width: float
    prior_width: float
    limit: float

    @property
    def is_identified(self) -> bool:
        """Narrow enough to be of use, and because of the pilots rather than of the prior."""
        return self.width < self.limit and self.width < CONTRACTED * self.prior_width


@dataclass(frozen=True)
class GroupGate:
    """What may be published of one (task, model)."""

    task: str
    model: str
    plateau: Identified
    timescale: Identified
    slope: Interval
    bound: float
    more: MoreSteps | None

    @property
    def is_identified(self) -> bool:
        """Whether both plateau and timescale may be published."""
        return self.plateau.is_identified and self.timescale.is_identified

    @property
    def text(self) -> str:
        """A line: what is identified, a bound for the rest, and what would identify it."""
        return say("group", self, INTERVAL)


def _number(value: float) -> str:
    """Write ``1e-4``, ``2.7e4``, ``16``."""
    return f"{value:.4g}" if 1e-2 <= value < 1e4 else scientific(value)


def gate(posterior: Posterior) -> tuple[GroupGate, ...]:
    """Decide for each (task, model) what of it may be published."""
    meta = posterior.meta
    scale = meta.ceiling - meta.floor
    start_logit = posterior.flat("start_logit")
    prior = prior_groups(meta, len(start_logit), start_logit)
    gates = []
    for index, (task, model) in enumerate(meta.groups):
        plateau = posterior.flat("plateau")[:, index]
        stiffness = posterior.flat("stiffness")[:, index]
        start = posterior.flat("start")[:, index]
        width, before = (_width(one) / scale for one in (plateau, prior.plateau[:, index]))
        level = Identified(interval_of(plateau), width, before, PLATEAU_WIDTH)
        timescale = Identified(
            interval_of(1.0 / stiffness),
            _width(np.log(stiffness)),
            _width(np.log(prior.stiffness[:, index])),
            math.log(TIMESCALE_FACTOR),
        )
        window = TIMESCALE_WINDOW if level.is_identified else PLATEAU_WINDOW
        lacks = not (level.is_identified and timescale.is_identified)
        gates.append(
            GroupGate(
                task,
                model,
                level,
                timescale,
                interval_of(stiffness * (plateau - start)),
                level.span.low,
                _more_steps(posterior, task, model, window) if lacks else None,
            )
        )
    return tuple(gates)


def _more_steps(posterior: Posterior, task: str, model: str, window: float) -> MoreSteps | None:
    """Steps that the pilot lacks which lacks the fewest, of those that did not collapse."""
    lacking = []
    for index, run in enumerate(posterior.meta.runs):
        if (run.task, run.model) != (task, model) or run.collapse_step is not None:
            continue
        settings = run.settings.or_planned_over(int(run.steps))
        wanted = _steps_until(posterior, index, settings, math.exp(-window))
        # Without interpolation: between a finite and an infinite number there is none.
        median, upper = np.quantile(wanted, [0.5, (1 + INTERVAL) / 2], method="higher")
        logged = _clock(posterior, run, settings)
        lacking.append(MoreSteps(run.id, float(median - logged), float(upper - logged)))
    return min(lacking, key=lambda more: more.median, default=None)


def _steps_until(posterior: Posterior, index: int, settings: Settings, left: float) -> FloatArray:
    """Steps at peak learning rate after which a pilot has that share of its way left."""
    pilot = Forecaster.of_pilot(posterior, index)
    steady = settings.model_copy(update={"schedule": "constant", "warmup_steps": 0})
    steps = np.unique(np.geomspace(1, FARTHEST, 200).astype(int))
    run = pilot.run(steady)
    gain = (pilot.curve(steady, steps) - run.start[:, None]) / (run.plateau - run.start)[:, None]
    arrived = gain >= 1 - left
    return np.where(arrived.any(axis=1), steps[arrived.argmax(axis=1)], np.inf)


def _clock(posterior: Posterior, run: RunSummary, settings: Settings) -> float:
    """Logged window in steps at peak rate: decayed steps show no plateau (docs/theory, T34)."""
    exponent = float(np.median(posterior.flat("rate.learning_rate")))
    polynomial = clock_polynomial(clock_table(settings, int(run.steps))[-1])
    return float(polynomial @ exponent ** np.arange(polynomial.size))


def _width(draws: FloatArray) -> float:
    span = interval_of(draws)
    return span.high - span.low


def _rounded_up(steps: float) -> str:
    """Steps to two digits, never fewer than are needed."""
    if not math.isfinite(steps):
        return f"more than {FARTHEST:,}"
    unit = 10 ** max(0, math.floor(math.log10(steps)) - 1)
    return f"{math.ceil(steps / unit - 1e-9) * unit:,}"


class PriorGroups(NamedTuple):
    """Prior draws."""

    plateau: FloatArray
    stiffness: FloatArray
    curvature: FloatArray
    population: dict[str, FloatArray]


def prior_groups(meta: Meta, size: int, start_logit: FloatArray | None = None) -> PriorGroups:
    """Simulate the prior of plateau and stiffness, with a fixed seed."""
    rng, priors = np.random.default_rng(0), meta.placed_priors
    groups, tasks, of = len(meta.groups), len(meta.tasks), list(meta.task_of_group)
    population = {name: priors.drawn(name, rng, size, 1) for name in POPULATION}
    log_parameters = np.log(np.array(meta.group_parameters) / meta.reference.parameters)
    headroom = priors.drawn("headroom_logit", rng, size, tasks)
    slope = priors.drawn("log_slope", rng, size, tasks)
    population = eq.at_reference(population, eq.task_log_stiffness(headroom, slope)[:, None])
    level = eq.group_level(
        population,
        headroom[:, of],
        slope[:, of],
        priors.drawn("start_logit", rng, size, groups) if start_logit is None else start_logit,
        rng.standard_normal((size, groups)),
        rng.standard_normal((size, groups)),
        log_parameters,
    )
    plateau = eq.reference_plateau(population, level, log_parameters)
    return PriorGroups(
        meta.floor + (meta.ceiling - meta.floor) * plateau,
        np.exp(level.log_stiffness),
        population["curvature_exponent"][:, 0],
        {name: np.asarray(values)[:, 0] for name, values in population.items()},
    )


def middle_pilot(meta: Meta) -> RunSummary:
    """Pilot whose settings lie nearest to the reference, in logarithms; the first of equals."""

    def away(run: RunSummary) -> float:
        x = covariates_of(run.settings, meta.reference)
        return float(x.log_rate**2 + x.log_group**2 + x.log_prompts**2)

    return min(meta.runs, key=away)


def at_pilot(
    meta: Meta,
    run: RunSummary,
    population: Mapping[str, FloatArray],
    plateau: FloatArray,
    stiffness: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Take plateaus and stiffness from the reference to the settings of a pilot."""
    x = covariates_of(run.settings, meta.reference)
    rate = np.column_stack([population[f"rate.{term}"] for term in LAWS["rate"]])
    moved = stiffness * np.exp(rate @ eq.rate_design(x))[:, None]
    loss = np.column_stack([population[f"plateau_loss.{term}"] for term in LAWS["plateau_loss"]])
    size = np.log(np.array(meta.group_parameters) / meta.reference.parameters)
    reference = Covariates(*[0.0] * len(Covariates._fields))  # with one update per refresh
    before, after = (
        np.exp(np.clip(loss @ eq.plateau_loss_design(place).T, *eq.LOG_LOSS_ENDS))
        for place in (one._replace(log_parameters=size) for one in (reference, x))
    )
    span = meta.ceiling - meta.floor
    return meta.floor + span * meta.as_share(plateau) * np.exp(before - after), moved


say = Words(
    "advisor.findings", "describe.txt.j2", counted=counted, number=_number, rounded_up=_rounded_up
)
