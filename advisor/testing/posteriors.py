"""Posteriors made up without sampling, in no time, through the code that names real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from advisor.model import (
    POPULATION,
    RUN_EFFECTS,
    SPECTRUM,
    Cohort,
    Family,
    NormalPrior,
    Posterior,
    Priors,
    build_cohort,
    load_priors,
    make_posterior,
)
from advisor.model import equations as eq
from advisor.testing.simulate import KNOWN_SIZES, PRESET, Plan, rising

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
    """Cohort of smooth rising pilots; those with a ``collapse`` fall to the floor there.

    Parameters
    ----------
    plans : sequence of Plan
    bounds : tuple of float
        Floor and ceiling of the reward.

    Returns
    -------
    cohort : Cohort
    """
    low, high = bounds
    runs, collapse = [], {}
    for index, plan in enumerate(plans):
        curve = rising(plan.steps, end=0.8 - 0.01 * index)
        if plan.collapse is not None:
            curve[plan.collapse - 1 :] = 0.0
        name = f"run{index}"
        runs.append(
            plan.run(low + (high - low) * curve, name, reward_floor=low, reward_ceiling=high)
        )
        collapse[name] = None if plan.collapse is None else float(plan.collapse)
    healthy = {name: None if step is None else step - 3 for name, step in collapse.items()}
    return build_cohort(runs, collapse, healthy)


MADE_UP_SPEED = NormalPrior(
    mean=-4.0, sd=1.5, source="Of made-up pilots, whatever a preset believes of real ones."
)
"""Middle and spread of the share of the headroom gained per step."""


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

    Many parameters because: a test sets the one that it is about.

    Parameters
    ----------
    plans : sequence of Plan
        Pilots that it speaks of.
    seed : int
    width : float
        Spread of a draw over that of its prior.
    moved : dict of str to float, optional
        Parameters that stand at one value.
    bounds : tuple of float
        Floor and ceiling of the reward.
    draws : int
        Of each of two chains.
    statistics, diagnostics : dict, optional
        What the sampler told; by default all is well.
    family : Family
        Of curves.
    is_prior : bool
        Whether levels of plateau loss and collapse are those that the prior implies; otherwise they
        are those at the reference, around ``PILOTED``.

    Returns
    -------
    posterior : Posterior
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
    known = {} if is_prior else PILOTED | KNOWN_SIZES
    placed = (
        priors.at(cohort.reference)
        if is_prior
        else priors.model_copy(update={"log_slope": MADE_UP_SPEED})
    )

    def around(names: Sequence[str], *shape: int) -> Any:
        given = [getattr(placed, name.replace(".", "_")) for name in names]
        centre = {n: p.mean for n, p in zip(names, given, strict=True)} | known | moved
        mean = np.array([centre[name] for name in names])
        sizes = KNOWN_SIZES if known else {}
        spread = np.array(
            [
                0.0 if n in moved else 0.5 if n in sizes else p.sd
                for n, p in zip(names, given, strict=True)
            ]
        )
        noise = rng.standard_normal((2, draws, *shape, len(names)))
        return mean + width * spread * noise

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
