"""Drawing: the series of one failure mode, one above the other."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from advisor.diagnosis.collapse import trailing_mean, window_rows
from advisor.reporting.diagnosis import Symptom, Trace
from advisor.reporting.drawing import style
from advisor.reporting.names import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.VERMILLION)
WASHES = {"FAIL": style.VERMILLION, "WARNING": style.ORANGE}


def draw_symptom(info: Symptom) -> Figure:
    """Draw every panel over the same steps; what the card speaks of is tinted."""
    count = len(info.panels)
    figure = style.new_figure(7.0, 1.9 * count + 0.9)
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    for index, (panel, own) in enumerate(zip(info.panels, axes, strict=True)):
        is_first = index == 0
        style.tidy(
            own,
            title=f"{info.card.title}: {info.card.status}" if is_first else "",
            note=shorten(f"{info.run}: {info.card.headline}", 110) if is_first else "",
            x=info.step_unit if index == count - 1 else "",
            y=panel[0].name if len(panel) == 1 else "reward" if is_first else "parts",
        )
        for colour, trace in zip(cycle(COLOURS), panel, strict=False):
            _draw(own, trace, colour, is_named=len(panel) > 1)
        wash = WASHES.get(info.card.status)
        if wash is not None and info.card.steps is not None:
            own.axvspan(*info.card.steps, color=wash, alpha=0.1, linewidth=0)
        if info.collapse_step is not None:
            own.axvline(info.collapse_step, color=style.VERMILLION, linewidth=1, linestyle="--")
        own.margins(x=0.02)
    if info.collapse_step is not None:
        axes[0].annotate(
            f"collapse at {info.collapse_step:.0f}",
            (info.collapse_step, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, -2),
            textcoords="offset points",
            va="top",
            color=style.VERMILLION,
            fontsize=style.NOTE,
        )
    return figure


def _draw(axes: Axes, trace: Trace, colour: str, *, is_named: bool) -> None:
    if trace.is_sparse:
        axes.plot(trace.step, trace.value, "o-", color=colour, markersize=4, linewidth=1)
    else:
        axes.plot(trace.step, trace.value, ".", color=colour, alpha=0.35, markersize=4)
        width = window_rows(trace.value.size)
        if trace.value.size >= width:
            smooth = trailing_mean(trace.value, width)
            axes.plot(trace.step[width - 1 :], smooth, color=colour, linewidth=1.6)
    if is_named and trace.value.size:
        place = (float(trace.step[-1]), float(np.mean(trace.value[-5:])))
        axes.annotate(
            style.plain(shorten(trace.name, 24)),
            place,
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=style.NOTE,
            annotation_clip=False,
        )
