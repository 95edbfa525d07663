"""Pilots and the curves fitted through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simulated_runs import with_meta

from advisor.advice import Recommendation, number
from advisor.forecast import Forecaster, RunEffect, Target, fitted_curve
from advisor.model import RUN_EFFECTS, Posterior
from advisor.reporting import FIGURES

trajectories_info, draw_trajectories = FIGURES["trajectories"].info, FIGURES["trajectories"].draw


Build = Callable[..., Any]


def test_the_fitted_curve_climbs_in_stairs_of_one_refresh(posterior: Posterior) -> None:
    curve = fitted_curve(posterior, 1, np.arange(1, 33))  # K = 8
    assert curve.shape == (300, 32)
    stairs = curve.reshape(-1, 4, 8)
    assert np.ptp(stairs, axis=2).max() == 0
    assert np.all(np.abs(np.diff(stairs[:, :, 0], axis=1)).max(axis=0) > 0.001)


def test_the_fitted_curve_uses_the_luck_of_its_own_run(build: Build) -> None:
    posterior = build()
    run = posterior.meta.runs[1]
    for name in RUN_EFFECTS:
        posterior.draws[name][..., 1] = 0.0
    mine = fitted_curve(posterior, 1, [41])
    target = Target(run.task, run.model, run.parameters)
    forecaster = Forecaster(posterior, target, draws=400)
    forecaster = forecaster.with_run_effect(RunEffect.given(np.zeros_like(forecaster.run_effect)))
    settings = run.settings
    np.testing.assert_allclose(mine, forecaster.reward(settings, [40]))
    for name in ("run_offset.plateau", "run_offset.stiffness"):
        posterior.draws[name][..., 1] = 2.0
        lucky = fitted_curve(posterior, 1, [41])
        assert np.all(lucky > mine)
        mine = lucky
    # A wide spectrum is slow in the end.
    narrow = fitted_curve(posterior, 1, [4001])
    posterior.draws["run_offset.shape"][..., 1] = 2.0
    assert np.all(fitted_curve(posterior, 1, [4001]) < narrow)


def test_panels_hold_pilots_bands_and_the_forecast(
    posterior: Posterior, advice: Recommendation
) -> None:
    info = trajectories_info(posterior, advice)
    assert [(p.task, p.model, len(p.runs)) for p in info.panels] == [
        ("sort", "tiny-m", 2),
        ("sort", "tiny-s", 3),
        ("sort", "tiny-s", 3),
    ]
    for run in (run for panel in info.panels for run in panel.runs):
        assert np.all(np.diff(run.band, axis=0) >= 0)
        assert run.grid[0] == 1
        assert np.all(np.diff(run.grid) > 0)
    assert [p.forecast is not None for p in info.panels] == [False, False, True]
    forecast = info.panels[-1].forecast
    assert forecast is not None
    assert (forecast.step[0], forecast.step[-1]) == (0, advice.steps)
    # The answer's interval, but for the noise of batches and the bend of the last tenth.
    assert forecast.band[0, -1] == pytest.approx(advice.reward.low, abs=0.03)
    curve = Forecaster(posterior, advice.target).outcome(advice.settings, [advice.steps])
    assert forecast.band[0, -1] < np.quantile(curve, 0.1) - 0.003
    assert forecast.label == "lr 3e-4, G 8, K 8"
    low, high = number(advice, advice.reward.low), number(advice, advice.reward.high)
    said = f"{number(advice, advice.reward.mean)} [{low}, {high}]"
    assert f"{said} at step {advice.steps}, if it stays stable" in info.text
    assert forecast.band[1, -1] == pytest.approx(advice.reward.mean, abs=1e-9)
    moved = replace(info.panels[-1], forecast=replace(forecast, moved_from=advice.steps / 2))
    drawn = draw_trajectories(replace(info, panels=(*info.panels[:-1], moved))).axes
    assert drawn[2].get_ylabel() == forecast.measure == advice.measure
    words = [t.get_text() for axes in drawn for t in axes.texts]
    assert f"corrected with other tasks from step {advice.steps / 2:.0f}" in words
    assert f"{said.replace(' ', chr(10), 1)}\nat step {advice.steps}" in words
    assert "reward" in info.text


def test_the_cross_stands_where_the_card_says_the_run_fell(build: Build) -> None:
    """The event of the hazard, at step 7, is seen in a trailing mean, after the fall began."""
    posterior = build()
    runs = tuple(
        run if run.collapse_step is None else run.model_copy(update={"fell_from": 5.0})
        for run in posterior.meta.runs
    )
    (collapsed,) = (
        run
        for panel in trajectories_info(with_meta(posterior, runs=runs)).panels
        for run in panel.runs
        if run.collapse_step is not None
    )
    assert collapsed.end == (5.0, 0.0)
    assert collapsed.grid[-1] <= 5.0


def test_a_collapsed_run_ends_at_its_onset(posterior: Posterior) -> None:
    info = trajectories_info(posterior)
    collapsed = info.panels[1].runs[2]
    assert collapsed.end == (7.0, 0.0)
    assert collapsed.grid[-1] == collapsed.step[-1] <= 7.0
    stable = info.panels[1].runs[0]
    assert stable.end == (60.0, stable.band[1, -1])
    assert "1 collapsed" in info.text
