"""Drawing: a forest of exponents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.reporting.drawing import style
from advisor.reporting.exponents import Exponent, Exponents

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.44
"""Inches per exponent."""

PRIOR_AT, THEORY_AT = 0.2, -0.24
"""Place of the prior's bar below, and of theory's mark above that of the posterior, in rows."""

SPAN_AT, LEARNED_AT = 14.0, 122.0
"""Columns of text beside the axes, in points from them."""


def draw_exponents(info: Exponents) -> Figure:
    """Draw one panel per law: the posterior's interval in blue, the prior's below in grey."""
    from matplotlib.ticker import MaxNLocator

    counts = [len(rows) for _, rows in info.laws]
    figure = style.new_figure(8.4, ROW * sum(counts) + 0.8 * len(counts))
    # ArviZ's own forest has highest-density intervals in one version, and no second bar per row.
    panels = figure.subplots(len(counts), 1, height_ratios=counts, squeeze=False)[:, 0]
    for axes, (title, rows) in zip(panels, info.laws, strict=True):
        is_first, is_last = axes is panels[0], axes is panels[-1]
        style.tidy(axes, title=title, x="exponent (no unit)" if is_last else "")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(rows) - 0.5, -0.6)
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        _limit(axes, rows)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        axes.axvline(0, color=style.FAINT, linewidth=0.8, zorder=0)
        for place, row in enumerate(rows):
            _draw_row(axes, row, place)
        if is_first:
            _head(axes, rows[0])
    return figure


def _limit(axes: Axes, rows: tuple[Exponent, ...]) -> None:
    ends = [
        value
        for row in rows
        for value in (
            row.lower,
            row.upper,
            row.prior_lower,
            row.prior_upper,
            *(at for at, _ in row.theory),
        )
    ]
    low, high = min(0.0, *ends), max(ends)
    axes.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _draw_row(axes: Axes, row: Exponent, place: int) -> None:
    axes.plot([row.lower, row.upper], [place] * 2, color=style.BLUE, linewidth=3.2)
    axes.plot(row.median, place, "o", color="white", mec=style.BLUE, mew=1.4, markersize=5.5)
    below = place + PRIOR_AT
    axes.plot([row.prior_lower, row.prior_upper], [below] * 2, color=style.MUTED, linewidth=1.0)
    axes.plot(row.prior_median, below, "|", color=style.MUTED, markersize=6)
    low, high = axes.get_xlim()
    for index, (at, name) in enumerate(row.theory):
        axes.plot([at] * 2, [place - 0.16, place + 0.3], color=style.VERMILLION, linewidth=1.2)
        # Of two names the first ends at its mark and the second begins there.
        is_late = (at - low) / (high - low) > 0.85 or index < len(row.theory) - 1
        axes.annotate(
            name,
            xy=(at, place + THEORY_AT),
            xytext=(2 if is_late else -2, 0),
            textcoords="offset points",
            ha="right" if is_late else "left",
            va="center",
            fontsize=style.NOTE,
            color=style.VERMILLION,
        )
    for x, text, color in (
        (SPAN_AT, row.span, style.INK),
        (LEARNED_AT, row.learned, style.MUTED),
    ):
        axes.annotate(
            text,
            xy=(1, place),
            xycoords=axes.get_yaxis_transform(),
            xytext=(x, 0),
            textcoords="offset points",
            va="center",
            fontsize=style.TICK,
            color=color,
            annotation_clip=False,
        )


def _head(axes: Axes, row: Exponent) -> None:
    """Name the columns of text, and the two bars of the first row."""
    for x, text in ((SPAN_AT, "posterior\nmedian [80 %]"), (LEARNED_AT, "learned\nfrom pilots")):
        axes.annotate(
            text,
            xy=(1, -0.52),
            xycoords=axes.get_yaxis_transform(),
            xytext=(x, 0),
            textcoords="offset points",
            va="bottom",
            fontsize=style.NOTE,
            color=style.MUTED,
            annotation_clip=False,
        )
    for end, prior_end, side, gap in (
        (row.lower, row.prior_lower, "right", -5),
        (row.upper, row.prior_upper, "left", 5),
    ):
        low, high = axes.get_xlim()
        if side == "right" and (min(end, prior_end) - low) / (high - low) < 0.15:
            continue
        for x, at, text, color in (
            (end, -0.02, "posterior", style.BLUE),
            (prior_end, PRIOR_AT + 0.04, "prior", style.MUTED),
        ):
            axes.annotate(
                text,
                xy=(x, at),
                xytext=(gap, 0),
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=style.NOTE,
                color=color,
            )
        return
