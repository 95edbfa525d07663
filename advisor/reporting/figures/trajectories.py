"""Figure: what the pilots logged, and the closed form fitted through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from advisor.advice import number
from advisor.forecast import Forecaster, central, fitted_curve, outcome_paths
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figure import FigureKind, Info
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from advisor.advice import Recommendation


MAX_PANELS = 6
MAX_LABELS = 8
"""Runs in a panel up to which each is named at its end; with more a colour bar speaks for them."""

CURVE_POINTS = 240


@dataclass(frozen=True)
class RunCurve:
    """One pilot: binned rewards, and its fitted curve up to the last bin before a collapse."""

    label: str
    learning_rate: float
    step: FloatArray
    reward: FloatArray
    grid: FloatArray  # logged steps
    band: FloatArray  # lower end, median, upper end of the central 80 % of a row logged there
    collapse_step: float | None
    last_reward: float
    steps: float  # that were logged

    @property
    def end(self) -> tuple[float, float]:
        """Step and reward at which the run leaves the picture."""
        if self.collapse_step is not None:
            return self.collapse_step, self.last_reward
        return float(self.grid[-1]), float(self.band[1, -1])


@dataclass(frozen=True)
class Forecast:
    """Named settings: mean within its central 80 % band over steps, in units of the measure."""

    label: str
    measure: str
    step: FloatArray
    band: FloatArray
    numbers: str  # the answer's own: mean, and 80 % interval of the mean over the last tenth
    moved_from: float = np.inf  # step from which the curve is moved by how other runs went on


@dataclass(frozen=True)
class Panel:
    """Pilots of one (task, model); a forecast instead of fitted curves where there is one."""

    task: str
    model: str
    runs: tuple[RunCurve, ...]
    forecast: Forecast | None = None


@dataclass(frozen=True)
class Trajectories(Info):
    """The whole figure: panels, (task, model) pairs without one, bounds of the reward."""

    name: ClassVar = "trajectories"
    panels: tuple[Panel, ...]
    left_out: int
    floor: float
    ceiling: float


def trajectories_info(
    posterior: Posterior, recommendation: Recommendation | None = None
) -> Trajectories:
    """Collect the panels, of at most ``MAX_PANELS`` pairs; an answer adds one with its forecast."""
    meta = posterior.meta

    def curves(task: str, model: str) -> tuple[RunCurve, ...]:
        own = [at for at, run in enumerate(meta.runs) if (run.task, run.model) == (task, model)]
        return tuple(_run_curve(posterior, at) for at in own)

    first = style.most_piloted(meta, MAX_PANELS - (recommendation is not None))
    panels = [Panel(*pair, curves(*pair)) for pair in first]
    if recommendation is not None:
        pair = recommendation.target.task, recommendation.target.model
        panels.append(Panel(*pair, curves(*pair), _forecast(posterior, recommendation)))
    left_out = len(meta.groups) - len(first)
    return Trajectories(tuple(panels), left_out, meta.floor, meta.ceiling)


def _run_curve(posterior: Posterior, index: int) -> RunCurve:
    run = posterior.meta.runs[index]
    mine = posterior.pilots["run"] == index
    settings = run.settings
    onset = run.collapse_onset
    last = run.steps if onset is None else min(onset, posterior.pilots["step"][mine].max())
    grid = _cycle_centers(float(last), settings.refresh_interval)
    return RunCurve(
        label=style.settings_label(settings),
        learning_rate=settings.learning_rate,
        step=posterior.pilots["step"][mine],
        reward=posterior.pilots["reward"][mine],
        grid=grid,
        band=central(fitted_curve(posterior, index, grid)),
        collapse_step=onset,
        last_reward=run.last_reward,
        steps=run.steps,
    )


def _cycle_centers(last: float, interval: int) -> FloatArray:
    """Middle of each refresh cycle, where a line is the mean of a staircase; and both ends."""
    starts = np.arange(0.0, last, interval)
    starts = starts[np.unique(np.linspace(0, starts.size - 1, CURVE_POINTS).astype(int))]
    centers = starts + (1 + np.minimum(interval, last - starts)) / 2
    return np.unique(np.concatenate([[1.0], centers, [max(1.0, last)]]))


def _forecast(posterior: Posterior, recommendation: Recommendation) -> Forecast:
    grid = np.unique(np.linspace(0, recommendation.steps, CURVE_POINTS).astype(int))
    forecaster = Forecaster(posterior, recommendation.target, seed=recommendation.terms.seed)
    settings, reward = recommendation.settings, recommendation.reward
    lower, _, upper = central(outcome_paths(forecaster, settings, grid))
    is_moved = forecaster.next_run is None and posterior.meta.priors.extrapolation.gain
    moved: Any = grid[forecaster.beyond(settings, grid) > 0] if is_moved else []
    return Forecast(
        label=style.settings_label(settings),
        measure=recommendation.measure,
        step=grid.astype(float),
        band=np.array([lower, forecaster.outcome(settings, grid).mean(axis=0), upper]),
        numbers="{} [{}, {}]".format(
            *(number(recommendation, one) for one in (reward.mean, reward.low, reward.high))
        ),
        moved_from=min(moved, default=np.inf),
    )


def draw_trajectories(info: Trajectories) -> Figure:
    """Draw the pilots, two panels to a row; an odd last panel takes the whole row."""
    panels = info.panels
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    is_crowded = any(len(panel.runs) > MAX_LABELS for panel in panels)
    width = 4.9 * columns + (1.4 if is_crowded else 0.4)
    figure = style.new_figure(width, 3.3 * rows + 0.2)
    grid = figure.add_gridspec(rows, columns)
    scale = rate_scale(info)
    rewards = f"train reward (range {info.floor:.3g} to {info.ceiling:.3g})"
    for index, panel in enumerate(panels):
        is_wide = index == len(panels) - 1 and index % columns == 0
        row, column = divmod(index, columns)
        axes = figure.add_subplot(grid[row, :] if is_wide else grid[row, column])
        axes.set_ylim(*_limits(info))
        style.tidy(
            axes,
            title=("Forecast: " if panel.forecast else "Pilots: ") * (columns > 1)
            + style.subject(panel.model, panel.task),
            note=f"{panel.forecast.measure} of {panel.forecast.label}, if it stays stable"
            if panel.forecast
            else "",
            x="optimizer step",
            y="" if column else panel.forecast.measure if panel.forecast else rewards,
        )
        if panel.forecast is None:
            _draw_pilots(axes, panel, scale)
        else:
            draw_forecast(axes, panel, panel.forecast, scale)
    if is_crowded:
        bar = figure.colorbar(scale, ax=figure.axes, shrink=0.5, pad=0.02, aspect=30)
        bar.set_label("learning rate", fontsize=style.LABEL, color=style.INK)
        bar.outline.set_visible(False)  # type: ignore[operator]
        style.log_ticks(bar.ax.yaxis, *scale.get_clim())
    return figure


def _color(run: RunCurve, scale: ScalarMappable) -> Any:
    """Grey where the run collapsed, else by its learning rate."""
    if run.collapse_step is not None:
        return style.FAINT
    return scale.to_rgba(np.array([run.learning_rate]))[0]


def rate_scale(info: Trajectories) -> ScalarMappable:
    """Colours of learning rates, the same in all panels."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, LogNorm

    rates = [run.learning_rate for panel in info.panels for run in panel.runs] or [1.0]
    low, high = min(rates), max(rates)
    if low == high:
        low, high = low / 2, high * 2
    # Viridis without the end that white paper swallows.
    colors = ListedColormap(colormaps["viridis"](np.linspace(0.05, 0.6, 256)), name="rates")
    return ScalarMappable(LogNorm(low, high), colors)


