"""What the pilots say, in words, and how much each exponent rests on them or on its prior."""

from __future__ import annotations

import numpy as np

from advisor.findings.gates import gate, say
from advisor.forecast import interval_of
from advisor.model import (
    FAMILIES,
    INTERVAL,
    SPECTRUM,
    Posterior,
    informed_share,
    misfit_caution,
    shifted_share,
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
    meta, learned = posterior.meta, informed_share(posterior)
    family = "" if meta.family == SPECTRUM.name else meta.family
    gains = np.exp(posterior.flat("log_eval_gain")).T
    evaluations = zip(meta.groups, meta.evaluated, gains, strict=True)
    settings = [run.settings for run in meta.runs]
    exponents = [
        (label, sorted({float(getattr(one, factor)) for one in of}), span, learned[key])
        for factor, (label, key) in EXPONENTS.items()
        for span in [interval_of(posterior.flat(key))]
        for of in [meta.runs if factor == "parameters" else settings]
    ]
    return say(
        "all",
        meta,
        gate(posterior),
        misfit_caution(posterior),
        # Files of earlier versions name families that are fitted no longer.
        FAMILIES[family].title if family in FAMILIES else family,
        [(*names, interval_of(gain)) for names, is_one, gain in evaluations if is_one],
        len({(run.task, run.model, run.settings) for run in meta.runs}) < len(meta.runs),
        float(np.median(np.exp(posterior.flat("log_run_rate_spread")))),
        _spread_of_plateaus(posterior),
        exponents,
        INTERVAL,
    )


def _spread_of_plateaus(posterior: Posterior) -> float:
    """By how much plateaus of runs differ from the laws of their settings, in reward units."""
    meta, rng = posterior.meta, np.random.default_rng(0)
    spread = np.exp(posterior.flat("log_run_plateau_spread"))
    share = np.clip(meta.as_share(posterior.flat("plateau")[:, 0]), 1e-6, 1 - 1e-6)
    moved = shifted_share(share, spread * rng.standard_normal(spread.size)) - share
    return float(moved.std()) * (meta.ceiling - meta.floor)
