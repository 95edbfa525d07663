"""One simulation: draw, fit through the machine code, rank."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from ranks import rank_of
from simulation import RIGHT, Draws, Wrong, design, draw_prior, quantities, simulate

from advisor.model import FAMILIES, Priors, load_priors
from advisor.model import compat as _compat
from advisor.model.cohort import Cohort
from advisor.model.fast import data_of, shape_of, shapes_of
from advisor.model.fast.density import density_of, draw_of
from advisor.model.fast.sampler_coordinates import place
from advisor.model.priors import Family

PRESET = "small_models"
DRAWS = 99
"""Posterior draws behind a rank, thinned to be nearly independent."""

CHAINS, KEPT, TUNE, TARGET_ACCEPT = 2, 500, 300, 0.85
LONGER = 3
"""Factor on draws and tuning where the first attempt did not converge."""

RHAT_LIMIT, ESS_LIMIT = 1.05, 100.0

STUDIES: dict[str, tuple[str, Wrong]] = {
    **{name: (name, RIGHT) for name in FAMILIES},
    "control_noise": ("spectrum", Wrong(sampling_noise=1.6)),
    "control_wander": ("spectrum", Wrong(wander=0.0)),
}
"""What is simulated: the family that is fitted, and what the simulator does otherwise."""


def ranked_names(study: str) -> list[str]:
    """What is ranked, in the order of the ranks."""
    family, priors = FAMILIES[STUDIES[study][0]], load_priors(PRESET)
    parameters = draw_prior(design(), priors, family, np.random.default_rng(0))
    return list(quantities(design(), parameters, priors, family))


def simulate_and_rank(study: str, number: int) -> dict[str, Any]:
    """Draw, fit, rank; the seed follows from study and number alone.

    A record has ranks by quantity, and how the chains converged.
    """
    started = time.perf_counter()
    name, wrong = STUDIES[study]
    family, priors = FAMILIES[name], load_priors(PRESET)
    rng = np.random.default_rng([number, *study.encode()])
    parameters = draw_prior(design(), priors, family, rng)
    cohort = simulate(design(), parameters, family, rng, wrong)
    draws, figures = _sample(cohort, priors, family, int(rng.integers(2**31)))
    true = quantities(cohort, parameters, priors, family)
    found = quantities(cohort, draws, priors, family)
    return {
        "number": number,
        **figures,
        "seconds": round(time.perf_counter() - started, 2),
        "ranks": {key: rank_of(float(true[key][0]), found[key]) for key in true},
    }


def _sample(
    cohort: Cohort, priors: Priors, family: Family, seed: int
) -> tuple[Draws, dict[str, Any]]:
    """Thinned posterior draws, and how they converged."""
    # Start points take rewards for shares; noise can carry simulated ones out of [0, 1]. Where a
    # run is placed changes the coordinates of the sampler, never the density.
    shares = replace(cohort, reward=np.clip(cohort.reward, 0.0, 1.0))
    placement = place(shares, priors, family)
    bins = data_of(cohort, priors, family)["bin_table"]
    block = placement.block.copy()
    block[-bins.size :] = bins.ravel()  # they are packed last
    attempts, length = 0, 1
    while True:
        attempts += 1
        draws, statistics = _compat.sample_density(
            density_of(block),
            draw_of(block, shape_of(cohort)),
            shapes_of(shape_of(cohort)),
            placement.start,
            draws=length * KEPT,
            tune=length * TUNE,
            chains=CHAINS,
            seed=seed + attempts,
            target_accept=TARGET_ACCEPT,
            progress=_compat.silent,
        )
        diagnostics = _compat.convergence(draws).values()
        rhat = float(np.max([np.max(pair[0]) for pair in diagnostics]))
        ess = float(np.min([np.min(pair[1]) for pair in diagnostics]))
        has_converged = rhat <= RHAT_LIMIT and ess >= ESS_LIMIT
        if has_converged or length == LONGER:
            break
        length = LONGER
    figures = {
        "converged": has_converged,
        "attempts": attempts,
        "rhat": round(rhat, 4),
        "ess": round(ess, 1),
        "divergent": round(float(statistics["diverging"].mean()), 5),
    }
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in draws.items()}
    total = len(flat["population"])
    keep = np.linspace(0, total - 1, DRAWS).round().astype(int)
    return {name: values[keep] for name, values in flat.items()}, figures
