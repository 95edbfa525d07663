"""A posterior as ArviZ has it: groups of variables with named dimensions and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from advisor.model import equations as eq
from advisor.model.expectation import Expectation, expectation, group_summaries
from advisor.model.observations import Observations
from advisor.model.parameters import (
    DIMS,
    GROUP_EFFECTS,
    LEVELS,
    POPULATION,
    RUN_EFFECTS,
    TASK_LEVELS,
    model_variables,
)
from advisor.model.priors import Priors
from advisor.model.run_density import bin_log_densities, one_step_ahead
from advisor.theory import FloatArray

PRIOR_DRAWS = 1000
"""Draws of the prior group."""

CHUNK = 250
"""Draws that are evaluated at once: a thousand of 64 runs would take 100 MB a matrix."""


class Variable(NamedTuple):
    """Values with their dimensions, chain and draw first where there are draws."""

    dims: tuple[str, ...]
    values: Any


Group = dict[str, Variable]


class FittedDraws(Protocol):
    """What of a `model.posterior.Posterior` is written for ArviZ."""

    @property
    def draws(self) -> Mapping[str, FloatArray]:
        """Draws by parameter, shape (chains, draws, ...)."""

    @property
    def statistics(self) -> Mapping[str, FloatArray]:
        """Statistics of the sampler, shape (chains, draws)."""

    @property
    def observations(self) -> Observations | None:
        """What was observed; None for a posterior made by hand."""

    @property
    def meta(self) -> Any:
        """Priors and provenance."""

    def flat(self, name: str) -> FloatArray:
        """Draws of one parameter with chains joined."""


def inference_groups(posterior: FittedDraws) -> dict[str, Group]:
    """Every group of ArviZ's schema that a posterior can fill.

    Parameters
    ----------
    posterior : Posterior
        With its observations.

    Returns
    -------
    groups : dict of str to dict of str to Variable
        ``posterior``, ``sample_stats``, ``prior``, ``log_prior``, ``log_likelihood``
        (``whole_run``: all that a run showed; ``train_reward``: each bin given those before it in
        its run, so they sum to the density of the run; ``held_out_reward``;
        ``collapse_exposure``),
        ``posterior_predictive`` (bins one step ahead, as their log likelihood), ``observed_data``,
        ``constant_data``.

    Notes
    -----
    ``whole_run`` is the sum of the other log likelihoods by run: name it, or them, wherever ArviZ
    adds up what it finds (``loo(var_name="whole_run")``,
    ``psense_summary(likelihood_var_names=["whole_run"])``).
    """
    seen = _observations(posterior)
    shape = next(iter(posterior.draws.values())).shape[:2]
    likelihood, predicted = _by_draw(posterior, seen)
    bins = seen.is_logged > 0
    dims = {
        "train_reward": "train_bin",
        "held_out_reward": "evaluation",
        "collapse_exposure": "run",
        "whole_run": "run",
    }

    def sampled(values: Mapping[str, FloatArray]) -> Group:
        return {
            name: Variable(("chain", "draw", dims[name]), part.reshape(*shape, -1))
            for name, part in values.items()
            if part.shape[1]
        }

    observed = {
        "train_reward": seen.train_reward[bins],
        "held_out_reward": seen.held_out_reward,
        "collapse_exposure": seen.exposure,
    }
    constant = {
        "run_of_train_bin": Variable(("train_bin",), np.nonzero(bins)[0]),
        "step_of_train_bin": Variable(("train_bin",), seen.constant["step"][bins]),
        "collapsed": Variable(("run",), seen.collapsed),
        "group_of_run": Variable(("run",), seen.group_of_run),
        "task_of_group": Variable(("group",), seen.task_of_group),
    }
    return {
        "posterior": posterior_group(posterior.draws),
        "sample_stats": {
            name: Variable(("chain", "draw"), values > 0 if name == "diverging" else values)
            for name, values in posterior.statistics.items()
        },
        "prior": posterior_group(prior_draws(posterior.meta.placed_priors, seen)),
        "log_prior": {
            name: Variable(("chain", "draw", *DIMS.get(name, ())), values)
            for name, values in _log_prior(posterior).items()
        },
        "log_likelihood": sampled(likelihood),
        "posterior_predictive": sampled(predicted),
        "observed_data": {
            name: Variable((dims[name],), values)
            for name, values in observed.items()
            if values.size
        },
        "constant_data": constant,
    }


def labels(seen: Observations) -> dict[str, list[str]]:
    """Coordinates by name: tasks, models, runs, bins and terms of the laws."""
    bins = [
        f"{seen.coords['run'][run]} [{index}]"
        for run, index in zip(*np.nonzero(seen.is_logged > 0), strict=True)
    ]
    return {
        **{name: list(map(str, values)) for name, values in seen.coords.items()},
        "train_bin": bins,
    }


def prior_draws(priors: Priors, seen: Observations) -> dict[str, FloatArray]:
    """Draws of the prior, by the names of the parameters, with a fixed seed."""
    rng = np.random.default_rng(0)
    sizes = {
        **dict.fromkeys(POPULATION, ()),
        **{
            name: (len(seen.coords["task" if name in TASK_LEVELS else "group"]),) for name in LEVELS
        },
    }
    draws = {}
    for name, size in sizes.items():
        prior = getattr(priors, name.replace(".", "_"))
        draws[name] = prior.mean + prior.sd * rng.standard_normal((1, PRIOR_DRAWS, *size))
    stiffness = eq.task_log_stiffness(draws["headroom_logit"], draws["log_slope"])
    draws = eq.at_reference(draws, stiffness)
    for names, dim in ((GROUP_EFFECTS, "group"), (RUN_EFFECTS, "run")):
        for name in names:
            draws[name] = rng.standard_normal((1, PRIOR_DRAWS, len(seen.coords[dim])))
    group = eq.group_level(
        {name: draws[name][..., None] for name in POPULATION},
        draws["headroom_logit"][..., seen.task_of_group],
        draws["log_slope"][..., seen.task_of_group],
        draws["start_logit"],
        draws["group_offset.headroom"],
        draws["group_offset.stiffness"],
        seen.group_log_parameters,
    )
    shared = {name: draws[name][..., None] for name in POPULATION}
    return draws | group_summaries(shared, group, seen)


def posterior_group(draws: Mapping[str, FloatArray]) -> Group:
    """Free variables and Deterministics of the PyMC model."""
    names = ("start", "plateau", "stiffness", "collapse_rate", "is_oscillator")
    kept = {name: draws[name] for name in names if name in draws}
    return {
        name: Variable(("chain", "draw", *DIMS.get(name, ())), values)
        for name, values in (model_variables(draws) | kept).items()
    }


def _observations(posterior: FittedDraws) -> Observations:
    if posterior.observations is None:
        raise ValueError("this posterior was made by hand: it has no observations")
    return posterior.observations


def _by_draw(
    posterior: FittedDraws, seen: Observations
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Log likelihoods and predictions, each of shape (draws, ...), a chunk of draws at a time."""
    rng = np.random.default_rng(posterior.meta.provenance.seed)
    names = (*POPULATION, *LEVELS, *GROUP_EFFECTS, *RUN_EFFECTS, "is_oscillator")
    draws = {name: posterior.flat(name) for name in names}
    total = draws["is_oscillator"].size
    chunks = []
    for start in range(0, total, CHUNK):
        part = {
            name: values[start : start + CHUNK].reshape(-1, *(values.shape[1:] or (1,)))
            for name, values in draws.items()
        }
        expected = expectation(part, seen.constant, seen)
        chunks.append((_log_likelihood(expected, seen), _predict(expected, seen, rng)))
    likelihood, predicted = (
        {name: np.concatenate([chunk[side][name] for chunk in chunks]) for name in chunks[0][side]}
        for side in (0, 1)
    )
    return likelihood, predicted


