"""What a preset says of each (task, model) that was piloted, as draws beside the posterior's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from advisor.model import LAWS, POPULATION, Covariates, Meta, RunSummary
from advisor.model import equations as eq
from advisor.theory import FloatArray


class PriorGroups(NamedTuple):
    """Prior draws."""

    plateau: FloatArray
    stiffness: FloatArray
    curvature: FloatArray
    population: dict[str, FloatArray]


def prior_groups(meta: Meta, size: int, start_logit: FloatArray | None = None) -> PriorGroups:
    """Simulate the prior of plateau and stiffness, with a fixed seed."""
    rng = np.random.default_rng(0)
    groups, of = len(meta.groups), list(meta.task_of_group)

    def draw(entry: str, *shape: int) -> FloatArray:
        prior = getattr(meta.placed_priors, entry)
        return np.asarray(prior.mean + prior.sd * rng.standard_normal((size, *shape)))

    population = {name: draw(name.replace(".", "_"), 1) for name in POPULATION}
    log_parameters = np.log(np.array(meta.group_parameters) / meta.reference.parameters)
    headroom, slope = (
        draw("headroom_logit", len(meta.tasks)),
        draw("log_slope", len(meta.tasks)),
    )
    population = eq.at_reference(population, eq.task_log_stiffness(headroom, slope)[:, None])
    level = eq.group_level(
        population,
        headroom[:, of],
        slope[:, of],
        draw("start_logit", groups) if start_logit is None else start_logit,
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
        x = _moved(meta, run)
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
    x = _moved(meta, run)
    rate = np.column_stack([population[f"rate.{term}"] for term in LAWS["rate"]])
    moved = stiffness * np.exp(rate @ eq.rate_design(x))[:, None]
    loss = np.column_stack([population[f"plateau_loss.{term}"] for term in LAWS["plateau_loss"]])
    size = np.log(np.array(meta.group_parameters) / meta.reference.parameters)
    before, after = (
        np.exp(np.clip(loss @ eq.plateau_loss_design(place).T, *eq.LOG_LOSS_ENDS))
        for place in (_at_size(_reference(), size), _at_size(x, size))
    )
    span = meta.ceiling - meta.floor
    share = (plateau - meta.floor) / span
    return meta.floor + span * share * np.exp(before - after), moved


def _reference() -> Covariates:
    """The reference itself, with one update per refresh."""
    return Covariates(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _at_size(x: Covariates, log_parameters: FloatArray) -> Covariates:
    return x._replace(log_parameters=log_parameters)


def _moved(meta: Meta, run: RunSummary) -> Covariates:
    """How far the settings of a pilot lie from the reference; its model is the group's."""
    settings, reference = run.settings, meta.reference
    return Covariates(
        np.log(settings.learning_rate / reference.learning_rate),
        np.log(settings.group_size / reference.group_size),
        np.log(settings.prompts_per_step / reference.prompts_per_step),
        0.0,
        np.log(settings.minibatches_per_refresh),
        np.log(settings.epochs_per_refresh),
    )
