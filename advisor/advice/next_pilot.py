"""Which pilot to run next, and what one or two pilots already bound."""

from __future__ import annotations

from advisor.advice.lattice import RATE_REACH, largest_surviving_rate
from advisor.advice.recommendation import NextPilot
from advisor.advice.stability import stability
from advisor.posterior import Forecaster, Posterior
from advisor.runs.pilot_run import Hyperparameters

FEWEST_RUNS = 3
FEWEST_SETTINGS = 2
"""Below three runs, or with one setting only, no law is identified (theory section 8)."""

PILOT_LEVEL = 0.5
"""P(stable) that a suggested pilot must have: it is short, and a failure teaches too."""


def is_first_contact(posterior: Posterior) -> bool:
    """Whether the pilots are too few or too alike for a recommendation."""
    runs = posterior.meta.runs
    settings = {
        tuple(run.hyperparameters[name] for name in ("learning_rate", "group_size", *_FACTORS))
        for run in runs
    }
    return len(runs) < FEWEST_RUNS or len(settings) < FEWEST_SETTINGS


_FACTORS = ("minibatches_per_refresh", "epochs_per_refresh")


def suggest_pilot(forecaster: Forecaster, settings: Hyperparameters) -> NextPilot:
    """Move the learning rate: up from what survived, as far as is safe, else down.

    A second learning rate shares the plateau and shifts the clock, which is what tells plateau and
    timescale apart; and a rate that fails is the only thing that bounds tolerance.

    Parameters
    ----------
    forecaster : Forecaster
    settings : Hyperparameters
        The piloted configuration to vary.

    Returns
    -------
    pilot : NextPilot
    """
    posterior = forecaster.posterior
    steps = int(posterior.meta.longest)
    surviving = largest_surviving_rate(posterior)
    if surviving is None:
        lowest = min(run.hyperparameters["learning_rate"] for run in posterior.meta.runs)
        varied = _at(settings, lowest / RATE_REACH)
        reason = (
            f"every pilot collapsed, the gentlest at learning rate {lowest:.2g}; a third of it is "
            "the next place to look for a run that lives."
        )
        return NextPilot(
            settings=varied,
            steps=steps,
            stability=stability(forecaster, varied, steps),
            reason=reason,
        )
    for factor in UPWARD:
        varied = _at(settings, surviving * factor)
        stable = stability(forecaster, varied, steps)
        if stable.probability >= PILOT_LEVEL:
            reason = (
                f"learning rate {surviving:.2g} survived; {factor:g} times as much makes the same "
                "progress in fewer steps, which tells plateau from timescale, and shows what the "
                "model tolerates."
            )
            return NextPilot(settings=varied, steps=steps, stability=stable, reason=reason)
    varied = _at(settings, surviving / RATE_REACH)
    return NextPilot(
        settings=varied,
        steps=steps,
        stability=stability(forecaster, varied, steps),
        reason=(
            f"learning rates above {surviving:.2g} would probably collapse; a third of it tells "
            "the learning-rate exponent, and how much safety it buys."
        ),
    )


UPWARD = (RATE_REACH, 2.0, 1.5)
"""Factors on the largest surviving learning rate, boldest first."""


def _at(settings: Hyperparameters, rate: float) -> Hyperparameters:
    return settings.model_copy(update={"learning_rate": float(f"{rate:.2g}")})
