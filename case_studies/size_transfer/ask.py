"""Advice for larger models from pilots, and what its text says of the distance."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from plan import PROMPTS, Plan, parameters

from advisor.advice import advise
from advisor.errors import AdvisorError, InputError
from advisor.forecast import fit
from advisor.model import Posterior, Sampling
from advisor.runs import PartialSettings, PilotRun, read_runs

LOOKED_AT = 10
Row = dict[str, Any]


def as_runs(rows: Iterable[Row]) -> list[PilotRun]:
    """Read rows as anybody's logs are read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pilots.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return read_runs([path])


def fitted(rows: Iterable[Row], seed: int) -> Posterior | None:
    """Posterior of pilots, or None where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fit(as_runs(rows), sampling=Sampling(seed=seed + 1))
        except AdvisorError:
            return None


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
    plan: Plan, task: str, sizes: tuple[str, ...], draw: int, rows: Sequence[Row]
) -> Iterator[dict[str, Any]]:
    """Advice for every target after these pilots."""
    posterior = fitted(rows, draw)
    best = max(rows, key=lambda row: np.mean(row["reward"][-LOOKED_AT:]))
    for size in plan.targets:
        asked = {"task": task, "pilots": "+".join(sizes), "draw": draw, "target": size}
        asked |= {"factor": round(parameters(size) / max(parameters(s) for s in sizes), 1)}
        asked |= {"best_pilot_rate": best["lr"], **exponents(posterior)}
        if posterior is None:
            yield asked | {"kind": "no fit"}
            continue
        choices = [
            PartialSettings(
                learning_rate=rate,
                group_size=plan.group,
                prompts_per_step=PROMPTS,
                planned_steps=plan.steps,
            ).completed()
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
            # Only what the reader of the text sees counts as a warning.
            "says_outside": found.outside is not None and found.outside in found.text,
        }
