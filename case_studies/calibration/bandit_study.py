"""Study 2: forecasts of bandits, and the exponent of their learning rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from bandit import make_cohort
from one_simulation import PRESET
from simulation_lines import made_under, read_header, read_records, run_missing

from advisor.backtesting import backtest
from advisor.backtesting.scores import INTERVALS, QUANTILES
from advisor.common import EngineSettings
from advisor.errors import NotConvergedError
from advisor.forecast import fit
from advisor.model import NormalPrior, load_priors

SEEN = 0.3
"""Share of each run that is seen; its mean reward over the last tenth is asked."""

METHODS = ("advisor", "exponential", "last value")

EXPONENT = "rate_learning_rate"
TRUE_EXPONENT = 1.0
"""Of SGD: a doubled learning rate doubles every step, and so the stiffness."""

DOUBTER = NormalPrior(
    mean=0.5, sd=0.5, source="Centred at the wrong exponent, so that the data must tell"
)
"""Prior of the exponent: that of the preset is centred at the truth already."""


def forecast_cohort(_: str, number: int) -> dict[str, Any]:
    """Forecast one cohort's runs, and fit its exponent under a prior that doubts it."""
    runs = make_cohort(number)
    found = backtest(runs, seen=SEEN, priors=PRESET)
    doubting = load_priors(PRESET).model_copy(update={EXPONENT: DOUBTER})
    try:
        posterior = fit([run.first_part(SEEN) for run in runs], priors=doubting)
        exponent = np.quantile(posterior.flat("rate.learning_rate"), QUANTILES).tolist()
    except NotConvergedError:
        exponent = None
    return {
        "number": number,
        "momentum": runs[0].hyperparameters.momentum,
        "left_out": list(found.left_out),
        "failed": list(found.failed),
        "predictions": [
            {
                "method": p.method,
                "run": p.run,
                "target": p.target,
                "quantiles": p.quantiles,
                "crps": p.crps,
            }
            for p in found.predictions
            if p.method in METHODS
        ],
        "exponent": exponent,
    }


def run_cohorts(wanted: int, folder: Path, on: EngineSettings | None = None) -> None:
    """Run the cohorts that are missing; each is a line that stays."""
    header = made_under("bandits", PRESET)
    run_missing(folder / "bandits.jsonl", header, forecast_cohort, range(wanted), on=on)


def summary(path: Path) -> dict[str, Any]:
    """Scores of the forecasts and of the exponent; cohorts that failed count as failed."""
    header = read_header(path)
    records = read_records(path)
    exponents = [record["exponent"] for record in records if record["exponent"]]
    prior = getattr(load_priors(PRESET), EXPONENT)
    return {
        "formulas": header["formulas"],
        "preset": header["preset"],
        "cohorts": len(records),
        "not_converged": sum(bool(record["failed"]) for record in records),
        "left_out": sum(len(record["left_out"]) for record in records),
        "seen": SEEN,
        "methods": {method: _scores(records, method) for method in METHODS},
        "exponent": {
            "true": TRUE_EXPONENT,
            "prior": {"mean": DOUBTER.mean, "sd": DOUBTER.sd},
            "prior_of_preset": {"mean": prior.mean, "sd": prior.sd},
            "cohorts": len(exponents),
            "not_converged": len(records) - len(exponents),
            **_exponent(np.array(exponents)),
        },
    }


def _scores(records: list[dict[str, Any]], method: str) -> dict[str, Any]:
    """Error and coverage; the error of the coverage is over cohorts, whose runs go together."""
    cohorts = [
        [p for p in record["predictions"] if p["method"] == method]
        for record in records
        if record["predictions"]
    ]
    own = [p for cohort in cohorts for p in cohort]
    quantiles = np.array([p["quantiles"] for p in own])
    targets = np.array([p["target"] for p in own])
    by_cohort = [
        np.mean([_inside(np.array(p["quantiles"]), p["target"], 0.8) for p in cohort])
        for cohort in cohorts
    ]
    return {
        "runs": len(own),
        "mae": float(np.mean(np.abs(quantiles[:, QUANTILES.index(0.5)] - targets))),
        "crps": float(np.mean([p["crps"] for p in own])),
        "coverage": {
            f"{interval:g}": float(np.mean(_inside(quantiles, targets, interval)))
            for interval in INTERVALS
        },
        "error_of_80": float(np.std(by_cohort, ddof=1) / np.sqrt(len(by_cohort))),
        "mean_width_80": float(np.mean(_width(quantiles))),
    }


def _exponent(quantiles: np.ndarray) -> dict[str, Any]:
    return {
        "mean_of_medians": float(np.mean(quantiles[:, QUANTILES.index(0.5)])),
        "mean_width_80": float(np.mean(_width(quantiles))),
        "holds": {
            f"{interval:g}": float(np.mean(_inside(quantiles, TRUE_EXPONENT, interval)))
            for interval in INTERVALS
        },
    }


def _inside(quantiles: np.ndarray, value: Any, interval: float) -> Any:
    low = QUANTILES.index(round((1 - interval) / 2, 3))
    return (quantiles[..., low] <= value) & (value <= quantiles[..., -1 - low])


def _width(quantiles: np.ndarray) -> Any:
    return quantiles[..., QUANTILES.index(0.9)] - quantiles[..., QUANTILES.index(0.1)]
