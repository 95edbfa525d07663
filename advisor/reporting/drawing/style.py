"""What all figures share: colours, sizes, number formats, and a frame without chart junk."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.reporting.names import scientific
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


BLUE, SKY, GREEN, ORANGE, VERMILLION, PURPLE = (
    "#0072B2",
    "#56B4E9",
    "#009E73",
    "#E69F00",
    "#D55E00",
    "#CC79A7",
)
"""Colours that all common kinds of colour blindness keep apart (Okabe and Ito 2008)."""

CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
"""Order in which lines of equal rank are coloured."""

INK, MUTED, FAINT, WASH = "#1A1A1A", "#666666", "#C4C4C4", "#F0F0F0"
"""Text; secondary text and frames; what stays in the background; empty ground."""

ALARM = "#B84F00"
"""Vermillion dark enough for words: five to one on white, where that of marks has 3.9."""

RISK = "#F8DCC6"
"""Wash where a run would not stay stable; opaque, since over blue it would turn grey."""

TITLE, LABEL, TICK, NOTE = 11.0, 10.0, 9.0, 8.5
"""Font sizes in points."""


NARROW = 4.6
"""Inches across a drawing for a phone: on 390 px its smallest words are 9.7 px high."""

RIM = "rim-"
"""Begins the identifier of a text with a rim, which ends in the rim's width in points."""


def new_figure(width: float, height: float) -> Figure:
    """Empty figure of ``width`` x ``height`` inches that lays itself out; no pyplot state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.06)  # type: ignore[call-arg, union-attr]
    return figure


def tidy(axes: Axes, *, title: str = "", note: str = "", x: str = "", y: str = "") -> None:
    """Drop the box, set quiet ticks, and label; texts are taken literally."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MUTED)
        axes.spines[side].set_linewidth(0.8)
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=TICK, width=0.8, length=3.5)
    axes.tick_params(which="minor", length=2, width=0.6, colors=MUTED)
    axes.set_title(
        plain(title),
        loc="left",
        fontsize=TITLE,
        color=INK,
        fontweight="bold",
        pad=10 + NOTE + (NOTE + 3) * note.count("\n") if note else 6,
    )
    if note:
        write(axes, note, (0, 1), (0, 5), xycoords="axes fraction", color=MUTED)
    axes.set_xlabel(plain(x), fontsize=LABEL, color=INK)
    axes.set_ylabel(plain(y), fontsize=LABEL, color=INK)


def write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float] = (0, 0),
    *,
    rim: float = 0.0,
    **look: Any,
) -> Any:
    """Write at an offset in points from a place; a rim in points keeps it legible on marks."""
    from matplotlib.patheffects import withStroke

    stroke = withStroke(linewidth=rim, foreground="white")
    rimmed: dict[str, Any] = {"path_effects": [stroke], "gid": f"{RIM}{rim:g}"} if rim else {}
    given = {"fontsize": NOTE, "color": INK, "textcoords": "offset points", **rimmed, **look}
    return axes.annotate(plain(text), xy=at, xytext=offset, **given)


def padded(values: Sequence[float], share: float, least: float) -> tuple[float, float]:
    """Ends of values with a margin on both sides: a share of their span, or of the least one."""
    low, high = float(min(values)), float(max(values))
    margin = share * max(high - low, least)
    return low - margin, high + margin


def tidy_bar(bar: Colorbar, label: str) -> None:
    """Label a colour bar, without its frame."""
    bar.set_label(label, fontsize=LABEL, color=INK)
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(labelsize=TICK, colors=MUTED, labelcolor=INK, length=3)


def rate_colors() -> Colormap:
    """Sequential map for learning rates: viridis without the ends that white and dark swallow."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["viridis"](np.linspace(0.35, 0.86, 256)), name="rates")


def log_ticks(
    axis: Axis, low: float, high: float, text: Callable[[float], str] = scientific
) -> None:
    """Label a log axis from ``low`` to ``high`` the way learning rates are written: 1e-4, 3e-4."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    decades = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
    span = np.log10(high / low)
    leads: tuple[float, ...] = (1, 3) if span <= 3.2 else (1,)
    leads = leads if span > 0.8 else (1, 1.5, 2, 3, 5, 7)
    stride = max(1, round(span / 6))
    ticks = [lead * 10.0**d for d in decades if d % stride == 0 for lead in leads]
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    minor = [lead * 10.0**d for d in decades for lead in range(1, 10)]
    axis.set_minor_locator(FixedLocator([tick for tick in minor if low <= tick <= high]))
    axis.set_minor_formatter(NullFormatter())


def plain(text: str) -> str:
    """Text that matplotlib will not read as mathematics, on one line per line given."""
    kept = "".join(c for c in text if c == "\n" or not unicodedata.category(c).startswith("C"))
    return kept.replace("$", r"\$")


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> FloatArray:
    """Move positions within bounds as little as keeps ``gap``, or what fits, between neighbours."""
    values = np.asarray(wanted, dtype=float)
    if values.size == 0:
        return values
    gap = min(gap, (high - low) / max(1, values.size - 1))
    order = np.argsort(values, kind="stable")
    offsets = gap * np.arange(values.size)
    # Least squares under a minimal gap is isotonic regression of the positions less their offsets.
    blocks: list[list[float]] = []
    for value in values[order] - offsets:
        blocks.append([float(value)])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    placed = np.concatenate([np.full(len(block), np.mean(block)) for block in blocks])
    placed = np.clip(placed, low, max(low, high - float(offsets[-1]))) + offsets
    out = np.empty(values.size)
    out[order] = placed
    return out