def _limits(info: Trajectories) -> tuple[float, float]:
    """Common reward limits: what is drawn, down to the floor where that is near."""
    drawn = [
        values
        for panel in info.panels
        for values in (
            *(np.append(run.reward, run.end[1]) for run in panel.runs),
            *((panel.forecast.band[0], panel.forecast.band[2]) if panel.forecast else ()),
        )
    ]
    flat = np.concatenate(drawn)
    low, high = float(flat.min()), float(flat.max())
    span = max(high - low, 0.05 * (info.ceiling - info.floor))
    low = info.floor if low - info.floor < 0.3 * span else low - 0.06 * span
    return low - 0.02 * span, min(info.ceiling, high + 0.06 * span) + 0.02 * span


def _draw_pilots(axes: Axes, panel: Panel, scale: ScalarMappable) -> None:
    # Many bands on top of each other would hide the lines.
    alpha = 0.18 if len(panel.runs) <= MAX_LABELS else 0.06
    for run in panel.runs:
        color = _color(run, scale)
        style.band(axes, run.grid, run.band, color, alpha=alpha)
        axes.plot(run.step, run.reward, "o", color=color, markersize=2.6, alpha=0.75, mew=0)
        if run.collapse_step is not None:
            fall = zip((run.grid[-1], run.band[1, -1]), run.end, strict=True)
            axes.plot(*fall, ":", color=style.FAINT, linewidth=1.4)
            axes.plot(*run.end, "x", color=style.MUTED, markersize=7, mew=1.8, zorder=4)
    if len(panel.runs) <= MAX_LABELS:
        _label_ends(axes, panel, scale)


