"""Drawing: posterior densities over their priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.posterior import MIN_SIZES
from advisor.reporting.drawing import style
from advisor.reporting.posteriors import Posteriors, Ridge

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PEAK, BAR = 0.55, 0.09
"""Height of a ridge above its base line and depth of its interval bar below, in rows."""


def draw_posteriors(info: Posteriors) -> Figure:
    """Draw three panels: ridges of plateau and stiffness, and the curvature exponent."""
    from matplotlib.ticker import MaxNLocator

    rows = len(info.plateau)
    figure = style.new_figure(10.2, max(3.0, 1.3 + 0.95 * rows))
    # The exponent has one ridge: it takes the height of three at most.
    grid = figure.add_gridspec(rows, 3, width_ratios=[1.15, 1.15, 1.0])
    left, middle = (figure.add_subplot(grid[:, column]) for column in (0, 1))
    right = figure.add_subplot(grid[: min(rows, 3), 2])
    middle.set_xscale("log")
    style.tidy(left, title="Plateau", note=info.reference, x="train reward (reward units)")
    style.tidy(middle, title="Stiffness", note=info.reference, x="stiffness k (per optimizer step)")
    style.tidy(
        right,
        title="Curvature: prior-dominated" if info.is_prior_dominated else "Curvature exponent",
        note=f"{info.sizes} model size{'s' if info.sizes > 1 else ''}"
        + (f", {MIN_SIZES} needed" if info.is_prior_dominated else ""),
        x="exponent c (no unit)",
    )
    for axes, ridges in ((left, info.plateau), (middle, info.stiffness), (right, [info.curvature])):
        _draw_ridges(axes, ridges)
        if axes is not middle:
            axes.xaxis.set_major_locator(MaxNLocator(5))
    left.set_yticks(range(rows), [style.plain(r.label) for r in info.plateau], color=style.INK)
    style.log_ticks(middle.xaxis, *middle.get_xlim())
    right.axvline(0, color=style.FAINT, linewidth=0.8, zorder=0)
    _name_curves(right, info.curvature)
    return figure


def _draw_ridges(axes: Axes, ridges: Sequence[Ridge]) -> None:
    """One ridge above the other, the first on top, each scaled to its own posterior's peak."""
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(ridges) - 0.55, -0.68)
    axes.set_xlim(
        min(min(ridge.prior_lower, ridge.value[0]) for ridge in ridges),
        max(max(ridge.prior_upper, ridge.value[-1]) for ridge in ridges),
    )
    for row, ridge in enumerate(ridges):
        scale = PEAK / ridge.height.max()
        axes.fill_between(
            ridge.value, row, row - scale * ridge.height, color=style.SKY, alpha=0.4, linewidth=0
        )
        axes.plot(ridge.value, row - scale * ridge.height, color=style.BLUE, linewidth=1.4)
        axes.plot(
            ridge.prior_value, row - scale * ridge.prior_height, color=style.MUTED, linewidth=0.9
        )
        bar = row + BAR
        axes.plot([ridge.lower, ridge.upper], [bar, bar], color=style.BLUE, linewidth=3)
        axes.plot(ridge.median, bar, "o", color="white", markersize=3.2, mec=style.BLUE)
        place = axes.transAxes.inverted().transform(axes.transData.transform((ridge.median, 0)))[0]
        side = "right" if place > 0.8 else "left" if place < 0.2 else "center"
        axes.annotate(
            ridge.span,
            xy=({"right": ridge.upper, "left": ridge.lower, "center": ridge.median}[side], bar),
            xytext=(0, -5),
            textcoords="offset points",
            ha=side,
            va="top",
            fontsize=style.NOTE,
            color=style.INK,
        )


def _name_curves(axes: Axes, ridge: Ridge) -> None:
    """Name posterior and prior beside their curves, each on the side where it stands alone."""
    scale = PEAK / ridge.height.max()
    is_right = ridge.median > (ridge.prior_lower + ridge.prior_upper) / 2
    for name, value, height, color, right in (
        ("posterior", ridge.value, ridge.height, style.BLUE, is_right),
        ("prior", ridge.prior_value, ridge.prior_height, style.MUTED, not is_right),
    ):
        # Two thirds up the outer flank of the curve.
        flank = np.flatnonzero(height > 0.66 * height.max())[-1 if right else 0]
        axes.annotate(
            name,
            xy=(value[flank], -scale * height[flank]),
            xytext=(6 if right else -6, 3),
            textcoords="offset points",
            ha="left" if right else "right",
            fontsize=style.NOTE,
            color=color,
        )
