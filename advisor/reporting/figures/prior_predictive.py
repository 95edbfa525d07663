"""Drawing: what a preset believes before any log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.model import BANDS, GAIN, REFERENCE, PriorPredictive
from advisor.reporting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = 60
"""Curves drawn; the bands are those of all draws."""

WIDTHS = {0.5: 9.0, 0.8: 5.0, 0.95: 1.6}
"""Line widths of the nested bands, in points."""


def draw_priors(info: PriorPredictive) -> Figure:
    """Draw reward curves over steps, the bands of the plateau beside and of the time below them."""
    figure = style.new_figure(8.6, 5.4)
    grid = figure.add_gridspec(2, 2, width_ratios=[6.2, 1.0], height_ratios=[5.0, 1.0])
    curves = figure.add_subplot(grid[0, 0])
    plateau = figure.add_subplot(grid[0, 1], sharey=curves)
    time = figure.add_subplot(grid[1, 0], sharex=curves)
    style.tidy(
        curves,
        title=f"What {info.preset} believes before any log",
        note=f"{CURVES} runs of new models on new tasks; {REFERENCE}",
        y="reward (share of floor to ceiling)",
    )
    style.tidy(plateau, title="Plateau", note="median [80 %]")
    style.tidy(time, x="optimizer steps (log scale)")
    curves.set_xscale("log")
    curves.set_xlim(info.steps[0], info.steps[-1])
    curves.set_ylim(-0.02, 1.02)
    curves.plot(info.steps, info.reward[:CURVES].T, color=style.BLUE, linewidth=0.8, alpha=0.35)
    curves.plot(info.steps, np.median(info.reward, axis=0), color=style.INK, linewidth=2.0)
    _draw_bands(plateau, info, "plateau", is_upright=True)
    _draw_bands(time, info, "time", is_upright=False)
    curves.tick_params(labelbottom=False)
    plateau.tick_params(labelleft=False, left=False)
    style.log_ticks(time.xaxis, info.steps[0], info.steps[-1])
    _draw_legend(figure.add_subplot(grid[1, 1]))
    return figure


def _draw_bands(axes: Axes, info: PriorPredictive, name: str, *, is_upright: bool) -> None:
    """Nested bars of the central bands beside an axis that the curves share."""
    for share, (low, high) in info.bands(name).items():
        ends, place = (low, high), (0.0, 0.0)
        x, y = (place, ends) if is_upright else (ends, place)
        axes.plot(x, y, color=style.BLUE, linewidth=WIDTHS[share], solid_capstyle="butt")
    median = info.median(name)
    at = (0.0, median) if is_upright else (median, 0.0)
    axes.plot(*at, "o", color="white", mec=style.BLUE, markersize=5, zorder=3)
    style.write(
        axes,
        info.span(name).replace(" [", "\n[").replace(", ", ",\n")
        if is_upright
        else f"{100 * GAIN:.0f} % of the gain at step {info.span(name)}",
        at,
        (9, 0) if is_upright else (0, 9),
        rim=2.8,
        ha="left" if is_upright else "center",
        va="center" if is_upright else "bottom",
    )
    if is_upright:
        axes.set_xlim(-1, 4)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
    else:
        axes.set_ylim(-1, 2.5)
        axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _draw_legend(axes: Axes) -> None:
    from matplotlib.lines import Line2D

    axes.set_axis_off()
    bars = [
        Line2D([], [], color=style.BLUE, linewidth=WIDTHS[share], label=f"{100 * share:.0f} %")
        for share in BANDS
    ]
    middle = Line2D([], [], color=style.INK, linewidth=2.0, label="median")
    axes.legend(
        handles=[*bars, middle],
        loc="center",
        frameon=False,
        fontsize=style.NOTE,
        labelcolor=style.INK,
        handlelength=1.6,
    )
