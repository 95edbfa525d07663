"""Advice for larger models from pilots, and what its text says of the distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import training as loop
from plan import Plan, parameters

from advisor.advice import advise
from advisor.errors import InputError
from advisor.model import Posterior


def quantiles(draws: Any) -> list[float]:
    """Median within its central 80 % interval."""
    return [round(float(value), 3) for value in np.quantile(draws, (0.1, 0.5, 0.9))]


def exponents(posterior: Posterior | None) -> dict[str, Any]:
    """What a posterior says of size, as stiffness and as the rate that keeps it the same."""
    if posterior is None:
        return {"curvature_exponent": None, "rate_exponent": None}
    curvature = posterior.flat("curvature_exponent")
    return {
        "curvature_exponent": quantiles(curvature),
        "rate_exponent": quantiles(-curvature / posterior.flat("rate.learning_rate")),
    }


def advised(
    plan: Plan, task: str, sizes: tuple[str, ...], draw: int, rows: list[loop.Trained]
) -> Iterator[dict[str, Any]]:
    """Advice for every target after these pilots."""
    posterior = loop.fitted(loop.as_runs(rows), draw)
    best = max(rows, key=lambda row: row.seen)
    for size in plan.targets:
        asked = {"task": task, "pilots": "+".join(sizes), "draw": draw, "target": size}
        asked |= {"factor": round(parameters(size) / max(parameters(s) for s in sizes), 1)}
        asked |= {"best_pilot_rate": best.row["lr"], **exponents(posterior)}
        if posterior is None:
            yield asked | {"kind": "no fit"}
            continue
        choices = [
            loop.settings((rate, plan.group, 1)).model_copy(update={"planned_steps": plan.steps})
            for rate in plan.rates
        ]
        try:
            found = advise(
                posterior,
                task=task,
                model=f"tiny-{size}",
                parameters=parameters(size),
                steps=plan.steps,
                choose_from=choices,
                indifference=0.0,
                weigh_pilots=False,
                trials=len(choices),
                seed=0,
            )
        except InputError:
            yield asked | {"kind": "no answer"}
            continue
        yield asked | {
            "kind": found.kind,
            "learning_rate": found.settings.learning_rate,
            "p_stable": found.stability.probability,
            "reward": {
                "mean": found.reward.mean,
                "lower": found.reward.low,
                "upper": found.reward.high,
            },
            "cautions": list(found.cautions),
            # Only what the reader of the text sees counts as a warning.
            "says_outside": found.outside is not None and found.outside in found.text,
            "says_not_piloted": f"No pilot ran tiny-{size} on {task}" in found.text,
        }
