"""How much of a public run the closed form explains, beside what it explains of noise.

    python case_studies/real_runs/closed_form.py FOLDER... [--out closed_form.json]

One damped mode in its overdamped limit, a saturating exponential (arXiv:2606.30789), is fitted by
least squares to each whole run. R² is given of rows and of twenty bins, of all runs and of those
that rise by half of their range; a surrogate without a trend, of the run's own spread and lag-one
correlation, is fitted alike. R² says how a curve lies on what is known: what it foretells is in
`run.py`, and no forecast follows from it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from manifest import manifest  # noqa: E402
from run import Run, load  # noqa: E402
from scipy.optimize import least_squares  # noqa: E402

from advisor.forecast import EXPONENTIAL, TIME  # noqa: E402
from advisor.theory import FloatArray  # noqa: E402

BINS, SURROGATES = 20, 10
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


def explained(values: FloatArray, curve: FloatArray) -> float:
    """Share of the variance that a curve explains."""
    return 1 - float(((values - curve) ** 2).sum() / ((values - values.mean()) ** 2).sum())


def r_squared(reward: FloatArray) -> tuple[float, float]:
    """Of rows and of bins."""
    time = np.arange(1, reward.size + 1) / reward.size
    theta = fitted(binned(time), binned(reward))
    of_bins = explained(binned(reward), EXPONENTIAL.value(theta, binned(time)))
    return explained(reward, EXPONENTIAL.value(theta, time)), of_bins


def surrogate(reward: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Noise without a trend, of a run's spread and lag-one correlation."""
    away = reward - reward.mean()
    kept = float(np.clip((away[1:] * away[:-1]).sum() / (away**2).sum(), 0.0, 0.95))
    noise = rng.standard_normal(reward.size)
    for row in range(1, reward.size):
        noise[row] = kept * noise[row - 1] + np.sqrt(1 - kept**2) * noise[row]
    return np.clip(reward.mean() + reward.std() * noise, 0.0, 1.0)


def record(run: Run) -> dict[str, Any]:
    """R² of one run and the median of its surrogates."""
    reward = run.pilot.reward[np.isfinite(run.pilot.reward)]
    scaled = (reward - reward.min()) / np.ptp(reward)
    third = max(1, scaled.size // 3)
    rng = np.random.default_rng(scaled.size)
    rows, bins = r_squared(scaled)
    noise = [r_squared(surrogate(scaled, rng))[1] for _ in range(SURROGATES)]
    return {
        "run": run.pilot.id,
        "repository": run.repository,
        "rises": bool(scaled[-third:].mean() - scaled[:third].mean() >= RISE),
        "rows": round(rows, 3),
        "bins": round(bins, 3),
        "bins of noise": round(float(np.median(noise)), 3),
    }


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians, and the share of runs above what the paper reports."""
    return {
        "runs": len(found),
        "repositories": len({one["repository"] for one in found}),
        **{
            name: round(float(np.median([one[name] for one in found])), 3)
            for name in ("rows", "bins", "bins of noise")
        },
        f"bins at least {GOOD}": round(float(np.mean([one["bins"] >= GOOD for one in found])), 3),
        f"noise at least {GOOD}": round(
            float(np.mean([one["bins of noise"] >= GOOD for one in found])), 3
        ),
    }


def main() -> None:
    """Read, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    runs, _ = load(given.folders)
    found = [record(run) for run in runs]
    document = {
        "all": summary(found),
        "rising": summary([one for one in found if one["rises"]]),
        "by run": found,
        "manifest": manifest(Path(__file__), seeds=1, checks={}),
    }
    text = json.dumps(document, indent=1) + "\n"
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    print(json.dumps({name: document[name] for name in ("all", "rising")}, indent=1))


if __name__ == "__main__":
    main()
