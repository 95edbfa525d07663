"""Scores of stated probabilities, with intervals over repositories, and plain peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.stats import rankdata
from sources import Labelled

from advisor.theory.arrays import FloatArray

RESAMPLES = 2000
RIDGE = 1.0
"""Prior sd of a logistic coefficient per sd of its feature: collapses separate the data else."""

EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 1.0)


def features(row: Labelled) -> list[float]:
    """Log learning rate, adapter or not, log refresh interval."""
    settings = row.run.hyperparameters.completed()
    return [
        float(np.log(settings.learning_rate)),
        float(settings.adapter == "lora"),
        float(np.log(settings.refresh_interval)),
    ]


def logistic(others: Sequence[Labelled], own: Sequence[Labelled]) -> FloatArray:
    """Probabilities from a ridge logistic regression on the features."""
    x, happened = np.array([features(row) for row in others]), collapsed(others)
    mean, sd = x.mean(axis=0), x.std(axis=0)
    sd[sd == 0] = 1.0
    design = np.column_stack([np.ones(len(x)), (x - mean) / sd])

    def loss(theta: FloatArray) -> float:
        odds = design @ theta
        return float(np.logaddexp(0, odds).sum() - happened @ odds + (theta[1:] ** 2).sum() / 2)

    theta = minimize(loss, np.zeros(design.shape[1])).x
    asked = (np.array([features(row) for row in own]) - mean) / sd
    return np.asarray(1 / (1 + np.exp(-np.column_stack([np.ones(len(asked)), asked]) @ theta)))


def base_rate(others: Sequence[Labelled]) -> float:
    """Share of collapses with half a run added to either side, so that no log is infinite."""
    return float((collapsed(others).sum() + 0.5) / (len(others) + 1))


def collapsed(rows: Sequence[Labelled]) -> FloatArray:
    """1 where the eye saw a collapse."""
    return np.array([float(row.label == "collapse") for row in rows])


def brier(said: FloatArray, happened: FloatArray) -> float:
    """Mean squared error of probabilities."""
    return float(((said - happened) ** 2).mean())


def log_score(said: FloatArray, happened: FloatArray) -> float:
    """Mean surprise, in nats."""
    said = np.clip(said, 1e-9, 1 - 1e-9)
    return float(-(happened * np.log(said) + (1 - happened) * np.log1p(-said)).mean())


def rank_auc(said: FloatArray, happened: FloatArray) -> float:
    """Chance that a collapsed run was given more than one that lived; ties count half."""
    events, others = happened.sum(), (1 - happened).sum()
    if not events or not others:
        return float("nan")
    ranks = rankdata(said)
    return float((ranks[happened == 1].sum() - events * (events + 1) / 2) / (events * others))


def over_repositories(
    value: Callable[[npt.NDArray[np.intp]], float], repositories: Sequence[str]
) -> list[float | None]:
    """Value on all runs with its 95 % interval when whole repositories are drawn anew."""
    names = np.array(repositories)
    places = [np.flatnonzero(names == name) for name in dict.fromkeys(repositories)]
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        chosen = rng.integers(len(places), size=len(places))
        drawn.append(value(np.concatenate([places[at] for at in chosen])))
    found = np.array(drawn)
    known = found[np.isfinite(found)]
    ends = [None, None] if not known.size else np.quantile(known, [0.025, 0.975]).tolist()
    whole = value(np.arange(names.size))
    return [None if v is None or not np.isfinite(v) else round(float(v), 4) for v in (whole, *ends)]


def scored(
    said: FloatArray, peer: FloatArray, happened: FloatArray, repositories: Sequence[str]
) -> dict[str, Any]:
    """Brier, log score, AUC, and gain in Brier over a peer, each with its interval."""
    return {
        "brier": over_repositories(lambda at: brier(said[at], happened[at]), repositories),
        "brier_less_base_rate": over_repositories(
            lambda at: brier(said[at], happened[at]) - brier(peer[at], happened[at]), repositories
        ),
        "log_score": over_repositories(lambda at: log_score(said[at], happened[at]), repositories),
        "auc": over_repositories(lambda at: rank_auc(said[at], happened[at]), repositories),
    }


def reliability(said: FloatArray, happened: FloatArray) -> list[dict[str, float]]:
    """Collapses expected and seen, by what was said."""
    table = []
    for low, high in pairwise(EDGES):
        inside = (said >= low) & ((said < high) | (high == 1.0))
        if inside.any():
            table.append(
                {
                    "from": low,
                    "to": high,
                    "runs": int(inside.sum()),
                    "said": round(float(said[inside].mean()), 4),
                    "happened": round(float(happened[inside].mean()), 4),
                }
            )
    return table
