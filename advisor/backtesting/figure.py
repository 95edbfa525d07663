"""Forecast against outcome: one panel per method, and a row of them for each part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.backtesting.result import Backtest
from advisor.backtesting.scores import QUANTILES, Prediction, score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3
"""Panels beside each other where all methods were asked one thing."""

INSIDE, OUTSIDE = "#0072b2", "#d55e00"


def draw_backtest(found: Backtest) -> Figure:
    """Draw each method's median and 80 % interval over what the run came to.

    Parameters
    ----------
    found : Backtest
        With several shares seen (or numbers of pilots) each has a row of panels.

    Returns
    -------
    figure : matplotlib Figure
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    parts = found.parts()
    methods = list(dict.fromkeys(p.method for p in found.predictions))
    columns = COLUMNS if len(parts) == 1 else len(methods)
    rows = -(-len(methods) // columns) * len(parts)
    size = 3.4 if len(parts) == 1 else 2.5
    figure = Figure(figsize=(size * columns, size * rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    ends = [value for p in found.predictions for value in (p.scaled(p.target), p.scaled(p.median))]
    unit = "" if {p.bounds for p in found.predictions} == {(0.0, 1.0)} else ", share of its range"
    asked = [(part, method) for part in parts for method in methods]
    for panel, (part, method) in zip(panels, asked, strict=False):
        own = [p for p in parts[part] if p.method == method]
        told = f"{_title(found, part)}: " if len(parts) > 1 else ""
        _draw(panel, own, (min(ends), max(ends)))
        scores = score(own)
        panel.set_title(
            f"{told}{method}\nerror {scores['mae']:.3f}, 80 % holds {scores['coverage']['0.8']:.0%}"
            if own
            else f"{told}{method}\nno forecast",
            fontsize=8,
        )
    for panel in panels[len(asked) :]:
        panel.set_axis_off()
    figure.supxlabel(f"reward the run came to{unit}", fontsize=9)
    figure.supylabel(f"forecast, 80 % interval{unit}", fontsize=9)
    return figure


def _title(found: Backtest, part: str) -> str:
    return f"{part} own pilots" if found.is_transfer else f"{float(part):.0%} seen"


def _draw(panel: Any, own: Sequence[Prediction], limits: tuple[float, float]) -> None:
    low, high = QUANTILES.index(0.1), QUANTILES.index(0.9)
    for is_inside, color in ((True, INSIDE), (False, OUTSIDE)):
        part = [p for p in own if p.covers(0.8) == is_inside]
        at = [p.scaled(p.target) for p in part]
        ends = ([p.scaled(p.quantiles[k]) for p in part] for k in (low, high))
        panel.vlines(at, *ends, color=color, lw=1, alpha=0.5)
        panel.plot(at, [p.scaled(p.median) for p in part], "o", ms=3, color=color)
    panel.plot(limits, limits, color="0.6", lw=0.8, zorder=0)
