"""How far the priors decide a number, from the draws alone.

Raising the prior to a power a little off 1 re-weights the draws, and a number that the pilots
decide hardly moves. Priors only are scaled: the likelihood of a draw is not kept, so a prior that
stands in for missing data and one that contradicts the data look alike here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.model import LAWS, LEVELS, POPULATION, Posterior
from advisor.theory import FloatArray

SENSITIVE = 0.05
"""Sensitivity from which a number is said to rest on the priors (arXiv:2107.14054). For a normal
it means that its mean moves by 0.22 of its standard deviation, or its standard deviation changes by
a fifth, per doubling of the prior's power; a number that is all prior has 0.08."""

POWERS = (1 / 1.01, 1.01)
"""Powers of the prior. So close to 1 the weights are all but even, and need no Pareto smoothing."""

ROTATIONS = 16
"""Times that the weights are rotated against the draws, which shows what chance alone moves."""


def deciding_numbers(posterior: Posterior) -> dict[str, FloatArray]:
    """Draws of the numbers that an answer turns on, each of shape (draws,)."""
    quantities = {}
    for index, (task, model) in enumerate(posterior.meta.groups):
        quantities[f"plateau [{task} / {model}]"] = posterior.flat("plateau")[:, index]
        quantities[f"stiffness [{task} / {model}]"] = np.log(posterior.flat("stiffness")[:, index])
    quantities["curvature exponent"] = posterior.flat("curvature_exponent")
    for law in ("rate", "hazard"):
        for term in LAWS[law]:
            name = f"{law} {term}" if term == "level" else f"{law} exponent of {term}"
            quantities[name] = posterior.flat(f"{law}.{term}")
    return quantities


def prior_sensitivity(
    posterior: Posterior, quantities: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Power-scaling sensitivity of numbers to the priors, all scaled at once.

    Kallioinen et al., arXiv:2107.14054, with the powers of the authors' priorsense. Unlike a shift
    of the mean the distance also sees a spread that is the prior's, which is what an exponent
    shows that no pilot tells. Scaled are the population and the levels of tasks and groups; what is
    standard normal by construction (offsets of groups and runs) belongs to the model.

    Two thousand draws move a number that has nothing to do with the priors by some 0.03, so the
    mean square distance by chance is taken off: that of the weights rotated against the draws,
    which keeps the autocorrelation of both.
    """
    prior = log_prior(posterior)
    weights = [_weights((power - 1) * prior) for power in POWERS]
    return {
        name: float(
            np.mean(
                [
                    _distance(values, weight) / abs(np.log2(power))
                    for power, weight in zip(POWERS, weights, strict=True)
                ]
            )
        )
        for name, values in quantities.items()
    }


def sensitive_lines(sensitivity: Mapping[str, float]) -> tuple[str, ...]:
    """Say which numbers rest on the priors, the most sensitive first; empty where none does."""
    found = sorted(
        ((value, name) for name, value in sensitivity.items() if value >= SENSITIVE), reverse=True
    )
    return tuple(
        f"{name}: moves with the priors (sensitivity {value:.2f}, {SENSITIVE:g} or more counts)"
        for value, name in found
    )


def log_prior(posterior: Posterior) -> FloatArray:
    """Log density of the scaled priors at each draw, up to a constant, shape (draws,)."""
    total = np.zeros(posterior.flat(LEVELS[0]).shape[0])
    for name in (*POPULATION, *LEVELS):
        prior = getattr(posterior.meta.placed_priors, name.replace(".", "_"))
        values = posterior.as_in_priors(name).reshape(total.size, -1)
        total -= 0.5 * (((values - prior.mean) / prior.sd) ** 2).sum(axis=1)
    return total


def _weights(log_weights: FloatArray) -> FloatArray:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def _distance(values: FloatArray, weights: FloatArray) -> float:
    """Cumulative Jensen-Shannon distance of draws from the same draws weighted, less chance."""
    order = np.argsort(values)
    gaps = np.diff(values[order])
    if not gaps.sum() > 0:
        return 0.0
    shifts = np.arange(ROTATIONS + 1) * values.size // (ROTATIONS + 1)
    square = np.array([_square(gaps, np.roll(weights, shift)[order]) for shift in shifts])
    return float(np.sqrt(max(0.0, square[0] - square[1:].mean())))


def _square(gaps: FloatArray, weights: FloatArray) -> float:
    """Squared distance of even draws, in increasing order ``gaps`` apart, from weighted ones.

    The larger of that by distribution function and by its complement, so that the sign of the
    quantity does not matter.
    """
    even = np.arange(1, weights.size) / weights.size
    scaled = np.cumsum(weights)[:-1]
    return max(_divergence(even, scaled, gaps), _divergence(1 - even, 1 - scaled, gaps))


def _divergence(one: FloatArray, other: FloatArray, gaps: FloatArray) -> float:
    """Divergence of two cumulative functions over its upper bound."""
    middle = (one + other) / 2
    apart = one * np.log2(one / middle) + other * np.log2(other / middle)
    return float((gaps * apart).sum() / (gaps * (one + other)).sum())
