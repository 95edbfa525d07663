"""What a preset says of each (task, model) that was piloted, as draws beside the posterior's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.model import POPULATION, Meta
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