def _log_likelihood(expected: Expectation, seen: Observations) -> dict[str, FloatArray]:
    """Log densities of what was observed, and of all that each run showed."""
    from scipy.stats import t

    bins = bin_log_densities(
        seen.train_reward,
        expected.train_reward,
        expected.sampling_variance + eq.LEAST_VARIANCE,
        expected.residual_variance,
        seen.constant["correlation"],
        seen.is_logged,
    )
    away = (seen.held_out_reward - expected.held_out_reward) / expected.held_out_scale
    tests = t.logpdf(away, eq.DEGREES) - np.log(expected.held_out_scale)
    collapse = seen.collapsed * np.log(expected.hazard) - expected.hazard * seen.exposure
    run = bins.sum(axis=-1) + collapse
    for at, own in enumerate(seen.run_of_evaluation):
        run[:, own] += tests[:, at]
    return {
        "whole_run": run,
        "train_reward": bins[:, seen.is_logged > 0],
        "held_out_reward": np.asarray(tests),
        "collapse_exposure": collapse,
    }


def _predict(
    expected: Expectation, seen: Observations, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """One prediction per draw of everything observed; bins one step ahead."""
    location, scale, degrees = one_step_ahead(
        seen.train_reward,
        expected.train_reward,
        expected.sampling_variance + eq.LEAST_VARIANCE,
        expected.residual_variance,
        seen.constant["correlation"],
    )
    logged = seen.is_logged > 0
    bins = location + scale * rng.standard_t(degrees, location.shape)
    tests = expected.held_out_reward + expected.held_out_scale * rng.standard_t(
        eq.DEGREES, expected.held_out_reward.shape
    )
    lived = rng.exponential(1 / expected.hazard)
    ends = np.where(seen.collapsed > 0, np.inf, seen.exposure)
    return {
        "train_reward": bins[:, logged],
        "held_out_reward": tests,
        "collapse_exposure": np.minimum(lived, ends),
    }


def _log_prior(posterior: FittedDraws) -> dict[str, FloatArray]:
    """Log prior density of every variable of the model."""
    from scipy.stats import norm

    density = {}
    for name in (*POPULATION, *LEVELS):
        prior = getattr(posterior.meta.placed_priors, name.replace(".", "_"))
        mean = prior.mean
        if name in ("plateau_loss.level", "hazard.level"):
            stiffness = eq.task_log_stiffness(
                posterior.draws["headroom_logit"], posterior.draws["log_slope"]
            )
            mean = mean + eq.anchor_shift(name, posterior.draws, stiffness)
        density[name] = norm.logpdf(posterior.draws[name], mean, prior.sd)
    for name in (*GROUP_EFFECTS, *RUN_EFFECTS):
        density[name] = norm.logpdf(posterior.draws[name])
    return model_variables(density)
