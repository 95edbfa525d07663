"""Cohorts drawn from the model itself: parameters from the prior, data from the parameters.

The data are drawn without the compiled likelihood: curves come from `equations` and `dynamics`,
noise from its definition, so a mistake in the machine code cannot cancel itself out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from advisor.model import (
    LAWS,
    POPULATION,
    RUN_EFFECTS,
    Priors,
    clock_polynomial,
    clock_table,
    cohort_of,
)
from advisor.model import equations as eq
from advisor.model.cohort import Cohort
from advisor.model.fast import data_of, shape_of, shapes_of
from advisor.model.fast.kernel import DEGREES, LEAST_VARIANCE, log_likelihood
from advisor.model.likelihood import residual_persistence
from advisor.model.parameters import LEVELS
from advisor.model.priors import Family
from advisor.runs import PartialSettings, PilotRun
from advisor.theory import FloatArray, IntArray, Oscillator, coefficients, trajectory

Draws = dict[str, FloatArray]
"""Parameters by the names and shapes of `structure.shapes_of`, behind an axis of draws."""

STEPS = 60
PROMPTS = 16.0
SIZES = {"s": 1e5, "m": 4e5}
LEVEL = 0.5
"""Reward at which the sampling noise of a bin is fixed: it must not depend on the data drawn."""

LOG_EVERY = 5
EVALUATE_EVERY = 20
LOGGED_SPREAD = 7
"""Run whose log told the spread within groups, so that its sampling variance is known."""

WATCHED = 2
"""Run whose luck, forecast and hazard are ranked."""

PLANS = (
    # size, learning rate, group size, mini-batches, epochs, further settings
    ("s", 1e-4, 8, 1, 1, {}),
    ("s", 3e-4, 16, 1, 1, {"schedule": "linear", "warmup_steps": 6}),
    ("s", 1e-3, 8, 2, 1, {}),
    ("s", 3e-3, 32, 2, 2, {}),
    ("m", 1e-4, 16, 1, 1, {}),
    ("m", 3e-4, 4, 4, 1, {}),
    ("m", 6e-4, 8, 2, 1, {"importance_ratio": False}),
    ("m", 1e-3, 16, 1, 2, {}),
)
"""The design: no two of learning rate, group size, refresh interval and size go together."""


class Wrong(NamedTuple):
    """What the simulator does differently from the model: the negative controls.

    Attributes
    ----------
    sampling_noise : float
        Factor on the standard deviation of the sampling noise.
    wander : float
        Factor on the slow wander.
    """

    sampling_noise: float = 1.0
    wander: float = 1.0


RIGHT = Wrong()


Plan = tuple[str, float, int, int, int, dict[str, Any]]


def planned(
    rate: float, group: int, minibatches: int, epochs: int, steps: int, **more: Any
) -> PartialSettings:
    """Settings of a pilot of so many steps."""
    return PartialSettings(
        learning_rate=rate,
        group_size=group,
        prompts_per_step=PROMPTS,
        minibatches_per_refresh=minibatches,
        epochs_per_refresh=epochs,
        planned_steps=steps,
        **more,
    )


def mean_of(values: Any) -> list[float] | None:
    """Mean and its standard error; None of nothing."""
    if not len(values):
        return None
    spread = np.std(values, ddof=1) if len(values) > 1 else np.nan
    return [float(np.mean(values)), float(spread / np.sqrt(len(values)))]


def design(plans: Sequence[Plan] = PLANS) -> Cohort:
    """Cohort whose rewards are replaced: runs of 60 steps in 12 bins; eight of two sizes."""
    step = np.arange(LOG_EVERY, STEPS + 1.0, LOG_EVERY)
    tested = np.arange(0.0, STEPS + 1, EVALUATE_EVERY)
    runs = []
    for number, (size, rate, group, minibatches, epochs, more) in enumerate(plans):
        settings = planned(rate, group, minibatches, epochs, STEPS, **more)
        runs.append(
            PilotRun(
                id=f"run{number}",
                path="designed",
                model=size,
                task="task",
                parameters=SIZES[size],
                hyperparameters=settings,
                step=step,
                series={"reward": 0.8 - 0.6 * np.exp(-step / (10 + number))},
                eval_step=tested,
                eval_reward=0.7 - 0.5 * np.exp(-tested / (10 + number)),
                logging_steps=LOG_EVERY,
                reward_floor=0.0,
                reward_ceiling=1.0,
            )
        )
    cohort = cohort_of(runs)
    chance = LEVEL * (1 - LEVEL)
    completions = PROMPTS * np.array([plan[2] for plan in plans], dtype=float)
    rows = cohort.noise_per_prompt.size / len(plans)
    per_bin = STEPS / rows / cohort.epochs
    within = chance / (per_bin * completions)
    between = np.full(len(plans), chance / PROMPTS) / per_bin
    is_known = np.arange(len(plans)) == LOGGED_SPREAD
    run = cohort.run_of_bin
    return replace(
        cohort,
        noise_per_completion=np.where(is_known, 0.0, within)[run],
        noise_per_prompt=np.where(is_known, 0.0, between)[run],
        noise_known=np.where(is_known, 0.6 * within + 0.4 * between, 0.0)[run],
    )


def draw_prior(cohort: Cohort, priors: Priors, family: Family, rng: np.random.Generator) -> Draws:
    """One draw of all parameters from the prior of a family."""
    priors = priors.at(cohort.reference)
    data, shapes = data_of(cohort, priors, family), shapes_of(shape_of(cohort))
    mean, sd = data["level_mean"], data["level_sd"]
    tasks = len(LEVELS[:3])
    scales = {
        "population": (data["prior_mean"], data["prior_sd"]),
        "task_level": (mean[:tasks, None], sd[:tasks, None]),
        "start_logit": (mean[tasks], sd[tasks]),
        "eval_level": (mean[tasks + 1 :, None], sd[tasks + 1 :, None]),
        "group_offset": (0.0, 1.0),
        "run_offset": (0.0, 1.0),
    }
    drawn = {
        name: np.asarray(scales[name][0] + scales[name][1] * rng.standard_normal(size))[None]
        for name, size in shapes.items()
    }
    stiffness = eq.task_log_stiffness(drawn["task_level"][:, 0], drawn["task_level"][:, 1])
    drawn["population"] = np.stack(
        list(eq.at_reference(_shared(drawn), stiffness).values()), axis=1
    )
    return drawn


def simulate(
    cohort: Cohort,
    parameters: Draws,
    family: Family,
    rng: np.random.Generator,
    wrong: Wrong = RIGHT,
) -> Cohort:
    """Draw rewards, evaluations, exposures and collapses of a cohort from one draw of parameters.

    A run that collapses keeps all its bins: given the parameters the model takes the two as
    independent.
    """
    shared = _shared(parameters)
    mean = curves(cohort, parameters, family, cohort.run_of_bin, cohort.clock)[0]
    on_train = curves(cohort, parameters, family, cohort.run_of_eval, cohort.eval_clock)[0]
    reward = mean + _residuals(cohort, shared, rng, wrong)
    tested = _evaluations(cohort, parameters, shared, on_train, rng)
    event = rng.exponential(size=len(cohort.runs)) / np.exp(log_hazard(cohort, parameters)[0])
    return replace(
        cohort,
        reward=reward,
        eval_reward=tested,
        collapsed=(event < cohort.exposure).astype(float),
        exposure=np.minimum(event, cohort.exposure),
    )


def _residuals(
    cohort: Cohort, shared: dict[str, FloatArray], rng: np.random.Generator, wrong: Wrong
) -> FloatArray:
    """Wander and sampling noise of all bins; jointly Student t within a run."""
    within = eq.sigmoid(shared["within_log_odds"])[0]
    split = cohort.noise_per_completion - cohort.noise_per_prompt
    variance = np.exp(2 * shared["log_noise_scale"])[0] * (
        cohort.noise_known + cohort.noise_per_prompt + within * split
    )
    white = np.sqrt(variance * wrong.sampling_noise**2 + LEAST_VARIANCE)
    misfit = wrong.wander * np.exp(shared["log_misfit"])[0]
    persistence = residual_persistence(cohort)
    out = np.empty(cohort.reward.size)
    for run in range(len(cohort.runs)):
        bins = np.flatnonzero(cohort.run_of_bin == run)
        heavy = np.sqrt(DEGREES / rng.chisquare(DEGREES))
        wander = 0.0
        for at in bins:
            left = persistence[at]
            wander = left * wander + misfit * np.sqrt(1 - left**2) * rng.standard_normal()
            out[at] = heavy * (wander + white[at] * rng.standard_normal())
    return out


def _evaluations(
    cohort: Cohort,
    parameters: Draws,
    shared: dict[str, FloatArray],
    on_train: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Held-out rewards, each Student t by itself."""
    group = cohort.group_of_run[cohort.run_of_eval]
    start = eq.sigmoid(parameters["start_logit"])[0, group]
    eval_start = eq.sigmoid(parameters["eval_level"][0, 0, group])
    gain = np.exp(parameters["eval_level"][0, 1, group])
    spread = np.sqrt(
        np.exp(2 * shared["log_eval_noise"])[0]
        + np.exp(2 * shared["log_misfit"])[0]
        + LEAST_VARIANCE
    )
    noise = spread * rng.standard_t(DEGREES, size=group.size)
    return np.asarray(eq.held_out(on_train, start, eval_start, gain) + noise)


