"""Drawing: forecasts from the first part of the pilots against what came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.reporting.drawing import style
from advisor.reporting.forecast_check import HIGH, LOW, Checked, ForecastCheck
from advisor.reporting.names import share_text, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = 2


def draw_forecast_check(info: ForecastCheck) -> Figure:
    """Draw forecast against outcome of all pilots, and beside it the curves of some."""
    drawn = info.drawn
    rows = min(ROWS, len(drawn))
    columns = -(-len(drawn) // rows)
    figure = style.new_figure(5.0 + 3.0 * columns, 5.4 if rows > 1 else 4.4)
    grid = figure.add_gridspec(rows, 1 + columns, width_ratios=[1.55] + [1.0] * columns)
    _draw_levels(figure.add_subplot(grid[:, 0]), info)
    limits = _limits(info)
    first: Axes | None = None
    for index, one in enumerate(drawn):
        row, column = divmod(index, columns)
        axes = figure.add_subplot(grid[row, 1 + column])
        style.tidy(
            axes,
            title=shorten(one.run, 22),
            note=one.label,
            x="optimizer step" if index + columns >= len(drawn) else "",
            y="train reward" if column == 0 else "",
        )
        axes.title.set_fontsize(style.LABEL)
        axes.set_ylim(*limits)
        _draw_curve(axes, one)
        first = first or axes
    if first is not None:
        _name_curve(first, drawn[0])
    return figure


def _draw_levels(axes: Axes, info: ForecastCheck) -> None:
    """Median and interval of each final level over what came; the line is where both agree."""
    floor, ceiling = info.bounds
    style.tidy(
        axes,
        title=f"Final level, forecast from the first {share_text(info.seen)}",
        note=f"80 % interval holds {info.covered} of {len(info.checked)}; mean error "
        f"{info.error:.3f}",
        x=f"reward that came, last tenth (range {floor:g} to {ceiling:g})",
        y=f"reward forecast, 80 % interval (range {floor:g} to {ceiling:g})",
    )
    for one in info.checked:
        final = one.final
        is_inside = final.covers(0.8)
        color = style.BLUE if is_inside else style.VERMILLION
        ends = [final.quantiles[LOW], final.quantiles[HIGH]]
        axes.plot([final.target] * 2, ends, color=color, linewidth=1.6, alpha=0.7)
        marker = {"marker": "o", "mfc": color} if is_inside else {"marker": "s", "mfc": "white"}
        axes.plot(final.target, final.median, ls="", ms=6, mec=color, mew=1.4, **marker)  # type: ignore[arg-type]
    values = [
        value
        for one in info.checked
        for value in (one.final.target, one.final.quantiles[LOW], one.final.quantiles[HIGH])
    ]
    span = max(max(values) - min(values), 0.05 * (ceiling - floor))
    low, high = min(values) - 0.06 * span, max(values) + 0.06 * span
    axes.plot([low, high], [low, high], color=style.FAINT, linewidth=1.0, zorder=0)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    axes.annotate(
        "forecast too high",
        xy=(0.03, 0.97),
        xycoords="axes fraction",
        va="top",
        fontsize=style.NOTE,
        color=style.MUTED,
    )
    axes.annotate(
        "forecast too low",
        xy=(0.97, 0.03),
        xycoords="axes fraction",
        ha="right",
        fontsize=style.NOTE,
        color=style.MUTED,
    )


def _limits(info: ForecastCheck) -> tuple[float, float]:
    values = np.concatenate(
        [
            np.concatenate([one.seen_reward, one.observed, one.lower, one.upper])
            for one in info.drawn
        ]
    )
    low, high = float(values.min()), float(values.max())
    span = max(high - low, 0.05 * (info.bounds[1] - info.bounds[0]))
    return low - 0.05 * span, high + 0.05 * span


def _draw_curve(axes: Axes, one: Checked) -> None:
    axes.plot(one.seen_step, one.seen_reward, "o", color=style.MUTED, markersize=3.2, mew=0)
    axes.fill_between(one.step, one.lower, one.upper, color=style.BLUE, alpha=0.16, linewidth=0)
    axes.plot(one.step, one.median, color=style.BLUE, linewidth=1.6)
    is_inside = (one.observed >= one.lower) & (one.observed <= one.upper)
    look = {"ls": "", "ms": 5, "mec": style.INK, "mew": 1.1}
    axes.plot(one.step[is_inside], one.observed[is_inside], "o", mfc=style.INK, **look)  # type: ignore[arg-type]
    axes.plot(one.step[~is_inside], one.observed[~is_inside], "s", mfc="white", **look)  # type: ignore[arg-type]
    axes.axvline(one.last_seen, color=style.MUTED, linewidth=0.8, linestyle=":")
    if one.has_collapsed:
        axes.annotate(
            "had collapsed",
            xy=(0.97, 0.6),
            xycoords="axes fraction",
            ha="right",
            fontsize=style.NOTE,
            color=style.VERMILLION,
        )


def _name_curve(axes: Axes, one: Checked) -> None:
    """Say once which part was seen."""
    low, high = axes.get_ylim()
    is_high = float(np.median(one.median)) > (low + high) / 2
    for text, gap, side in (("seen", -4, "right"), ("forecast", 4, "left")):
        axes.annotate(
            text,
            xy=(one.last_seen, 0.04 if is_high else 0.95),
            xycoords=axes.get_xaxis_transform(),
            xytext=(gap, 0),
            textcoords="offset points",
            ha=side,
            va="bottom" if is_high else "top",
            fontsize=style.NOTE,
            color=style.MUTED if side == "right" else style.BLUE,
        )
