"""How stiff the network is: by the pilots' curves, by what the outcomes need, by products."""

from __future__ import annotations

from typing import Any

import numpy as np
from job import MOMENTUM, PROMPTS, Job, effective_rate
from plan import Setup
from verdict import band

from advisor.forecast import Forecaster, Target
from advisor.model import Posterior
from advisor.runs import PartialSettings
from advisor.theory import FloatArray, stiffness_limit

Looks = dict[Job, list[dict[str, Any]]]


def fitted(setup: Setup, posterior: Posterior, job: Job) -> FloatArray:
    """Stiffness per step that the reward curves of the pilots show at a job's rate, per draw."""
    group = (setup.task, f"tiny-{setup.size}")
    size = posterior.meta.group_parameters[posterior.meta.groups.index(group)]
    forecaster = Forecaster(posterior, Target(*group, size))
    settings = PartialSettings(
        learning_rate=effective_rate(job), group_size=job.group, prompts_per_step=PROMPTS
    )
    return forecaster.law_stiffness(settings.completed())


def limit(interval: int, lag: int) -> float:
    """Largest stiffness that a schedule without a ratio stands."""
    return float(stiffness_limit(MOMENTUM, interval, 1.0, lag))


def implied(cells: list[dict[str, Any]], stiffness: float) -> dict[str, Any]:
    """Stiffness ratio that the outcomes without a ratio need, for one rate and one kind of sweep.

    Parameters
    ----------
    cells : list of dict
        Of one rate, along K or along the lag.
    stiffness : float
        Fitted, at that rate.

    Returns
    -------
    bracket : dict
        Had the fitted stiffness been ``low`` to ``high`` times as large, the map would diverge in
        the first cell that lost most of its runs, not in the one before; None where no cell did.
    """
    ordered = sorted(cells, key=lambda cell: -limit(cell["interval"], cell["lag"]))
    limits = [limit(cell["interval"], cell["lag"]) for cell in ordered]
    bad = [2 * cell["lost_a_third"] > cell["runs"] for cell in ordered]
    first = bad.index(True) if any(bad) else None
    return {
        "low": None if first is None else limits[first] / stiffness,
        "high": limits[-1 if first is None else first - 1] / stiffness if first != 0 else None,
        "first_lost": None if first is None else [ordered[first][n] for n in ("interval", "lag")],
    }


def stiffest_of(setup: Setup, look: dict[str, Any]) -> dict[str, float]:
    """Curvatures that bear on the run's own optimizer."""
    return dict(look["adam" if setup.optimizer == "adamw" else "raw"])


def stiffness(
    setup: Setup, rate: float, posterior: Posterior, looks: Looks, cells: list[dict[str, Any]]
) -> dict[str, Any]:
    """Fitted stiffness at a rate, what the outcomes need, and what the products measure."""
    job = setup.job(rate, 1)
    draws = fitted(setup, posterior, job)
    own = [c for c in cells if c["learning_rate"] == rate and not c["importance_ratio"]]
    kinds = {
        "K": [c for c in own if c["lag"] == 0],
        "lag": [c for c in own if c["interval"] == 1],
    }
    needed = {
        kind: implied(along, float(np.median(draws)))
        for kind, along in kinds.items()
        if len(along) > 1
    }
    on_policy = [
        {
            "seed": at.seed,
            "step": look["step"],
            "chance": look["chance"],
            **stiffest_of(setup, look),
        }
        for at, seen in looks.items()
        if at.rate == rate and at.interval == 1
        for look in seen
    ]
    whole = effective_rate(job) * np.array([look["whole"] for look in on_policy])
    pulling = effective_rate(job) * np.array([look["along_gradient"] for look in on_policy])
    for cell in own:
        most = limit(cell["interval"], cell["lag"])
        cell["p_one_mode"] = float((draws >= most).mean())
        cell["p_by_products"] = float((whole >= most).mean())
    return {
        "learning_rate": rate,
        "fitted": band(draws),
        "needed": needed,
        "by_products": band(whole),
        "ratio_by_products": band(np.divide.outer(whole, draws)),
        "along_gradient_over_fitted": band(np.divide.outer(pulling, draws)),
        "stale_share": band([look["stale_of_whole_mode"] / look["whole"] for look in on_policy]),
        "stale_share_with_ratio": band([x["left_by_ratio"] / x["whole"] for x in on_policy]),
        "looks": on_policy,
    }
