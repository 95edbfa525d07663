"""What a preset is worth to a new cohort of the team: forecasts from three short pilots."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from cohort_fits import ATTEMPTS, DIVERGENT, ESS, RHAT
from cohorts import made_cohort
from engine_flags import results

from advisor.backtesting.backtests import CURVES
from advisor.backtesting.scores import crps
from advisor.common import EngineSettings, Item, digest_of, silent
from advisor.forecast import Forecaster, Target, curve_fit, final_reward, final_rows
from advisor.model import SPECTRUM, Priors, cohort_of, sampled
from advisor.model.priors import AS_THE_CURVE
from advisor.runs import PilotRun
from advisor.theory import FloatArray

PILOTS, SEEN = 3, 0.25
"""Runs of a cohort that are piloted, and the share of them that is: what a team can pay."""

RULE, PEER = "last rewards of the pilots", "exponential of the pilot with the nearest learning rate"
CURVE, BOUNDS = "exponential", (0.0, 1.0)
SCORES = ("crps", "absolute_error", "held_by_80")
Asked = tuple[int, str, Priors]


def forecasts(
    presets: dict[str, Priors], numbers: Sequence[int], where: EngineSettings
) -> dict[str, Any]:
    """Errors of forecasts of whole runs that were not piloted, by preset, beside a simple rule.

    Standard errors are over cohorts, of which each counts once.
    """
    items = [
        Item(
            f"{name}, cohort {number}",
            (number, name, preset),
            (str(number), digest_of(preset.model_dump(mode="json")), f"{PILOTS}x{SEEN}"),
        )
        for name, preset in presets.items()
        for number in numbers
    ]
    found = results(forecast, items, "Forecasting held-out cohorts", where)
    once = found[: len(numbers)]  # rule and peer know no preset
    ways = {name: [one["model"] for one in found if one["preset"] == name] for name in presets}
    ways |= {way: [one[way] for one in once] for way in (RULE, PEER)}
    scores = {
        way: {what: np.array([one[what] for one in told]) for what in SCORES}
        for way, told in ways.items()
    }
    more = {way: one["crps"] - scores["team"]["crps"] for way, one in scores.items()}
    return {
        "cohorts": len(numbers),
        "runs_asked": sum(one["runs"] for one in once),
        "pilots": PILOTS,
        "share_of_a_pilot": SEEN,
        "scores": {
            way: {what: _mean(each) for what, each in one.items()} for way, one in scores.items()
        },
        "crps_less_that_of_team": {
            way: {"mean": _mean(each), "standard_error": _error(each)}
            for way, each in more.items()
            if way != "team"
        },
    }


def forecast(asked: Asked) -> dict[str, Any]:
    """Errors in one cohort under one preset."""
    number, name, preset = asked
    runs = made_cohort(number)
    pilots, whole = [run.first_part(SEEN) for run in runs[:PILOTS]], runs[PILOTS:]
    # The runs come from the law itself, which no table of trained runs corrects.
    preset = preset.model_copy(update={"extrapolation": AS_THE_CURVE})
    cohort = cohort_of(pilots)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attempt in ATTEMPTS:
            posterior = sampled(cohort, preset, SPECTRUM, attempt, silent)
            if posterior.convergence.complaint(RHAT, ESS, DIVERGENT) is None:
                break
    ((task, model),), (parameters,) = posterior.meta.groups, posterior.meta.group_parameters
    forecaster = Forecaster(posterior, Target(task, model, parameters))
    told: dict[str, list[Any]] = {}
    rng = np.random.default_rng(number)
    for run in whole:
        end = float(run.reward[final_rows(run)].mean())
        draws = {
            "model": final_reward(forecaster, run.hyperparameters.completed(), int(run.step[-1])),
            RULE: _last(pilots),
            PEER: curve_fit(
                _nearest(pilots, run), run.step[final_rows(run)], CURVES[CURVE], BOUNDS, rng
            )[0],
        }
        for way, each in draws.items():
            low, high = np.quantile(each, (0.1, 0.9))
            told.setdefault(way, []).append(
                (float(crps(each, end)), abs(float(np.median(each)) - end), low <= end <= high)
            )
    return {
        "preset": name,
        "runs": len(whole),
        **{
            way: dict(zip(SCORES, np.mean(one, axis=0).tolist(), strict=True))
            for way, one in told.items()
        },
    }


def _last(pilots: Sequence[PilotRun]) -> FloatArray:
    """Last rewards of the pilots, as if the next run ended at one of them."""
    return np.array([float(run.reward[final_rows(run)].mean()) for run in pilots])


def _nearest(pilots: Sequence[PilotRun], run: PilotRun) -> PilotRun:
    """Pilot whose learning rate is the nearest."""
    rates = np.log([one.hyperparameters.completed().learning_rate for one in (run, *pilots)])
    return pilots[int(np.abs(rates[1:] - rates[0]).argmin())]


def _mean(values: Any) -> float:
    return round(float(values.mean()), 4)


def _error(values: Any) -> float:
    return round(float(values.std(ddof=1) / np.sqrt(values.size)), 4)
