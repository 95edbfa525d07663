"""What the pilots say, in words: only what they tell, and how much of it is the prior's."""

from __future__ import annotations

import numpy as np

from advisor.findings.design import SIZE, design_check
from advisor.findings.gates import gate
from advisor.findings.run_fit import misfit_caution
from advisor.findings.sensitivity import SENSITIVE, deciding_numbers, prior_sensitivity
from advisor.forecast import interval_of
from advisor.model import FAMILIES, INTERVAL, SPECTRUM, Posterior, shifted_share


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
    return "\n".join(
        [
            _opening(posterior),
            *(f"  {group.text}" for group in gate(posterior)),
            *filter(None, [misfit_caution(posterior)]),
            *_family(posterior),
            *_evaluations(posterior),
            _luck(posterior),
            _exponents(posterior),
            *_design(posterior),
            *_sensitivity(posterior),
        ]
    )


def _opening(posterior: Posterior) -> str:
    meta = posterior.meta
    collapsed = sum(run.collapse_step is not None for run in meta.runs)
    return (
        f"{len(meta.runs)} pilot{'s' if len(meta.runs) > 1 else ''} of {len(meta.groups)} "
        f"model-task pair{'s' if len(meta.groups) > 1 else ''}, {collapsed or 'none'} of which "
        f"collapsed. At learning rate {meta.reference.learning_rate:.2g}, group size "
        f"{meta.reference.group_size:.3g}:"
    )


def _family(posterior: Posterior) -> list[str]:
    name = posterior.meta.family
    if name == SPECTRUM.name:
        return []
    # Files of earlier versions name families that are fitted no longer.
    return [f"Curve: {FAMILIES[name].title if name in FAMILIES else name}."]


def _evaluations(posterior: Posterior) -> list[str]:
    meta = posterior.meta
    lines = []
    for index, (task, model) in enumerate(meta.groups):
        if meta.evaluated[index]:
            gain = posterior.draws["log_eval_gain"][..., index].ravel()
            span = interval_of(np.exp(gain))
            lines.append(
                f"  {model} on {task}: the odds of the headroom gained are {span.written(2)} times "
                "those of the train reward on held-out prompts; forecasts are of the latter."
            )
    return lines


def _luck(posterior: Posterior) -> str:
    """By how much two runs of one configuration differ, as standard deviations."""
    meta = posterior.meta
    rate = float(np.median(np.exp(posterior.flat("log_run_rate_spread"))))
    rng = np.random.default_rng(0)
    spread = np.exp(posterior.flat("log_run_plateau_spread"))
    level = posterior.flat("plateau")[:, 0]
    share = np.clip((level - meta.floor) / (meta.ceiling - meta.floor), 1e-6, 1 - 1e-6)
    moved = shifted_share(share, spread * rng.standard_normal(spread.size)) - share
    plateau = float(moved.std()) * (meta.ceiling - meta.floor)
    return (
        f"Repeats of one configuration differ by {100 * rate:.0f} % in stiffness and {plateau:.2g} "
        "in plateau (standard deviations): smaller differences cannot be told from luck."
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
    percent = f"{INTERVAL:.0%}".replace("%", " %")
    return f"Exponents of the stiffness ({percent} intervals): {', '.join(parts)}."


def _design(posterior: Posterior) -> list[str]:
    checks = design_check(posterior.meta)
    lines = ["What the pilots can tell of them:"]
    lines += [f"  {check.text}." for check in checks if check.factor != SIZE]
    return lines + [f"  {check.text}." for check in checks if check.factor == SIZE]


def _sensitivity(posterior: Posterior) -> list[str]:
    """Plateaus and stiffnesses that rest on the priors, in one sentence."""
    quantities = {
        name: draws
        for name, draws in deciding_numbers(posterior).items()
        if name.startswith(("plateau", "stiffness"))
    }
    moved = prior_sensitivity(posterior, quantities)
    leaning = [name for name, distance in moved.items() if distance >= SENSITIVE]
    if not leaning:
        return []
    return [f"Would move with the priors (power scaling): {', '.join(leaning)}."]
