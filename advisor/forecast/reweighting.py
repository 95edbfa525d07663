"""Population draws, weighted by the log of a run that the pilots did not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.forecast.forecaster import Forecaster
from advisor.forecast.observed_run import Seen
from advisor.forecast.run_effects import COPIES, Laws, Residuals, laws_of, own_effects, residuals_of
from advisor.forecast.watched_run import RunForecaster
from advisor.model.compat import smoothed_weights
from advisor.theory.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Weighed:
    """Draws of all that is shared, luck of the run under each, and how much each pair counts.

    Attributes
    ----------
    laws : Laws
    residuals : Residuals
    luck : ndarray of shape (3, copies, draws)
    weight : ndarray of shape (copies, draws)
        They sum to 1.
    log_marginal : ndarray of shape (draws,)
        Log of the marginal likelihood of the run under each draw, up to a constant.
    pareto_k : float
        Of the weights of the draws.
    """

    laws: Laws
    residuals: Residuals
    luck: FloatArray
    weight: FloatArray
    log_marginal: FloatArray
    pareto_k: float

    def resampled(self, size: int) -> tuple[IntArray, FloatArray]:
        """Index of draws, shape (size,), and their luck, shape (3, size): all count alike.

        Systematic, from a fixed start: two steps of a log differ by what was logged, not by chance.
        """
        edges = np.cumsum(self.weight.ravel())
        places = np.searchsorted(edges, (np.arange(size) + 0.5) / size * edges[-1])
        copy, draw = np.unravel_index(np.minimum(places, edges.size - 1), self.weight.shape)
        return draw.astype(np.int64), self.luck[:, copy, draw]


def weigh(
    forecaster: Forecaster,
    seen: Seen,
    *,
    has_fallen: bool,
    seed: int,
    counted: FloatArray | float = 0.0,
) -> Weighed:
    """Weigh the draws of a forecaster by the marginal likelihood of a run.

    Parameters
    ----------
    forecaster : Forecaster
        Of the run's task and model.
    seen : Seen
    has_fallen : bool
        Whether the exposure ends in a collapse.
    seed : int
    counted : ndarray of shape (draws,), optional
        Log marginal likelihood of those rows of the run that the posterior was fitted to.

    Returns
    -------
    weighed : Weighed
    """
    laws = laws_of(forecaster, seen.settings)
    residuals = residuals_of(laws, seen)
    noise = np.random.default_rng(seed).standard_normal((3, COPIES // 2, laws.log_onset.size))
    own = own_effects(laws, seen, residuals, noise)
    rate = RunForecaster(forecaster, own.luck).collapse_rate(seen.settings)
    log_ratio = own.log_ratio - rate * seen.exposure + has_fallen * np.log(rate)
    top = log_ratio.max(axis=0)
    within = np.exp(log_ratio - top)
    total = within.sum(axis=0)
    log_marginal = top + np.log(total)
    shared, k = smoothed_weights(log_marginal - counted)
    return Weighed(laws, residuals, own.luck, shared * within / total, log_marginal, k)
