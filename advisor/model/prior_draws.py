"""Draws of a preset in the form of a posterior: what is believed before any pilot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.common import DEFAULT_SEED
from advisor.model import equations as eq
from advisor.model.cohort import Cohort
from advisor.model.families import SPECTRUM
from advisor.model.parameters import LEVELS, POPULATION, RUN_EFFECTS
from advisor.model.posterior import Posterior, make_posterior
from advisor.model.priors import Priors
from advisor.theory import FloatArray


def prior_posterior(
    cohort: Cohort, priors: Priors, *, draws: int = 2000, seed: int = DEFAULT_SEED
) -> Posterior:
    """Draw from a preset what a posterior of a cohort would hold had nothing been seen of it."""
    placed = priors.at(cohort.reference)
    rng = np.random.default_rng(seed)

    def drawn(names: Sequence[str], *size: int) -> FloatArray:
        """Draws of shape (1, draws, names, *size)."""
        given = [getattr(placed, name.replace(".", "_")) for name in names]
        parts = [prior.mean + prior.sd * rng.standard_normal((1, draws, *size)) for prior in given]
        return np.stack(parts, axis=2)

    groups, runs = len(cohort.groups), len(cohort.runs)
    levels = drawn(LEVELS[:3], len(cohort.tasks))
    population = drawn(POPULATION)
    # Levels of loss and collapse are those at the reference, given how fast the task is learned.
    shared = dict(zip(POPULATION, np.moveaxis(population, 2, 0), strict=True))
    stiffness = eq.task_log_stiffness(levels[:, :, 0], levels[:, :, 1])
    raw = {
        "population": np.stack(list(eq.at_reference(shared, stiffness).values()), axis=2),
        "task_level": levels,
        "start_logit": drawn(["start_logit"], groups)[:, :, 0],
        "eval_level": drawn(LEVELS[4:], groups),
        "group_offset": rng.standard_normal((1, draws, 2, groups)),
        "run_offset": rng.standard_normal((1, draws, len(RUN_EFFECTS), runs)),
    }
    return make_posterior(
        cohort,
        priors,
        SPECTRUM,
        raw,
        {name: np.zeros((1, draws)) for name in ("diverging", "n_steps")},
        {
            name: (np.ones(values.shape[2:]), np.full(values.shape[2:], float(draws)))
            for name, values in raw.items()
        },
        {},
        seed=seed,
    )
