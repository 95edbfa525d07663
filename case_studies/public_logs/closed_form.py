"""R² of the closed form on whole runs, of the same fit to noise, and the error of its forecast."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import least_squares
from sources import Labelled

from advisor.backtesting.backtests import CURVES
from advisor.runs.diagnosis import diagnose
from advisor.runs.diagnosis.levels import lag_one
from advisor.runs.pilot_run import PilotRun
from advisor.theory.arrays import FloatArray

LEAST_ROWS, BINS, SEEN, SURROGATES = 40, 20, 0.25, 10
NAMES = ("r2_rows", "r2_bins", "r2_bins_of_noise", "forecast_error", "last_value_error")
CURVE = CURVES["exponential"]


def fitted(time: FloatArray, reward: FloatArray) -> FloatArray:
    """Least-squares parameters: start, plateau and log timescale; rewards scaled to [0, 1]."""
    bounds = (
        [0.0, 0.0, *(b[1] for b in CURVE.more)],
        [1.0, 1.0, *(b[2] for b in CURVE.more)],
    )
    best = None
    for plateau in (0.4, 0.9):
        for rate in CURVE.more[0][0]:
            guess = np.clip([reward[0], plateau, rate], np.add(bounds[0], 1e-6), 1 - 1e-6)
            found = least_squares(
                lambda theta: CURVE.value(theta, time) - reward, guess, bounds=bounds
            )
            if best is None or found.cost < best.cost:
                best = found
    assert best is not None
    return np.asarray(best.x)


def binned(values: FloatArray) -> FloatArray:
    """Means of at most ``BINS`` stretches."""
    return np.array([part.mean() for part in np.array_split(values, min(BINS, values.size))])


def explained(values: FloatArray, curve: FloatArray) -> float:
    """Share of the variance that a curve explains."""
    total = float(((values - values.mean()) ** 2).sum())
    return float("nan") if total <= 0 else 1 - float(((values - curve) ** 2).sum()) / total


def fit_of(reward: FloatArray) -> tuple[float, float]:
    """R² of the curve on rows and on bin means, rewards scaled."""
    time = np.arange(1, reward.size + 1) / reward.size
    theta = fitted(binned(time), binned(reward))
    rows = explained(reward, CURVE.value(theta, time))
    return rows, explained(binned(reward), CURVE.value(theta, binned(time)))


def surrogate(reward: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Noise without a trend, of the run's own spread and lag-one correlation."""
    correlation = min(max(lag_one(reward - reward.mean()), 0.0), 0.95)
    noise = rng.standard_normal(reward.size)
    for row in range(1, reward.size):
        noise[row] = correlation * noise[row - 1] + np.sqrt(1 - correlation**2) * noise[row]
    return np.clip(reward.mean() + reward.std() * noise, 0.0, 1.0)


def judged(run: PilotRun) -> dict[str, Any] | None:
    """Fit, control and forecast of one run; None where it is too short or does not move."""
    reward = run.reward[np.isfinite(run.reward)]
    if reward.size < LEAST_ROWS or np.ptp(reward) <= 0:
        return None
    low = min(0.0, float(reward.min()))
    high = max(1.0, float(reward.max())) if low >= 0 else float(reward.max())
    scaled = (reward - low) / (high - low)
    rows, bins = fit_of(scaled)
    rng = np.random.default_rng(reward.size)
    noise = [fit_of(surrogate(scaled, rng))[1] for _ in range(SURROGATES)]
    seen = max(8, round(SEEN * scaled.size))
    time = np.arange(1, scaled.size + 1) / seen
    theta = fitted(binned(time[:seen]), binned(scaled[:seen]))
    tail = max(1, scaled.size // 10)
    forecast = float(CURVE.value(theta, time[-tail:]).mean())
    return {
        "rows": int(reward.size),
        "r2_rows": round(rows, 3),
        "r2_bins": round(bins, 3),
        "r2_bins_of_noise": round(float(np.median(noise)), 3),
        "forecast_error": round(abs(forecast - float(scaled[-tail:].mean())), 3),
        "last_value_error": round(
            abs(float(scaled[max(0, seen - tail) : seen].mean() - scaled[-tail:].mean())), 3
        ),
    }


def closed_form(rows: list[Labelled]) -> dict[str, Any]:
    """Fit every run; medians by model and group size, and what R² says of the forecast's error."""
    runs: list[dict[str, Any]] = []
    for row in rows:
        found = judged(row.run)
        if found is not None:
            runs.append(
                {
                    "id": row.id,
                    "repository": row.repository,
                    "model": row.model,
                    "group_size": row.group_size,
                    "label": row.label,
                    "verdict": diagnose(row.run).verdict,
                    **found,
                }
            )
    cells: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        size = run["group_size"]
        kind = "unknown" if size is None else "at most 4" if size <= 4 else "8 and more"
        cells.setdefault(f"{run['model']}, group size {kind}", []).append(run)
    alive = [run for run in runs if run["label"] not in ("collapse", "decline")]
    pairs = np.array([[run["r2_bins"], run["forecast_error"]] for run in alive])
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    ranks = pairs.argsort(axis=0).argsort(axis=0)
    return {
        "all": _medians(runs),
        "rank_correlation_of_r2_and_error": round(float(np.corrcoef(ranks.T)[0, 1]), 3),
        "by_cell": {
            cell: _medians(own) for cell, own in sorted(cells.items(), key=lambda p: -len(p[1]))
        },
        "runs": runs,
    }


def _medians(own: list[dict[str, Any]]) -> dict[str, float]:
    middle = {name: round(float(np.nanmedian([run[name] for run in own])), 3) for name in NAMES}
    return {"runs": len(own), **middle}