# What follows takes many draws at once: the truth is one draw, a posterior a hundred.


def _shared(parameters: Draws) -> dict[str, FloatArray]:
    """Population parameters by name, each of shape (draws,)."""
    return dict(zip(POPULATION, parameters["population"].T, strict=True))


def _law(shared: dict[str, FloatArray], law: str, matrix: FloatArray) -> FloatArray:
    """Value of a law for each run, shape (draws, runs)."""
    terms = np.stack([shared[f"{law}.{term}"] for term in LAWS[law]], axis=1)
    return np.asarray(terms @ matrix.T)


def log_hazard(cohort: Cohort, parameters: Draws) -> FloatArray:
    """Log collapse rate of each run, shape (draws, runs)."""
    law = _law(_shared(parameters), "hazard", eq.hazard_design(cohort.covariates))
    return np.asarray(np.log(eq.hazard(law)))


def group_levels(cohort: Cohort, parameters: Draws) -> eq.GroupLevel:
    """Start, cold plateau and log stiffness of each group, of shape (draws, groups)."""
    shared = {name: values[:, None] for name, values in _shared(parameters).items()}
    task = cohort.task_of_group
    return eq.group_level(
        shared,
        parameters["task_level"][:, 0, task],
        parameters["task_level"][:, 1, task],
        parameters["start_logit"],
        parameters["group_offset"][:, 0],
        parameters["group_offset"][:, 1],
        cohort.group_log_parameters,
    )


