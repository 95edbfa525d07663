"""What the model sees of a cohort, and what parameters say of it: expected rewards, their density.

The PyMC model evaluates the first two with PyTensor variables, everything that looks at draws with
numpy arrays. What a curve leaves of a run's rewards is a slow AR(1) residual, correlated from bin
to bin, besides the sampling noise of each bin. A run's residuals are jointly Student t, so that an
odd run does not drag the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from advisor.model import equations as eq
from advisor.model.cohort import CLOCK_EXPONENTS, MAX_BINS, Cohort, clock_polynomial
from advisor.model.equations import DEGREES
from advisor.model.parameters import GROUP_EFFECTS, LAWS, LEVELS, POPULATION, RUN_EFFECTS, SCALARS
from advisor.theory import FloatArray, IntArray, namespace


@dataclass(frozen=True)
class Observations:
    """Rewards of a cohort and what explains them."""

    coords: dict[str, list[Any]]  # labels of the dimensions: task, group (task / model), run, bin
    train_reward: FloatArray  # (runs, bins): share of the reward range; 0 where a run has none
    held_out_reward: FloatArray  # (evaluations,)
    exposure: FloatArray  # of each run: steps survived, weighted by (rate / peak)^2
    collapsed: FloatArray  # of each run: 1 for a collapse
    task_of_group: IntArray
    group_of_run: IntArray
    run_of_evaluation: IntArray
    group_log_parameters: FloatArray  # log(N / N_ref)
    floor: float  # bounds of the reward, in reward units
    ceiling: float
    constant: dict[str, FloatArray]  # what is known of runs, bins and evaluations, by name
    dims: dict[str, tuple[str, ...]]  # dimensions of `constant`

    @property
    def is_logged(self) -> FloatArray:
        """1 where a run has the bin, else 0, shape (runs, bins)."""
        return self.constant["is_logged"]


def observations(cohort: Cohort) -> Observations:
    """Lay the bins of a cohort out by run."""
    runs = len(cohort.runs)
    first = np.searchsorted(cohort.run_of_bin, np.arange(runs))
    place = (cohort.run_of_bin, np.arange(cohort.reward.size) - first[cohort.run_of_bin])

    def by_run(values: FloatArray) -> FloatArray:
        table = np.zeros((runs, MAX_BINS, *values.shape[1:]))
        table[place] = values
        return table

    constant = {
        **{
            f"{law}_design": (design, ("run", f"{law}_column"))
            for law, design in eq.designs(cohort.covariates).items()
        },
        "refresh_interval": (cohort.minibatches * cohort.epochs, ("run",)),
        "clipped": (cohort.clipped, ("run",)),
        "corrected": (cohort.corrected, ("run",)),
        "momentum": (cohort.momentum, ("run",)),
        "mean_age": (cohort.mean_age, ("run",)),
        "is_logged": (by_run(np.ones(cohort.reward.size)), ("run", "bin")),
        "step": (by_run(cohort.step), ("run", "bin")),
        "clock": (by_run(clock_polynomial(cohort.clock)), ("run", "bin", "clock_power")),
        "correlation": (_correlation(cohort, place), ("run", "bin", "bin_before")),
        "noise_known": (by_run(cohort.noise_known), ("run", "bin")),
        "noise_within": (by_run(cohort.noise_per_completion), ("run", "bin")),
        "noise_between": (by_run(cohort.noise_per_prompt), ("run", "bin")),
        "eval_clock": (clock_polynomial(cohort.eval_clock), ("evaluation", "clock_power")),
    }
    return Observations(
        coords={
            "task": list(cohort.tasks),
            "group": [f"{task} / {model}" for task, model in cohort.groups],
            "run": [run.id for run in cohort.runs],
            "bin": list(range(MAX_BINS)),
            "bin_before": list(range(MAX_BINS)),
            "clock_power": list(range(CLOCK_EXPONENTS.size)),
            **{f"{law}_column": list(terms) for law, terms in LAWS.items()},
            **{f"{law}_term": [t for t in terms if t != "level"] for law, terms in LAWS.items()},
            "shared_term": list(SCALARS),
            "group_effect": [name.split(".")[1] for name in GROUP_EFFECTS],
            "run_effect": [name.split(".")[1] for name in RUN_EFFECTS],
            "evaluation": [
                f"{cohort.runs[run].id} {index}" for index, run in enumerate(cohort.run_of_eval)
            ],
        },
        train_reward=by_run(cohort.reward),
        held_out_reward=cohort.eval_reward,
        exposure=cohort.exposure,
        collapsed=cohort.collapsed,
        task_of_group=cohort.task_of_group,
        group_of_run=cohort.group_of_run,
        run_of_evaluation=cohort.run_of_eval,
        group_log_parameters=cohort.group_log_parameters,
        floor=cohort.floor,
        ceiling=cohort.ceiling,
        constant={name: values for name, (values, _) in constant.items()},
        dims={name: dims for name, (_, dims) in constant.items()},
    )


def residual_persistence(cohort: Cohort) -> FloatArray:
    """Correlation of the residual of a bin with the one before: ``exp(-(t - t') / tau)``."""
    persistence = np.zeros(cohort.reward.size)
    for run in np.unique(cohort.run_of_bin):
        bins = np.flatnonzero(cohort.run_of_bin == run)
        step = cohort.step[bins]
        tau = eq.WANDER_SHARE * max(float(step[-1]), 1.0)
        persistence[bins[1:]] = np.exp(-np.diff(step) / tau)
    return persistence


def _correlation(cohort: Cohort, place: tuple[IntArray, IntArray]) -> FloatArray:
    """Correlation of the residual between the bins of each run, (runs, bins, bins)."""
    kept = np.zeros((len(cohort.runs), MAX_BINS))
    kept[place] = residual_persistence(cohort)
    table = np.zeros((len(cohort.runs), MAX_BINS, MAX_BINS))
    for late in range(MAX_BINS):
        table[:, late, late] = 1.0
        for early in range(late):
            between = kept[:, early + 1 : late + 1].prod(axis=1)
            table[:, late, early] = table[:, early, late] = between
    return table


SAMPLED = (*POPULATION, *LEVELS, *GROUP_EFFECTS, *RUN_EFFECTS, "is_oscillator")
"""Draws that the equations of every run need."""


class Expectation(NamedTuple):
    """Rewards in shares of the reward range; ``...`` are draws, or nothing in PyTensor."""

    group: eq.GroupLevel
    train_reward: Any
    sampling_variance: Any
    residual_variance: Any
    held_out_reward: Any
    held_out_scale: Any
    hazard: Any


def expectation(
    parameters: Mapping[str, Any], data: Mapping[str, Any], seen: Observations
) -> Expectation:
    """Evaluate the model's equations for every run of a cohort.

    Long because: these are the equations, one after the other.
    """
    xp = namespace(parameters["log_misfit"])
    task, of = seen.task_of_group, seen.group_of_run
    group = _groups(parameters, parameters, seen, xp)
    run = eq.run_level(
        parameters,
        eq.GroupLevel(*(part[..., of] for part in group)),
        _law("rate", parameters, data),
        _law("plateau_loss", parameters, data),
        tuple(parameters[name] for name in RUN_EFFECTS),
        parameters["log_onset"][..., task[of]],
        data["refresh_interval"],
        data["clipped"],
        xp,
    )
    uncorrected = eq.uncorrected(parameters, data["corrected"], xp)
    exponent = parameters["rate.learning_rate"]
    within = eq.sigmoid(parameters["within_log_odds"], xp)[..., None]
    noise = xp.exp(2 * parameters["log_noise_scale"])[..., None]
    sampling = data["noise_known"] + within * data["noise_within"]
    sampling = sampling + (1 - within) * data["noise_between"]
    evaluated = seen.run_of_evaluation

    single = parameters["is_oscillator"]

    def curve(clock: Any, at: Any, power: Any, is_oscillator: Any) -> Any:
        return eq.expected_reward(
            sum(power**index * clock[..., index] for index in range(CLOCK_EXPONENTS.size)),
            eq.RunLevel(*(at(part) for part in run)),
            at(data["momentum"]),
            at(data["mean_age"]),
            at(uncorrected),
            is_oscillator,
            xp,
        )

    residual = xp.exp(2 * parameters["log_misfit"])
    return Expectation(
        group=group,
        train_reward=curve(
            data["clock"], lambda part: part[..., None], exponent[..., None], single[..., None]
        ),
        sampling_variance=noise * sampling,
        residual_variance=residual,
        held_out_reward=eq.held_out(
            curve(data["eval_clock"], lambda part: part[..., evaluated], exponent, single),
            run.start[..., evaluated],
            eq.sigmoid(parameters["eval_start_logit"], xp)[..., of[evaluated]],
            xp.exp(parameters["log_eval_gain"])[..., of[evaluated]],
            xp,
        ),
        held_out_scale=xp.sqrt(
            xp.exp(2 * parameters["log_eval_noise"]) + residual + eq.LEAST_VARIANCE
        ),
        hazard=eq.hazard(_law("hazard", parameters, data), xp),
    )


def _groups(
    population: Mapping[str, Any], levels: Mapping[str, Any], seen: Observations, xp: Any = np
) -> eq.GroupLevel:
    """Level of each (task, model)."""
    return eq.group_level(
        population,
        levels["headroom_logit"][..., seen.task_of_group],
        levels["log_slope"][..., seen.task_of_group],
        levels["start_logit"],
        levels["group_offset.headroom"],
        levels["group_offset.stiffness"],
        seen.group_log_parameters,
        xp,
    )


def _law(law: str, parameters: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    """Value of a linear law for each run, shape (..., runs)."""
    design = data[f"{law}_design"]
    return sum(parameters[f"{law}.{term}"] * design[:, i] for i, term in enumerate(LAWS[law]))


def group_summaries(
    parameters: Mapping[str, Any], group: eq.GroupLevel, seen: Observations
) -> dict[str, Any]:
    """What users ask of each (task, model), at the reference configuration."""
    xp = namespace(group.log_stiffness, group.start)
    size = seen.group_log_parameters
    span = seen.ceiling - seen.floor
    return {
        "start": seen.floor + span * group.start,
        "plateau": seen.floor + span * eq.reference_plateau(parameters, group, size, xp),
        "stiffness": xp.exp(group.log_stiffness),
        "collapse_rate": eq.hazard(
            parameters["hazard.level"] + parameters["hazard.size"] * size, xp
        ),
    }


def covariance(white: Any, residual: Any, correlation: Any) -> Any:
    """Covariance of the bins of a run, up to the common factor of the Student t."""
    diagonal = white[..., None] * np.eye(MAX_BINS)
    return residual[..., None, None] * correlation + diagonal


def run_log_density(
    value: Any, mean: Any, white: Any, residual: Any, correlation: Any, is_logged: Any
) -> Any:
    """Joint log density of the bins of each run."""
    return bin_log_densities(value, mean, white, residual, correlation, is_logged).sum(axis=-1)


def bin_log_densities(
    value: Any, mean: Any, white: Any, residual: Any, correlation: Any, is_logged: Any
) -> Any:
    """Log density of each bin given those before it in its run; they sum to the joint one."""
    from scipy.special import gammaln

    xp = namespace(value, mean, white, residual)
    root = xp.linalg.cholesky(covariance(white, residual, correlation))
    surprise = is_logged * _forward(root, value - mean)
    before = DEGREES + np.arange(MAX_BINS)
    squares = xp.cumsum(surprise**2, axis=-1)
    earlier = squares - surprise**2
    log_sd = xp.log(xp.diagonal(root, axis1=-2, axis2=-1))
    constant = gammaln((before + 1) / 2) - gammaln(before / 2) - np.log(DEGREES * np.pi) / 2
    density = (
        constant
        - log_sd
        + before / 2 * xp.log1p(earlier / DEGREES)
        - (before + 1) / 2 * xp.log1p(squares / DEGREES)
    )
    return is_logged * density


def one_step_ahead(
    value: FloatArray,
    mean: FloatArray,
    white: FloatArray,
    residual: FloatArray,
    correlation: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predictive Student t of each bin given those before it in its run."""
    root = np.linalg.cholesky(covariance(white, residual, correlation))
    surprise = _forward(root, value - mean)
    spread = np.diagonal(root, axis1=-2, axis2=-1)
    degrees: FloatArray = DEGREES + np.arange(MAX_BINS, dtype=float)
    earlier = np.cumsum(surprise**2, axis=-1) - surprise**2
    location = value - spread * surprise
    return (
        np.asarray(location),
        np.asarray(spread * np.sqrt((DEGREES + earlier) / degrees)),
        degrees,
    )


def _forward(root: Any, vector: Any) -> Any:
    """Solve ``root x = vector`` for lower triangles, batches first."""
    if namespace(root, vector) is np:
        out = np.zeros(np.broadcast_shapes(root.shape[:-1], vector.shape))
        for at in range(root.shape[-1]):
            known = np.einsum("...i,...i->...", root[..., at, :at], out[..., :at])
            out[..., at] = (vector[..., at] - known) / root[..., at, at]
        return out
    from pytensor.tensor.linalg import solve_triangular

    return solve_triangular(root, vector, lower=True, b_ndim=1)


def draw_run(
    mean: FloatArray,
    white: FloatArray,
    residual: FloatArray,
    correlation: FloatArray,
    is_logged: FloatArray,
    rng: np.random.Generator,
    size: Any = None,
) -> FloatArray:
    """Draw the bins of runs from the density of :func:`run_log_density`."""
    root = np.linalg.cholesky(covariance(white, np.asarray(residual), np.asarray(correlation)))
    shape = np.broadcast_shapes(np.shape(mean), root.shape[:-1])
    if size is not None:
        shape = (*np.broadcast_shapes(tuple(size), shape[:-1]), shape[-1])
    normal = (root @ rng.standard_normal(shape)[..., None])[..., 0]
    heavy = np.sqrt(DEGREES / rng.chisquare(DEGREES, shape[:-1]))[..., None]
    return np.asarray(np.where(is_logged > 0, mean + heavy * normal, 0.0))


def summaries_of(draws: Mapping[str, FloatArray], seen: Observations) -> dict[str, FloatArray]:
    """What users ask of each (task, model), for draws of the parameters by name."""
    shared = {name: draws[name][..., None] for name in POPULATION}
    return group_summaries(shared, _groups(shared, draws, seen), seen)


@dataclass(frozen=True)
class FittedDraws:
    """What of a posterior the likelihood and its files need; see `model.posterior.Posterior`."""

    draws: Mapping[str, FloatArray]
    pilots: Mapping[str, FloatArray]
    meta: Any
    statistics: Mapping[str, FloatArray] = field(default_factory=dict)
    observations: Observations | None = None

    def flat(self, name: str) -> FloatArray:
        """Draws of one parameter with chains joined, shape (draws, ...)."""
        values = self.draws[name]
        return values.reshape(-1, *values.shape[2:])

    def as_in_priors(self, name: str) -> FloatArray:
        """Draws of one parameter as its prior speaks of it, shape (draws, ...).

        Levels of plateau loss and collapse are kept at the pilots' reference; priors speak of them
        at anchors that do not depend on the pilots (`equations.at_reference`).
        """
        anchored = ("plateau_loss.level", "hazard.level")
        if name not in anchored:
            return self.flat(name)
        population = {key: self.flat(key) for key in (*anchored, "plateau_loss.learning_rate")}
        stiffness = eq.task_log_stiffness(self.flat("headroom_logit"), self.flat("log_slope"))
        return np.asarray(eq.at_anchor(population, stiffness)[name])


def expected_by(posterior: FittedDraws, seen: Observations, kept: Any) -> Expectation:
    """What some draws of a posterior expect, chains joined; ``kept`` are places or a slice."""
    # What all share has a last axis of one, so that it broadcasts over runs.
    draws = {name: posterior.flat(name)[kept] for name in SAMPLED}
    parts = {name: values.reshape(len(values), -1) for name, values in draws.items()}
    return expectation(parts, seen.constant, seen)
