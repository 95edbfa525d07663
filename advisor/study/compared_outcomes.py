"""A study beside finished runs: what it forecasts for exactly their settings, and what came."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from advisor.advice import AXES, Recommendation, percent, what_if_rows
from advisor.errors import InputError
from advisor.forecast import FINAL_SHARE, Forecaster, final_rows
from advisor.model import Posterior
from advisor.runs import PilotRun, Settings, diagnose
from advisor.study.compared_lines import Comparison, Line, Section

SIDES = ("forecast", "outcome", "difference")
"""Heads of the columns."""

SAME = 1e-6
"""Relative difference below which two learning rates are one: logs round them."""


def compare_outcomes(
    paths: tuple[str, str],
    posterior: Posterior,
    advice: Recommendation,
    runs: Sequence[PilotRun],
) -> Comparison:
    """Set a study's forecasts beside runs that were made.

    Parameters
    ----------
    paths : tuple of str
        Of the study and of the runs.
    posterior : Posterior
    advice : Recommendation
        Both of the study.
    runs : sequence of PilotRun
        Of the model and task that the study advises on; each is forecast at its own settings and
        length, which need not be those advised.

    Returns
    -------
    comparison : Comparison
        A line per run. It differs where the outcome lies outside the forecast's interval.

    Raises
    ------
    InputError
        A run is of another model or task, or its settings are not known.
    """
    forecaster = Forecaster(posterior, advice.target, seed=advice.seed)
    ordered = sorted(runs, key=lambda run: _place(advice, _settings(advice, run)))
    lines = tuple(_line(forecaster, advice, run) for run in ordered)
    notes = [
        f"Forecast: {advice.measure} at the last step of a run of exactly these settings, with the "
        "80 % interval of one run that stays stable, and P(stable). Outcome: mean of its last "
        "tenth, and what it generated.",
        f"The {advice.pilots} pilots generated {advice.pilots_cost:,.0f} completions, "
        f"{advice.pilots_cost / advice.cost.completions:.0%} of the advised run's "
        f"{advice.cost.completions:,.0f}.".replace("%", " %"),
    ]
    if not any(_place(advice, _settings(advice, run)) == 0 for run in runs):
        notes.append("None of these runs has the advised settings.")
    return Comparison(
        "study and runs", paths, (Section("Forecast and outcome", lines, tuple(notes)),), SIDES
    )


def _line(forecaster: Forecaster, advice: Recommendation, run: PilotRun) -> Line:
    settings, steps = _settings(advice, run), int(run.step[-1])
    row = what_if_rows(forecaster, advice.cost_model, settings, {"steps": steps})[0]
    came, fell = _came(advice, run), diagnose(run).collapse_step
    generated = steps * settings.prompts_per_step * settings.group_size
    generated /= settings.epochs_per_refresh
    mean, low, high = (float(row[name]) for name in ("reward", "reward_low", "reward_high"))
    sure = float(row["p_stable"])
    forecast = {"mean": mean, "low": low, "high": high, "p_stable": sure, "steps": steps}
    outcome = {"reward": came, "collapse_step": fell, "completions": generated}
    ended = "stable" if fell is None else f"collapsed at step {fell:.0f}"
    reward = "no evaluation in its last tenth" if came is None else f"{came:.3f}"
    is_inside = came is not None and low <= came <= high
    where = "inside the interval" if is_inside else "outside the interval"
    apart = None if came is None else came - mean
    return Line(
        name=_name(advice, settings, run.id),
        one=forecast,
        other=outcome,
        shown=(
            f"{mean:.3f} [{low:.3f}, {high:.3f}], stable {percent(sure)}",
            f"{reward}, {ended}, {generated:,.0f} completions",
        ),
        differs=not is_inside,
        note="" if apart is None else f"{apart:+.3f}, {where}",
        apart=apart,
    )


def _settings(advice: Recommendation, run: PilotRun) -> Settings:
    """Settings of a run that the study can forecast."""
    target = advice.target
    for what, own, wanted in (("model", run.model, target.model), ("task", run.task, target.task)):
        if own != wanted:
            raise InputError(
                f"{run.id} is of {what} '{own}', and the study advises on '{wanted}'",
                path=run.path,
                advice=f"Give finished runs of {target.model} on {target.task}, and their {what}",
            )
    if not run.step.size:
        raise InputError(f"{run.id} logged no training step", path=run.path)
    return run.hyperparameters.completed()


def _came(advice: Recommendation, run: PilotRun) -> float | None:
    """Mean of the last tenth of what the study forecasts; None where nothing was logged there."""
    if advice.measure == "reward":
        values = run.reward[final_rows(run)]
    else:
        values = run.eval_reward[run.eval_step > (1 - FINAL_SHARE) * run.step[-1]]
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else None


def _roles(advice: Recommendation) -> dict[str, Settings]:
    """Configurations of the answer that a run may have been made of, the advised first."""
    named = {"advised": advice.settings, "best pilot's settings": advice.best_piloted.settings}
    return named | {one.name: one.settings for one in advice.recipes}


def _place(advice: Recommendation, settings: Settings) -> int:
    """Place of a run's settings among the configurations of the answer; last if none of them."""
    roles = list(_roles(advice).values())
    return next((i for i, role in enumerate(roles) if _is_same(role, settings)), len(roles))


def _name(advice: Recommendation, settings: Settings, run: str) -> str:
    roles = [name for name, role in _roles(advice).items() if _is_same(role, settings)]
    return f"{', '.join(roles)}: {run}" if roles else run


def _is_same(one: Settings, other: Settings) -> bool:
    return all(
        math.isclose(getattr(one, name), getattr(other, name), rel_tol=SAME)
        for name in (*AXES, "prompts_per_step")
    )
