"""Figure: what the pilots logged, and the closed form fitted through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.forecast.fitted_run import fitted_curve
from advisor.forecast.forecaster import Forecaster
from advisor.model.posterior import INTERVAL, Posterior
from advisor.reporting.names import left_out_note, settings_label
from advisor.run.pilot_run import Hyperparameters
from advisor.theory.arrays import FloatArray

if TYPE_CHECKING:
    from advisor.advice import Recommendation


MAX_PANELS = 6
MAX_LABELS = 8
"""Runs in a panel up to which each is named at its end; with more a colour bar speaks for them."""

CURVE_POINTS = 240


@dataclass(frozen=True)
class RunCurve:
    """One pilot: binned rewards, and median and central 80 % band of its fitted curve.

    Attributes
    ----------
    label : str
    learning_rate : float
    step, reward : ndarray of shape (bins,)
        Optimizer steps as logged; reward units.
    grid, lower, median, upper : ndarray of shape (points,)
        Logged steps; what a row logged there should show, in reward units.
    collapse_step : float or None
        Onset; the curve ends before it, with the last bin that shaped it.
    last_reward : float
        Mean reward of the last rows, in reward units.
    """

    label: str
    learning_rate: float
    step: FloatArray
    reward: FloatArray
    grid: FloatArray
    lower: FloatArray
    median: FloatArray
    upper: FloatArray
    collapse_step: float | None
    last_reward: float

    @property
    def end(self) -> tuple[float, float]:
        """Step and reward at which the run leaves the picture."""
        if self.collapse_step is not None:
            return self.collapse_step, self.last_reward
        return float(self.grid[-1]), float(self.median[-1])


@dataclass(frozen=True)
class Forecast:
    """Advised settings: median and central 80 % band over steps, in reward units."""

    label: str
    step: FloatArray
    lower: FloatArray
    median: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class Panel:
    """Pilots of one (task, model); a forecast instead of fitted curves where there is one."""

    task: str
    model: str
    runs: tuple[RunCurve, ...]
    forecast: Forecast | None = None


@dataclass(frozen=True)
class Trajectories:
    """The whole figure.

    Attributes
    ----------
    panels : tuple of Panel
    left_out : int
        (task, model) pairs without a panel.
    floor, ceiling : float
        Bounds of the reward, in its own units.
    """

    panels: tuple[Panel, ...]
    left_out: int
    floor: float
    ceiling: float

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        parts = []
        for panel in self.panels:
            name = f"{panel.model} on {panel.task}"
            if panel.forecast is not None:
                parts.append(
                    f"Forecast for {name} with {panel.forecast.label}: "
                    f"reward {panel.forecast.median[-1]:.2f} "
                    f"[{panel.forecast.lower[-1]:.2f}, {panel.forecast.upper[-1]:.2f}] "
                    f"at step {panel.forecast.step[-1]:.0f}."
                )
                continue
            collapsed = sum(run.collapse_step is not None for run in panel.runs)
            parts.append(
                f"{name}: {len(panel.runs)} pilot{'s' if len(panel.runs) != 1 else ''}"
                + (f", {collapsed} collapsed" if collapsed else "")
                + f", last rewards {min(run.last_reward for run in panel.runs):.2f} to "
                f"{max(run.last_reward for run in panel.runs):.2f}."
            )
        return " ".join(parts)

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        return left_out_note(self.left_out)


def trajectories_info(
    posterior: Posterior, recommendation: Recommendation | None = None
) -> Trajectories:
    """Collect what the figure shows.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation, optional
        Adds a panel with the forecast of its settings over the target's pilots.

    Returns
    -------
    info : Trajectories
        At most ``MAX_PANELS`` panels: the pairs with most pilots, in the posterior's order.
    """
    meta = posterior.meta
    members = {
        pair: [i for i, run in enumerate(meta.runs) if (run.task, run.model) == pair]
        for pair in meta.groups
    }
    room = MAX_PANELS - (recommendation is not None)
    first = sorted(members, key=lambda pair: -len(members[pair]))[:room]
    panels = [
        Panel(task, model, tuple(_run_curve(posterior, i) for i in members[(task, model)]))
        for task, model in meta.groups
        if (task, model) in first
    ]
    if recommendation is not None:
        target = recommendation.target
        own = members.get((target.task, target.model), [])
        panels.append(
            Panel(
                target.task,
                target.model,
                tuple(_run_curve(posterior, i) for i in own),
                _forecast(posterior, recommendation),
            )
        )
    return Trajectories(tuple(panels), len(members) - len(first), meta.floor, meta.ceiling)


def _run_curve(posterior: Posterior, index: int) -> RunCurve:
    run = posterior.meta.runs[index]
    mine = posterior.pilots["run"] == index
    settings = Hyperparameters.model_validate(run.hyperparameters)
    last = run.steps if run.collapse_step is None else posterior.pilots["step"][mine].max()
    grid = _cycle_centers(float(last), settings.refresh_interval or 1)
    lower, median, upper = _band(fitted_curve(posterior, index, grid))
    return RunCurve(
        label=settings_label(settings),
        learning_rate=float(run.hyperparameters["learning_rate"]),
        step=posterior.pilots["step"][mine],
        reward=posterior.pilots["reward"][mine],
        grid=grid,
        lower=lower,
        median=median,
        upper=upper,
        collapse_step=run.collapse_step,
        last_reward=run.last_reward,
    )


def _cycle_centers(last: float, interval: int) -> FloatArray:
    """Middle of each refresh cycle, and both ends of the run.

    The fitted curve is a staircase of K steps to a stair. A line through the middles is its mean
    over one cycle, and stays readable where eight runs share a panel.
    """
    starts = np.arange(0.0, last, interval)
    starts = starts[np.unique(np.linspace(0, starts.size - 1, CURVE_POINTS).astype(int))]
    centers = starts + (1 + np.minimum(interval, last - starts)) / 2
    return np.unique(np.concatenate([[1.0], centers, [max(1.0, last)]]))


def _forecast(posterior: Posterior, recommendation: Recommendation) -> Forecast:
    grid = np.unique(np.linspace(0, recommendation.steps, CURVE_POINTS).astype(int))
    forecaster = Forecaster(posterior, recommendation.target)
    lower, median, upper = _band(forecaster.reward(recommendation.settings, grid))
    label = settings_label(recommendation.settings)
    return Forecast(label, grid.astype(float), lower, median, upper)


def _band(curves: FloatArray) -> FloatArray:
    levels = [(1 - INTERVAL) / 2, 0.5, (1 + INTERVAL) / 2]
    return np.asarray(np.quantile(curves, levels, axis=0))
