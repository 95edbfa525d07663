"""What the curves that were fitted leave of each run, draw by draw."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.errors import StudyError
from advisor.model import equations as eq
from advisor.model.expectation import Expectation, expectation
from advisor.model.observations import Observations
from advisor.model.parameters import GROUP_EFFECTS, LEVELS, POPULATION, RUN_EFFECTS
from advisor.model.posterior import Posterior
from advisor.model.run_density import covariance
from advisor.theory import FloatArray, IntArray

FEWEST_BINS = 6
"""Bins below which neither a third nor a swing of a run can be told apart."""

DRAWS = 500
"""Draws of the posterior that are asked; what is said is smooth in them."""

MOST_NAMED = 3
"""Runs that are named where a fit fails, and at most half of all."""


class Residuals(NamedTuple):
    """Rewards less their curves, shape (draws, runs, bins), and roots of their covariances.

    ``counts`` are the bins of each run, which come first.
    """

    seen: Observations
    expected: Expectation
    left: FloatArray
    root: FloatArray
    counts: IntArray

    def white(self, run: int) -> FloatArray:
        """Whitened residuals of a run, shape (draws, bins): about one where the curve fits."""
        bins = int(self.counts[run])
        left, root = self.left[:, run, :bins], self.root[:, run, :bins, :bins]
        return np.asarray(np.linalg.solve(root, left[..., None])[..., 0], dtype=float)


def residuals(posterior: Posterior) -> Residuals | None:
    """Residuals of the pilots; None of a posterior that was made by hand."""
    seen = posterior.observations
    if seen is None:
        return None
    total = posterior.flat("is_oscillator").size
    kept = np.unique(np.linspace(0, total - 1, min(DRAWS, total)).astype(int))
    names = (*POPULATION, *LEVELS, *GROUP_EFFECTS, *RUN_EFFECTS, "is_oscillator")
    # What all share has a last axis of one, so that it broadcasts over runs.
    draws = {name: posterior.flat(name)[kept].reshape(kept.size, -1) for name in names}
    expected = expectation(draws, seen.constant, seen)
    spread = covariance(
        expected.sampling_variance + eq.LEAST_VARIANCE,
        expected.residual_variance,
        seen.constant["correlation"],
    )
    try:
        root = np.linalg.cholesky(spread)
    except np.linalg.LinAlgError as error:
        raise StudyError(
            "the posterior's draws are not those of its pilots", advice="Fit the pilots again"
        ) from error
    left = np.asarray(seen.train_reward - expected.train_reward)
    return Residuals(seen, expected, left, root, (seen.is_logged > 0).sum(axis=1))


def strays(posterior: Posterior) -> dict[str, float]:
    """How far each run strays from its curve, by what noise explains; the farthest first.

    Of runs with enough bins. About one where the curve fits.
    """
    found = residuals(posterior)
    if found is None:
        return {}
    far = {
        str(found.seen.coords["run"][run]): float(np.sqrt((found.white(run) ** 2).mean()))
        for run in range(found.counts.size)
        if found.counts[run] >= FEWEST_BINS
    }
    return dict(sorted(far.items(), key=lambda item: -item[1]))


def worst_fits(posterior: Posterior) -> str:
    """Runs that their curves fit worst, in words; empty where there is nothing to choose from."""
    try:
        far = {run: ratio for run, ratio in strays(posterior).items() if np.isfinite(ratio)}
    except StudyError:  # draws of chains that got lost may be anything
        return ""
    named = list(far.items())[: min(MOST_NAMED, len(far) // 2)]
    return ", ".join(f"'{run}' ({ratio:.1f} times the noise)" for run, ratio in named)