def curves(
    cohort: Cohort, parameters: Draws, family: Family, run: IntArray, clock: FloatArray
) -> FloatArray:
    """Expected reward of runs at points of their clocks, shape (draws, points), as shares.

    ``run`` is the index of the run of each point; ``clock``, of shape (points, 4), is S at the
    tabulated learning-rate exponents.
    """
    shared = _shared(parameters)
    tall = {name: values[:, None] for name, values in shared.items()}
    group = cohort.group_of_run
    task = cohort.task_of_group[group]
    level = eq.GroupLevel(*(part[:, group] for part in group_levels(cohort, parameters)))
    luck = parameters["run_offset"]
    x = cohort.covariates
    runs = eq.run_level(
        tall,
        level,
        _law(shared, "rate", eq.rate_design(x)),
        _law(shared, "plateau_loss", eq.plateau_loss_design(x)),
        (luck[:, 0], luck[:, 1], luck[:, 2]),
        parameters["task_level"][:, 2, task],
        cohort.minibatches * cohort.epochs,
        cohort.clipped,
    )
    uncorrected = eq.uncorrected(tall, cohort.corrected)[:, run]
    at = eq.RunLevel(*(part[:, run] for part in runs))
    momentum, age = cohort.momentum[run], cohort.mean_age[run]
    powers = np.stack([shared["rate.learning_rate"] ** power for power in range(4)], axis=1)
    time = powers @ clock_polynomial(clock).T
    if not family.is_oscillator:
        return np.asarray(eq.expected_reward(time, at, momentum, age, uncorrected))
    bare = coefficients(at.stiffness, momentum, age, uncorrected)
    stale = uncorrected * at.stiffness * age
    damping = 1 - stale / (1 + (stale / eq.STALE_LIMIT) ** 4) ** 0.25
    mode = Oscillator(bare.mass, damping, bare.stiffness)
    return np.asarray(trajectory(np.maximum(time, 0.0), at.start, at.plateau, mode))


def quantities(
    cohort: Cohort, parameters: Draws, priors: Priors, family: Family
) -> dict[str, FloatArray]:
    """What is ranked, each of shape (draws,).

    All population parameters, the levels of the task, start, held-out start and gain of the first
    group, plateau and log stiffness of both groups, the luck of one run, its log hazard, its
    expected reward at twice the horizon, and the log likelihood: a quantity of parameters and data
    together sees errors that leave every marginal right (Modrak et al., arXiv:2211.02383).
    """
    out = _shared(parameters)
    for row, name in enumerate(LEVELS[:3]):
        out[name] = parameters["task_level"][:, row, 0]
    out["start_logit"] = parameters["start_logit"][:, 0]
    for row, name in enumerate(LEVELS[4:]):
        out[name] = parameters["eval_level"][:, row, 0]
    levels = group_levels(cohort, parameters)
    for group, (_, model) in enumerate(cohort.groups):
        out[f"plateau [{model}]"] = levels.cold_plateau[:, group]
        out[f"stiffness [{model}]"] = levels.log_stiffness[:, group]
    for row, name in enumerate(RUN_EFFECTS):
        out[name.replace("run_offset", "luck")] = parameters["run_offset"][:, row, WATCHED]
    out["log hazard of a run"] = log_hazard(cohort, parameters)[:, WATCHED]
    late = clock_table(cohort.settings[WATCHED], 2 * STEPS)[-1:]
    out["reward at twice the horizon"] = curves(
        cohort, parameters, family, np.array([WATCHED]), late
    )[:, 0]
    out["log likelihood"] = _log_likelihood(cohort, parameters, priors, family)
    return out


def _log_likelihood(
    cohort: Cohort, parameters: Draws, priors: Priors, family: Family
) -> FloatArray:
    """Of each draw, by the compiled kernel on runs that are sampled by their luck."""
    data = data_of(cohort, priors, family)
    table = (data["run_table"], data["parents"], data["first_bin"], data["bin_table"])
    out = []
    for draw in range(len(parameters["population"])):
        point = tuple(np.ascontiguousarray(values[draw]) for values in parameters.values())
        slope = tuple(np.zeros_like(part) for part in point)
        out.append(log_likelihood(point, table, float(data["is_oscillator"]), slope))
    return np.array(out)
