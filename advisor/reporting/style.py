"""What figures and page share: colours, sizes, a frame, and how numbers and names are written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from advisor.common import scientific as scientific
from advisor.model import Meta
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BLUE, SKY, ORANGE = "#0072B2", "#56B4E9", "#E69F00"
"""Colours that all common kinds of colour blindness keep apart (Okabe and Ito 2008)."""

INK, MUTED, FAINT = "#1A1A1A", "#666666", "#C4C4C4"
"""Text; secondary text and frames; what stays in the background."""

ALARM = "#B84F00"
"""Vermillion dark enough for words: five to one on white, where that of marks has 3.9."""

RISK = "#F8DCC6"
"""Wash where a run would not stay stable; opaque, since over blue it would turn grey."""

TITLE, LABEL, TICK, NOTE = 11.0, 10.0, 9.0, 8.5  # Font sizes in points


def new_figure(width: float, height: float) -> Figure:
    """Empty figure of ``width`` x ``height`` inches that lays itself out; no pyplot state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.06)  # type: ignore[call-arg, union-attr]
    return figure


def tidy(axes: Axes, *, title: str = "", note: str = "", x: str = "", y: str = "") -> None:
    """Drop the box, set quiet ticks, and label; texts are taken literally."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=MUTED, linewidth=0.8)
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
    is_on_marks: bool = False,
    **look: Any,
) -> Any:
    """Write at an offset in points from a place; a pale ground keeps it legible on marks."""
    ground = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.75}
    given = {"fontsize": NOTE, "color": INK, "textcoords": "offset points", **look}
    return axes.annotate(
        plain(text), xy=at, xytext=offset, bbox=ground if is_on_marks else None, **given
    )


def band(
    axes: Axes, x: FloatArray, band: FloatArray, color: Any, *, alpha: float, **look: Any
) -> None:
    """Line within its band: lower edge, middle and upper edge over ``x``."""
    lower, middle, upper = band
    axes.fill_between(x, lower, upper, color=color, alpha=alpha, linewidth=0)
    axes.plot(x, middle, **{"color": color, "linewidth": 1.6, **look})


class Named(NamedTuple):
    """A label, the points that it names, its colour and that of the lines to them."""

    text: str
    points: Sequence[tuple[float, float]]
    color: str
    line: Any


def name_ends(axes: Axes, names: Sequence[Named], gap: float) -> None:
    """Write labels right of the axes, ``gap`` points apart, with lines to what they name."""
    low, high = axes.get_ylim()
    gap *= (high - low) / (72 * axes.get_window_extent().height / axes.figure.dpi)
    means = [float(np.mean([height for _, height in one.points])) for one in names]
    for one, place in zip(names, spread_apart(means, gap, low, high), strict=True):
        for index, point in enumerate(one.points):
            axes.annotate(
                "" if index else plain(one.text),
                xy=point,
                xytext=(1.04, place),
                textcoords=axes.get_yaxis_transform(),
                fontsize=NOTE,
                va="center",
                color=one.color,
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "color": one.line,
                    "linewidth": 0.8,
                    "relpos": (0.0, 0.5),
                    "shrinkA": 1,
                    "shrinkB": 2,
                },
            )


def legend(on: Axes | Figure, entries: Sequence[tuple[str, dict[str, Any]]], **look: Any) -> None:
    """Legend of texts, each with the look of a line, or of a patch where that has a face."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(label=text, **own) if "facecolor" in own else Line2D([], [], label=text, **own)
        for text, own in entries
    ]
    on.legend(handles=handles, frameon=False, fontsize=NOTE, labelcolor=INK, **look)


def even_ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers from ``low`` to ``high``, about so many."""
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(count).tick_values(low, high)
    return [float(tick) for tick in ticks if low - 1e-9 <= tick <= high + 1e-9]


def log_places(low: float, high: float) -> list[float]:
    """Places of labels on a log axis: 1e-4, 3e-4, 1e-3, and more where it spans little."""
    decades = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
    span = np.log10(high / low)
    leads: tuple[float, ...] = (1, 3) if span <= 3.2 else (1,)
    leads = leads if span > 0.8 else (1, 1.5, 2, 3, 5, 7)
    stride = max(1, round(span / 6))
    ticks = [float(f"{lead}e{d}") for d in decades if d % stride == 0 for lead in leads]
    return [tick for tick in ticks if low <= tick <= high]


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Label a log axis from ``low`` to ``high``, as learning rates are written."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ticks = log_places(low, high)
    axis.set_ticks(ticks, [scientific(tick) for tick in ticks])
    axis.set_minor_locator(LogLocator(subs=range(1, 10), numticks=99))
    axis.set_minor_formatter(NullFormatter())


def plain(text: str) -> str:
    """Text that matplotlib will not read as mathematics, on one line per line given."""
    kept = "".join(c for c in text if c == "\n" or not unicodedata.category(c).startswith("C"))
    return kept.replace("$", r"\$")


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> FloatArray:
    """Move positions within bounds until ``gap``, or what fits, lies between neighbours."""
    values = np.asarray(wanted, dtype=float)
    order = np.argsort(values, kind="stable")
    gap = min(gap, (high - low) / max(1, values.size - 1))
    placed = np.clip(values, low, high)[order]
    for at in range(1, values.size):
        placed[at] = max(placed[at], placed[at - 1] + gap)
    for at in reversed(range(values.size)):
        placed[at] = min(placed[at], high - gap * (values.size - 1 - at))
    out = np.empty(values.size)
    out[order] = placed
    return out


def role_of(kind: str, *, is_dead: bool) -> str:
    """What the settings of an answer are called; of dead pilots none is the best."""
    if kind == "next_pilot":
        return "gentlest pilot" if is_dead else "best pilot"
    return "advised" if kind == "recommendation" else "safest found"


def settings_label(settings: Settings) -> str:
    """Configuration named by what the advice chooses: ``lr 3e-4, G 8, K 2``."""
    return (
        f"lr {scientific(settings.learning_rate)}, "
        f"G {settings.group_size}, K {settings.refresh_interval}"
    )


def subject(model: str, task: str, *, is_short: bool = True) -> str:
    """Model and task as far as the logs name them."""
    written = shorten if is_short else str
    named = [] if model == PilotRun.UNNAMED_MODEL else [written(model)]
    named += [] if task == PilotRun.UNNAMED_TASK else [written(task)]
    return " on ".join(named) if named else "your model"


def shorten(name: str, limit: int = 26) -> str:
    """Last part of a path-like name, cut in the middle to ``limit`` characters."""
    name = re.sub(r"\s+", " ", name.rstrip("/").rsplit("/", 1)[-1]).strip()
    if len(name) <= limit:
        return name
    left = (limit - 1) // 2
    return f"{name[:left]}…{name[-(limit - 1 - left) :]}"


def most_piloted(meta: Meta, limit: int) -> list[tuple[str, str]]:
    """Pairs of task and model with most pilots, at most ``limit``, in the posterior's order."""
    pilots = [sum((run.task, run.model) == pair for run in meta.runs) for pair in meta.groups]
    first = sorted(range(len(pilots)), key=lambda index: -pilots[index])[:limit]
    return [meta.groups[index] for index in sorted(first)]
