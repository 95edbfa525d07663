"""How much of a rising run the closed form explains, by model and group size.

Of every run of the tables that did not die: R² of twenty bins, beside that of noise without a
trend. The closed form is one damped mode in its overdamped limit, a saturating exponential
(arXiv:2606.30789), fitted by least squares to the whole run. The paper reports 0.91 and more on
three models. R² shows how a curve lies on what is known, not what it forecasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from run_store import packed_places, unpack
from scipy.optimize import least_squares
from trained_runs import Trained, trained

from advisor.forecast import EXPONENTIAL, TIME
from advisor.theory import FloatArray

BINS, SURROGATES = 20, 3
LEAST_STEPS = 30
RISE = 0.5
"""Share of its range by which the last third of a rising run lies above the first."""

GOOD = 0.91
"""R² that the paper reports at least."""


def fitted(time: FloatArray, reward: FloatArray) -> FloatArray:
    """Start, plateau and log time scale of least squares; rewards between 0 and 1."""
    starts, low, high = TIME
    bounds = ([0.0, 0.0, low], [1.0, 1.0, high])
    guesses = [
        np.clip([reward[0], plateau, rate], np.add(bounds[0], 1e-6), np.subtract(bounds[1], 1e-6))
        for plateau in (0.4, 0.9)
        for rate in starts
    ]
    fits = [
        least_squares(lambda x: EXPONENTIAL.value(x, time) - reward, guess, bounds=bounds)
        for guess in guesses
    ]
    return np.asarray(min(fits, key=lambda fit: fit.cost).x)


def binned(values: FloatArray) -> FloatArray:
    """Means of twenty stretches at most."""
    return np.array([part.mean() for part in np.array_split(values, min(BINS, values.size))])


def r_squared(reward: FloatArray) -> float:
    """Share of the bins' variance that the fitted curve explains."""
    time, means = binned(np.arange(1, reward.size + 1) / reward.size), binned(reward)
    left = means - EXPONENTIAL.value(fitted(time, means), time)
    return 1 - float((left**2).sum() / ((means - means.mean()) ** 2).sum())


def surrogate(reward: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Noise without a trend, of a run's spread and lag-one correlation."""
    away = reward - reward.mean()
    kept = float(np.clip((away[1:] * away[:-1]).sum() / (away**2).sum(), 0.0, 0.95))
    noise = rng.standard_normal(reward.size)
    for row in range(1, reward.size):
        noise[row] = kept * noise[row - 1] + np.sqrt(1 - kept**2) * noise[row]
    return np.clip(reward.mean() + reward.std() * noise, 0.0, 1.0)


def record(run: Trained) -> tuple[float, float] | None:
    """R² of a run that rises by half of its range and lived, and of noise; None of another."""
    _, reward = run.rewards
    if run.died_at is not None or reward.size < LEAST_STEPS or not np.ptp(reward):
        return None
    scaled = (reward - reward.min()) / np.ptp(reward)
    third = scaled.size // 3
    if scaled[-third:].mean() - scaled[:third].mean() < RISE:
        return None
    rng = np.random.default_rng(scaled.size)
    noise = [r_squared(surrogate(scaled, rng)) for _ in range(SURROGATES)]
    return round(r_squared(scaled), 3), round(float(np.median(noise)), 3)


def described(found: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Median and share above the paper's number, beside noise."""
    bins, noise = np.array(found).T
    return {
        "runs": len(found),
        "median": round(float(np.median(bins)), 3),
        "median of noise": round(float(np.median(noise)), 3),
        f"at least {GOOD}": round(float((bins >= GOOD).mean()), 3),
        f"noise at least {GOOD}": round(float((noise >= GOOD).mean()), 3),
    }


def result() -> dict[str, Any]:
    """All of it, by model and by group size of each, of the runs of both tables."""
    found: dict[str, list[tuple[float, float]]] = {}
    for place in packed_places():
        model = place.split("/")[0] if "/" in place else "smollm2"
        for run in trained(unpack(place)):
            if one := record(run):
                for name in (model, f"{model}, groups of {run.configuration.group}"):
                    found.setdefault(name, []).append(one)
    return {"by model": {name: described(own) for name, own in sorted(found.items())}}
