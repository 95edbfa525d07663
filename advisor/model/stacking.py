"""Weights of curve families: by what each forecast of rows that it had not seen.

Early parts of curves hardly tell families apart, so the weights lean on a preset's, learned on
completed runs of other tasks: each counts as so many further runs (a Dirichlet prior).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from advisor.theory.arrays import FloatArray

ITERATIONS = 500


def held_out_scores(draws: Sequence[FloatArray], targets: Sequence[float]) -> FloatArray:
    """Log predictive density of what was held out, by run.

    Parameters
    ----------
    draws : sequence of ndarray of shape (draws,)
        Predictive draws for each run.
    targets : sequence of float
        What each run came to.

    Returns
    -------
    scores : ndarray of shape (runs,)
        By a Gaussian kernel density of the draws (Silverman's bandwidth).
    """
    scores = []
    for values, target in zip(draws, targets, strict=True):
        quartiles = np.quantile(values, [0.25, 0.75])
        spread = min(float(values.std()), float(quartiles[1] - quartiles[0]) / 1.34)
        width = max(0.9 * spread * values.size**-0.2, 1e-4)
        kernel = -0.5 * ((values - target) / width) ** 2
        scores.append(float(np.logaddexp.reduce(kernel) - np.log(values.size * width)))
    return np.array(scores)


def stacked_weights(
    scores: Mapping[str, FloatArray], prior_runs: Mapping[str, float]
) -> dict[str, float]:
    """Weights that maximise the score of the mixture, given the prior's runs.

    Parameters
    ----------
    scores : mapping of family name to ndarray of shape (runs,)
        From :func:`held_out_scores`.
    prior_runs : mapping of family name to float
        Runs that each family brings along, positive.

    Returns
    -------
    weights : dict of str to float
        Sum to 1 (stacking: Yao, Vehtari, Simpson and Gelman, arXiv:1704.02030).
    """
    names = list(scores)
    density = np.stack([scores[name] for name in names])
    density = np.exp(density - density.max(axis=0))
    prior = np.array([prior_runs[name] for name in names])
    weights = prior / prior.sum()
    for _ in range(ITERATIONS):
        share = weights[:, None] * density
        share = share / share.sum(axis=0)
        weights = prior + share.sum(axis=1)
        weights = weights / weights.sum()
    return {name: float(weight) for name, weight in zip(names, weights, strict=True)}


def mixed(draws: Mapping[str, FloatArray], weights: Mapping[str, float]) -> FloatArray:
    """Draws of a mixture: from each family's as many as its weight says.

    Parameters
    ----------
    draws : mapping of family name to ndarray of shape (chains, draws, ...)
    weights : mapping of family name to float

    Returns
    -------
    draws : ndarray of shape (chains, draws, ...)
        Taken evenly out of each family's chains.
    """
    first = next(iter(draws.values()))
    wanted = shares(weights, first.shape[1])
    parts = []
    for name, values in draws.items():
        taken = np.linspace(0, values.shape[1] - 1, wanted[name]).astype(int)
        parts.append(values[:, taken])
    return np.concatenate(parts, axis=1)


def shares(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """Whole numbers that add up to ``total``, as near to the weights as possible."""
    exact = {name: weight * total for name, weight in weights.items()}
    whole = {name: int(value) for name, value in exact.items()}
    left = total - sum(whole.values())
    for name in sorted(exact, key=lambda name: whole[name] - exact[name])[:left]:
        whole[name] += 1
    return whole
