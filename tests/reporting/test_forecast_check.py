"""Pilots forecast from their first half."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated_runs import (
    Plan,
    made_up_posterior,
    rising,
)

from advisor.backtesting import backtest
from advisor.backtesting.scores import QUANTILES, Prediction
from advisor.errors import InputError, NotConvergedError
from advisor.reporting import forecast_check_info
from advisor.reporting.figures import checks as forecast_check
from advisor.reporting.figures.checks import (
    HIGH,
    LOW,
    MAX_CURVES,
    WINDOWS,
    Checked,
    ForecastCheck,
    draw_forecast_check,
)
from advisor.runs.pilot_run import PilotRun


def checked(name: str, target: float, width: float = 0.1, collapsed: bool = False) -> Checked:
    step = np.linspace(34.0, 58.0, WINDOWS)
    quantiles = tuple(0.6 + width * (q - 0.5) for q in QUANTILES)
    return Checked(
        run=name,
        label="lr 3e-4, G 8, K 2",
        seen_step=np.linspace(2.0, 29.0, 9),
        seen_reward=np.linspace(0.1, 0.5, 9),
        step=step,
        observed=np.linspace(0.5, target, WINDOWS),
        band=np.repeat([[0.5], [0.6], [0.7]], WINDOWS, axis=1),
        last_seen=30.0,
        has_collapsed=collapsed,
        final=Prediction("advisor", "c", name, 0.5, None, (0.0, 1.0), target, quantiles, 0.01),
    )


def check(*runs: Checked, **told: Any) -> ForecastCheck:
    return ForecastCheck(
        **{"checked": runs, "bounds": (0.0, 1.0), "left_out": (), "failed": ()} | told
    )


def test_coverage_and_error_are_those_of_the_predictions() -> None:
    info = check(checked("a", 0.6), checked("b", 0.62), checked("c", 0.9))
    assert info.covered == 2
    assert info.error == pytest.approx((0.0 + 0.02 + 0.3) / 3)
    assert "holds 2 of 3 (67 %)" in info.text
    assert info.note == ""


def test_curves_run_from_the_best_to_the_worst() -> None:
    runs = [checked(f"r{i}", 0.6 + 0.03 * i) for i in range(11)]
    info = check(*runs, left_out=("x: only 3 rows",), failed=("cohort 2",))
    names = [one.run for one in info.drawn]
    assert (names[0], names[-1]) == ("r0", "r10")
    assert len(names) == MAX_CURVES
    assert "Curves of 7 of 11 pilots not drawn." in info.note
    assert "x: only 3 rows" in info.note
    assert "cohort 2" in info.note


@pytest.mark.evidence
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_it_draws_all_levels_and_some_curves_the_same_each_time(count: int) -> None:
    info = check(
        *(checked(f"run $\\frac{{ <{i}>", 0.58 + 0.02 * i, collapsed=i == 1) for i in range(count))
    )
    figure = draw_forecast_check(info)
    assert len(figure.axes) == 1 + min(count, MAX_CURVES)
    levels = figure.axes[0]
    points = [line for line in levels.lines if line.get_linestyle() == "None"]
    assert sorted(line.get_xdata()[0] for line in points) == sorted(
        one.final.target for one in info.checked
    )
    assert levels.get_xlabel() == "reward that came, last tenth (range 0 to 1)"
    words = [text.get_text() for text in levels.texts]
    assert any(f"80 % interval holds {info.covered} of {count}" in word for word in words)
    assert {"seen", "forecast"} <= {text.get_text() for text in figure.axes[1].texts}
    assert forecast_check.FORECAST_CHECK.drawn(info).rendered(
        "svg"
    ) == forecast_check.FORECAST_CHECK.drawn(info).rendered("svg")


def finished(count: int) -> list[PilotRun]:
    """Runs of 100 steps that rise to different levels."""
    runs = []
    for index in range(count):
        noise = 0.02 * np.random.default_rng(index).standard_normal(100)
        plan = Plan(1e-4 * 3**index, 8)
        runs.append(plan.run(rising(100, end=0.6 + 0.05 * index, time=20.0) + noise, f"r{index}"))
    return runs


@pytest.mark.evidence
def test_final_levels_are_those_of_a_backtest(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(runs: list[PilotRun], **_: Any) -> Any:
        """A posterior made up of runs with the same settings, in place of a fit."""
        found = made_up_posterior(
            [Plan(run.hyperparameters.learning_rate or 0.0, 8) for run in runs]
        )
        named = [
            summary.model_copy(update={"id": run.id})
            for summary, run in zip(found.meta.runs, runs, strict=True)
        ]
        meta = found.meta.model_copy(update={"runs": tuple(named)})
        return type(found)(found.draws, found.pilots, meta)

    monkeypatch.setattr(forecast_check, "fit", known)
    monkeypatch.setattr("advisor.forecast.fit", known)
    runs = finished(4)
    info = forecast_check_info(runs, priors="small_models")
    own = backtest(runs, seen=0.5, priors="small_models").predictions
    assert {one.run: one.final for one in info.checked} == {
        p.run: p for p in own if p.method == "advisor"
    }
    errors = [one.final.error for one in info.checked]
    assert errors == sorted(errors)
    for one in info.checked:
        assert one.last_seen == 50
        assert one.step.min() > 50
        assert np.all(np.diff(one.band, axis=0) >= 0)
        run = next(run for run in runs if run.id == one.run)
        assert one.observed.mean() == pytest.approx(run.reward[run.step > 50].mean(), abs=0.01)
        assert one.label.endswith("K 1")


def test_nothing_to_ask_and_nothing_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no run can be asked"):
        forecast_check_info([])

    def fails(*_: Any, **__: Any) -> Any:
        raise NotConvergedError("R-hat")

    monkeypatch.setattr(forecast_check, "fit", fails)
    with pytest.raises(NotConvergedError, match="first 50 %"):
        forecast_check_info(finished(2), priors="small_models")


def test_quantiles_are_the_80_percent() -> None:
    assert (QUANTILES[LOW], QUANTILES[HIGH]) == (0.1, 0.9)
