"""What the pilots say, in words, and how much each exponent rests on them or on its prior."""

from __future__ import annotations

import numpy as np

from advisor.common import counted, scientific
from advisor.findings.gates import gate
from advisor.forecast import interval_of
from advisor.model import (
    FAMILIES,
    INTERVAL,
    SPECTRUM,
    Posterior,
    RunSummary,
    informed_share,
    misfit_caution,
    shifted_share,
)


def describe(posterior: Posterior) -> str:
    """Write what was piloted, what may be published of it, and what the design can show.

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
        f"Exponents ({100 * INTERVAL:.0f} % intervals), and what the pilots show of them:",
        *_exponents(posterior),
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
    share = np.clip(meta.as_share(level), 1e-6, 1 - 1e-6)
    moved = shifted_share(share, spread * rng.standard_normal(spread.size)) - share
    plateau = float(moved.std()) * (meta.ceiling - meta.floor)
    return (
        f"{who} by {100 * rate:.0f} % in stiffness and {plateau:.2g} in plateau (standard "
        "deviations): smaller differences may be seed noise."
    )


EXPONENTS = {
    "learning_rate": ("learning rate", "rate.learning_rate"),
    "group_size": ("group size", "rate.group_size"),
    "prompts_per_step": ("prompts per step", "rate.prompts_per_step"),
    "minibatches_per_refresh": ("mini-batches per refresh, of collapse", "hazard.minibatches"),
    "epochs_per_refresh": ("epochs per refresh, of collapse", "hazard.epochs"),
    "parameters": ("model size, of curvature", "curvature_exponent"),
}
"""Factor -> what it is called, and its exponent; of the stiffness where nothing else is named."""


def _exponents(posterior: Posterior) -> list[str]:
    """Each exponent, what the pilots varied for it, and what that took off its prior."""
    learned, lines = informed_share(posterior), []
    for factor, (label, key) in EXPONENTS.items():
        values = sorted({_value(run, factor) for run in posterior.meta.runs})
        low, high = map(_number, (values[0], values[-1]))
        what = f"never varied ({low}), from the prior"
        if len(values) > 1:
            what = (
                f"{len(values)} values from {low} to {high} removed "
                f"{100 * max(0.0, learned[key]):.0f} % of the prior's variance"
            )
        lines.append(f"  {label}: {interval_of(posterior.flat(key)).written(2)}; {what}.")
    return lines


def _value(run: RunSummary, factor: str) -> float:
    return float(run.parameters if factor == "parameters" else getattr(run.settings, factor))


def _number(value: float) -> str:
    """Write ``1e-4``, ``2.7e4``, ``16``."""
    return f"{value:.4g}" if 1e-2 <= value < 1e4 else scientific(value)