def _label_ends(axes: Axes, panel: Panel, scale: ScalarMappable) -> None:
    """Name runs of one setting and one fate once, with a line to the end of each."""
    same: dict[tuple[str, bool], list[RunCurve]] = {}
    for run in panel.runs:
        same.setdefault((run.label, run.collapse_step is not None), []).append(run)
    names = [
        style.Named(
            label + (" ✕" if has_collapsed else "") + (f" ({len(runs)} runs)" if runs[1:] else ""),
            [run.end for run in runs],
            style.MUTED if has_collapsed else style.INK,
            _color(runs[0], scale),
        )
        for (label, has_collapsed), runs in same.items()
    ]
    style.name_ends(axes, names, gap=1.8 * style.NOTE)


def draw_forecast(axes: Axes, panel: Panel, forecast: Forecast, scale: ScalarMappable) -> None:
    """Draw the band of the forecast over the rows of the pilots."""
    axes.set_xlim(-0.01 * forecast.step[-1], forecast.step[-1])
    longest = max((run.steps for run in panel.runs), default=0.0)
    for run in panel.runs:
        color, is_own = _color(run, scale), run.label == forecast.label
        axes.plot(run.step, run.reward, "o", color=color, ms=4 if is_own else 2.6, mew=0)
    look: dict[str, Any] = {"color": style.BLUE, "linestyle": "--"}
    style.band(axes, forecast.step, forecast.band, alpha=0.14, linewidth=1.8, **look)
    axes.plot(forecast.step, forecast.band[[0, 2]].T, linewidth=0.8, **look)
    mean, interval = forecast.numbers.split(" ", 1)
    style.write(
        axes,
        f"{mean}\n{interval}\nat step {forecast.step[-1]:,.0f}",
        (forecast.step[-1], forecast.band[1, -1]),
        (8, 0),
        va="center",
        color=style.BLUE,
        annotation_clip=False,
    )
    marks = {longest: "pilots end at", forecast.moved_from: "corrected with other tasks from"}
    for place, (step, what) in enumerate(marks.items()):
        if 0 < step < forecast.step[-1]:
            axes.axvline(step, color=style.MUTED, linewidth=0.8, linestyle=":")
            low, text = (step, 0.03 + 0.07 * place), f"{what} step {step:,.0f}"
            across = axes.get_xaxis_transform()
            style.write(axes, text, low, (5, 0), xycoords=across, color=style.MUTED)


FIGURE = FigureKind("trajectories", lambda *of: trajectories_info(*of[:2]), draw_trajectories)
