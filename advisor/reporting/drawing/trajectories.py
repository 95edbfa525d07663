"""Drawing: pilots and the curves fitted through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.reporting.drawing import style
from advisor.reporting.names import shorten
from advisor.reporting.trajectories import MAX_LABELS, Forecast, Panel, RunCurve, Trajectories

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


def draw_trajectories(info: Trajectories) -> Figure:
    """Draw the pilots, two panels to a row; an odd last panel takes the whole row."""
    panels = info.panels
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    is_crowded = any(len(panel.runs) > MAX_LABELS for panel in panels)
    figure = style.new_figure(4.9 * columns + (1.4 if is_crowded else 0.4), 3.3 * rows + 0.2)
    grid = figure.add_gridspec(rows, columns)
    scale = _rate_scale(info)
    for index, panel in enumerate(panels):
        is_wide = index == len(panels) - 1 and index % columns == 0
        row, column = divmod(index, columns)
        axes = figure.add_subplot(grid[row, :] if is_wide else grid[row, column])
        axes.set_ylim(*_limits(info))
        style.tidy(
            axes,
            title=_name(panel),
            note=f"forecast of {panel.forecast.label}, if stable" if panel.forecast else "",
            x="optimizer step",
            y=f"train reward (range {info.floor:g} to {info.ceiling:g})" if column == 0 else "",
        )
        if panel.forecast is None:
            _draw_pilots(axes, panel, scale)
        else:
            _draw_forecast(axes, panel, panel.forecast)
    if is_crowded:
        bar = figure.colorbar(scale, ax=figure.axes, shrink=0.5, pad=0.02, aspect=30)
        style.tidy_bar(bar, "learning rate")
        style.log_ticks(bar.ax.yaxis, *scale.get_clim())
    return figure


def _color(run: RunCurve, scale: ScalarMappable) -> Any:
    """Grey where the run collapsed, else by its learning rate."""
    if run.collapse_step is not None:
        return style.FAINT
    return scale.to_rgba(np.array([run.learning_rate]))[0]


def _rate_scale(info: Trajectories) -> ScalarMappable:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    rates = [run.learning_rate for panel in info.panels for run in panel.runs] or [1.0]
    low, high = min(rates), max(rates)
    if low == high:
        low, high = low / 2, high * 2
    return ScalarMappable(LogNorm(low, high), style.rate_colors())


def _limits(info: Trajectories) -> tuple[float, float]:
    """Common reward limits: what is drawn, down to the floor where that is near."""
    drawn = [
        values
        for panel in info.panels
        for values in (
            *(np.append(run.reward, run.end[1]) for run in panel.runs),
            *((panel.forecast.lower, panel.forecast.upper) if panel.forecast else ()),
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
        dead = run.collapse_step is not None
        color = _color(run, scale)
        axes.fill_between(run.grid, run.lower, run.upper, color=color, alpha=alpha, linewidth=0)
        axes.plot(run.grid, run.median, color=color, linewidth=1.6)
        axes.plot(run.step, run.reward, "o", color=color, markersize=2.6, alpha=0.75, mew=0)
        if dead:
            fall = zip((run.grid[-1], run.median[-1]), run.end, strict=True)
            axes.plot(*fall, ":", color=style.FAINT, linewidth=1.4)
            axes.plot(*run.end, "x", color=style.MUTED, markersize=7, mew=1.8, zorder=4)
    if len(panel.runs) <= MAX_LABELS:
        _label_ends(axes, panel, scale)


def _label_ends(axes: Axes, panel: Panel, scale: ScalarMappable) -> None:
    low, high = axes.get_ylim()
    ends = [run.end[1] for run in panel.runs]
    places = style.spread_apart(ends, 0.085 * (high - low), low, high)
    for run, place in zip(panel.runs, places, strict=True):
        dead = run.collapse_step is not None
        axes.annotate(
            run.label + (" ✕" if dead else ""),
            xy=run.end,
            xytext=(1.04, place),
            textcoords=axes.get_yaxis_transform(),
            fontsize=style.NOTE,
            va="center",
            color=style.MUTED if dead else style.INK,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": _color(run, scale),
                "linewidth": 0.8,
                "relpos": (0.0, 0.5),
                "shrinkA": 1,
                "shrinkB": 2,
            },
        )


def _draw_forecast(axes: Axes, panel: Panel, forecast: Forecast) -> None:
    axes.set_xlim(-0.01 * forecast.step[-1], forecast.step[-1])
    longest = max((run.end[0] for run in panel.runs), default=0.0)
    for run in panel.runs:
        axes.plot(run.step, run.reward, "o", color=style.FAINT, markersize=2.6, mew=0)
    axes.fill_between(
        forecast.step, forecast.lower, forecast.upper, color=style.BLUE, alpha=0.14, linewidth=0
    )
    for edge in (forecast.lower, forecast.upper):
        axes.plot(forecast.step, edge, "--", color=style.BLUE, linewidth=0.8)
    axes.plot(forecast.step, forecast.median, "--", color=style.BLUE, linewidth=1.8)
    axes.annotate(
        f"{forecast.median[-1]:.2f}\n"
        f"[{forecast.lower[-1]:.2f}, {forecast.upper[-1]:.2f}]\nat step {forecast.step[-1]:,.0f}",
        xy=(forecast.step[-1], forecast.median[-1]),
        xytext=(8, 0),
        textcoords="offset points",
        fontsize=style.NOTE,
        va="center",
        color=style.BLUE,
        annotation_clip=False,
    )
    if 0 < longest < forecast.step[-1]:
        axes.axvline(longest, color=style.MUTED, linewidth=0.8, linestyle=":")
        axes.annotate(
            f"pilots end at step {longest:,.0f}",
            xy=(longest, 0.03),
            xytext=(5, 0),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            fontsize=style.NOTE,
            color=style.MUTED,
        )


def _name(panel: Panel) -> str:
    return f"{shorten(panel.model)} on {shorten(panel.task)}"
