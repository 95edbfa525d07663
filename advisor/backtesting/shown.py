"""What the terminal shows of a backtest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.backtesting.scores import QUANTILES, Backtest, Prediction, score

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show(found: Backtest, console: Console) -> None:
    """Print the scores of all methods, and what was left out."""
    parts = found.parts()
    if parts:
        table = _table(found)
        for part in parts:
            methods = found.methods(part)
            for method, told in methods.items():
                shares = [f"{share:.0%}" for share in told["coverage"].values()]
                row = [method, f"{told['mae']:.3f}", f"{told['crps']:.3f}", *shares]
                if len(parts) > 1:
                    own = part if found.is_transfer else f"{float(part):.0%}"
                    row.insert(0, own if method == next(iter(methods)) else "")
                table.add_row(*row)
            table.add_section()
        console.print(table)
        is_shared = {p.bounds for p in found.predictions} != {(0.0, 1.0)}
        unit = "as shares of the reward's range" if is_shared else "in reward units"
        console.print(Text(f"Errors and CRPS {unit}; smaller is better."))
    for name in found.failed:
        console.print(Text(f"No forecast of {name}: the sampler did not converge."))
    for line in found.broken:
        console.print(Text(f"No forecast of {line}"))
    for why, names in _by_reason(found.uncurved).items():
        which = names[0] if len(names) == 1 else f"{len(names)} cohorts, for example {names[0]}"
        console.print(Text(f"Forecast from runs like them, without a pooled curve: {which}; {why}"))
    if found.left_out:
        console.print(Text(f"Left out ({len(found.left_out)}):"))
    for why, names in _by_reason(found.left_out).items():
        which = names[0] if len(names) == 1 else f"{len(names)}, for example {names[0]}"
        console.print(Text(f"  {why} [{which}]"))


def _by_reason(lines: tuple[str, ...]) -> dict[str, list[str]]:
    """What was left out by the reason, the most common first."""
    reasons: dict[str, list[str]] = {}
    for line in lines:
        name, _, why = line.partition(": ")
        reasons.setdefault(why, []).append(name)
    return dict(sorted(reasons.items(), key=lambda item: -len(item[1])))


def _table(found: Backtest) -> Table:
    runs = len({(p.cohort, p.run) for p in found.predictions})
    cohorts = len({p.cohort for p in found.predictions})
    what = (
        f"{runs} forecasts from {cohorts} set{'s' if cohorts > 1 else ''} of pilots"
        if found.is_transfer
        else f"{runs} run{'s' if runs > 1 else ''} in {cohorts} cohort{'s' if cohorts > 1 else ''}"
    )
    table = Table(
        title=f"Final reward: {what}", title_justify="left", header_style="bold", box=SIMPLE
    )
    names = ["method", "mean error", "CRPS", "50 % holds", "80 % holds", "95 % holds"]
    if len(found.parts()) > 1:
        names.insert(0, "own pilots" if found.is_transfer else "seen")
    for name in names:
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    return table


def draw_backtest(found: Backtest) -> Figure:
    """Draw each method's median and 80 % interval over what the run came to."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    parts = found.parts()
    methods = list(dict.fromkeys(p.method for p in found.predictions))
    columns = 3 if len(parts) == 1 else len(methods)
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
    for is_inside, color in ((True, "#0072b2"), (False, "#d55e00")):
        part = [p for p in own if p.covers(0.8) == is_inside]
        at = [p.scaled(p.target) for p in part]
        ends = ([p.scaled(p.quantiles[k]) for p in part] for k in (low, high))
        panel.vlines(at, *ends, color=color, lw=1, alpha=0.5)
        panel.plot(at, [p.scaled(p.median) for p in part], "o", ms=3, color=color)
    panel.plot(limits, limits, color="0.6", lw=0.8, zorder=0)
