"""Population draws, weighted by the log of a run that the pilots did not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.forecast.forecaster import Forecaster
from advisor.forecast.laplace import COPIES, Residuals, residuals_of, run_effects
from advisor.forecast.laws import RunLaws
from advisor.forecast.observed_run import ObservedRun
from advisor.forecast.run_effect import RunEffect
from advisor.forecast.survival import collapse_rate
from advisor.model import smoothed_weights
from advisor.theory import FloatArray, IntArray


@dataclass(frozen=True)
class ReweightedDraws:
    """Population draws, effects of the run under each, and how much each pair counts.

    Attributes
    ----------
    laws : RunLaws
    residuals : Residuals
    effect : ndarray of shape (3, copies, draws)
    weight : ndarray of shape (copies, draws)
        They sum to 1.
    log_marginal : ndarray of shape (draws,)
        Log of the marginal likelihood of the run under each draw, up to a constant.
    pareto_k : float
        Of the weights of the draws.
    """

    laws: RunLaws
    residuals: Residuals
    effect: FloatArray
    weight: FloatArray
    log_marginal: FloatArray
    pareto_k: float

    def resampled(self, size: int) -> tuple[IntArray, FloatArray]:
        """Index of draws, shape (size,), and their effects, shape (3, size): all count alike.

        Systematic, from a fixed start: two steps of a log differ by what was logged, not by chance.
        """
        edges = np.cumsum(self.weight.ravel())
        places = np.searchsorted(edges, (np.arange(size) + 0.5) / size * edges[-1])
        copy, draw = np.unravel_index(np.minimum(places, edges.size - 1), self.weight.shape)
        return draw.astype(np.int64), self.effect[:, copy, draw]


def reweighted(
    forecaster: Forecaster,
    observed: ObservedRun,
    *,
    has_fallen: bool,
    seed: int,
    counted: FloatArray | float = 0.0,
) -> ReweightedDraws:
    """Weigh the draws of a forecaster by the marginal likelihood of a run.

    ``counted`` is the log marginal likelihood, of shape (draws,), of those rows that the posterior
    was fitted to.
    """
    laws = forecaster.laws_of(observed.settings)
    residuals = residuals_of(laws, observed)
    noise = np.random.default_rng(seed).standard_normal((3, COPIES // 2, laws.log_onset.size))
    effects = run_effects(laws, observed, residuals, noise)
    own = forecaster.with_run_effect(RunEffect.given(effects.effect))
    rate = collapse_rate(own, observed.settings)
    log_ratio = effects.log_ratio - rate * observed.exposure + has_fallen * np.log(rate)
    top = log_ratio.max(axis=0)
    within = np.exp(log_ratio - top)
    total = within.sum(axis=0)
    log_marginal = top + np.log(total)
    shared, k = smoothed_weights(log_marginal - counted)
    weight = shared * within / total
    return ReweightedDraws(laws, residuals, effects.effect, weight, log_marginal, k)
