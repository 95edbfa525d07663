"""What the pilots say, in words: only what they tell, and how much of it is the prior's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.common import counted
from advisor.findings.design import design_check
from advisor.findings.gates import gate
from advisor.forecast import interval_of
from advisor.model import (
    FAMILIES,
    INTERVAL,
    LAWS,
    SPECTRUM,
    Posterior,
    log_prior,
    misfit_caution,
    shifted_share,
)
from advisor.theory import FloatArray


def describe(posterior: Posterior) -> str:
    """Write what was piloted, what may be published of it, and what the design can tell.

    Parameters
    ----------
    posterior : Posterior

    Returns
    -------
    text : str
        Several lines.
    """
    lines = [
        _opening(posterior),
        *(f"  {group.text}" for group in gate(posterior)),
        misfit_caution(posterior),
        _family(posterior),
        *_evaluations(posterior),
        _spread_of_repeats(posterior),
        _exponents(posterior),
        "What the pilots can tell of them:",
        *(f"  {check.text}." for check in design_check(posterior.meta)),
        _sensitivity(posterior),
    ]
    return "\n".join(filter(None, lines))


def _opening(posterior: Posterior) -> str:
    meta = posterior.meta
    collapsed = sum(run.collapse_step is not None for run in meta.runs)
    return (
        f"{counted(len(meta.runs), 'pilot')} of {counted(len(meta.groups), 'model-task pair')}, "
        f"{collapsed or 'none'} of which collapsed. At learning rate "
        f"{meta.reference.learning_rate:.2g}, group size {meta.reference.group_size:.3g}:"
    )


def _family(posterior: Posterior) -> str:
    name = posterior.meta.family
    # Files of earlier versions name families that are fitted no longer.
    title = FAMILIES[name].title if name in FAMILIES else name
    return "" if name == SPECTRUM.name else f"Curve: {title}."


def _evaluations(posterior: Posterior) -> list[str]:
    gains = np.exp(posterior.flat("log_eval_gain"))
    named = zip(posterior.meta.groups, posterior.meta.evaluated, gains.T, strict=True)
    return [
        f"  {model} on {task}: the odds of the headroom gained are {interval_of(gain).written(2)} "
        "times those of the train reward on held-out prompts; forecasts are of the latter."
        for (task, model), is_evaluated, gain in named
        if is_evaluated
    ]


def _spread_of_repeats(posterior: Posterior) -> str:
    """By how much runs differ from the laws of their settings, as standard deviations."""
    meta = posterior.meta
    who = "Repeats of one configuration differ"
    if len({(run.task, run.model, run.settings) for run in meta.runs}) == len(meta.runs):
        who = "No configuration was run twice; runs differ from the laws of their settings"
    rate = float(np.median(np.exp(posterior.flat("log_run_rate_spread"))))
    rng = np.random.default_rng(0)
    spread = np.exp(posterior.flat("log_run_plateau_spread"))
    level = posterior.flat("plateau")[:, 0]
    share = np.clip((level - meta.floor) / (meta.ceiling - meta.floor), 1e-6, 1 - 1e-6)
    moved = shifted_share(share, spread * rng.standard_normal(spread.size)) - share
    plateau = float(moved.std()) * (meta.ceiling - meta.floor)
    return (
        f"{who} by {100 * rate:.0f} % in stiffness and {plateau:.2g} in plateau (standard "
        "deviations): smaller differences cannot be told from luck."
    )


def _exponents(posterior: Posterior) -> str:
    parts = [
        f"{name} {interval_of(posterior.flat(key)).written(2)}"
        for name, key in (
            ("curvature exponent", "curvature_exponent"),
            ("of learning rate", "rate.learning_rate"),
            ("of group size", "rate.group_size"),
            ("of prompts per step", "rate.prompts_per_step"),
        )
    ]
    return f"Exponents of the stiffness ({100 * INTERVAL:.0f} % intervals): {', '.join(parts)}."


def _sensitivity(posterior: Posterior) -> str:
    """Plateaus and stiffnesses that rest on the priors, in one sentence."""
    quantities = {
        name: draws
        for name, draws in deciding_numbers(posterior).items()
        if name.startswith(("plateau", "stiffness"))
    }
    moved = prior_sensitivity(posterior, quantities)
    leaning = [name for name, distance in moved.items() if distance >= SENSITIVE]
    line = f"Would move with the priors (power scaling): {', '.join(leaning)}."
    return line if leaning else ""


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
    """Power-scaling sensitivity of numbers to all priors at once (arXiv:2107.14054).

    Offsets of groups and runs belong to the model and are not scaled. The mean square distance by
    chance, that of weights rotated against the draws, is taken off.
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
    """Squared distance of even draws from weighted ones, whatever the sign of the quantity."""
    even = np.arange(1, weights.size) / weights.size
    scaled = np.cumsum(weights)[:-1]
    return max(_divergence(even, scaled, gaps), _divergence(1 - even, 1 - scaled, gaps))


def _divergence(one: FloatArray, other: FloatArray, gaps: FloatArray) -> float:
    """Divergence of two cumulative functions over its upper bound."""
    middle = (one + other) / 2
    apart = one * np.log2(one / middle) + other * np.log2(other / middle)
    return float((gaps * apart).sum() / (gaps * (one + other)).sum())
