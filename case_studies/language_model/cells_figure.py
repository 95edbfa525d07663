"""One figure: the best learning rate of each cell with its interval, and the rates of rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

COLOURS = {"smollm2": "#0072B2", "gemma": "#D55E00", "qwen": "#009E73"}
RULES = {"constant": ("|", "#555555"), "Tinker, a tenth for RL": ("x", "#999999")}


def draw(rows: Sequence[dict[str, Any]], out: Path) -> None:
    """A line a cell and horizon, by model and adapter; dots are best rates, bars 80 % intervals."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    order = sorted(
        rows, key=lambda row: (row["adapter"] != "full", list(COLOURS).index(row["model"]))
    )
    figure = Figure(figsize=(9.0, 1.2 + 0.24 * max(1, len(order))), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(order):
        low, high = row["best_80"]
        colour = COLOURS[row["model"]]
        axes.plot([low, high], [place, place], color=colour, lw=2.2, solid_capstyle="butt")
        axes.plot([row["best"]], [place], "o", ms=5, color=colour)
        for name, (mark, grey) in RULES.items():
            axes.plot([row["rates"][name]], [place], mark, color=grey, ms=7)
    axes.set_yticks(
        np.arange(len(order)),
        [
            f"{row['model']}, {row['task']}, {row['adapter']}, {row['completions']} a step, "
            f"K {row['refresh']}, {row['horizon']} steps"
            for row in order
        ],
        fontsize=7,
    )
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("learning rate that ends highest (80 % interval)", fontsize=9)
    for name, (mark, grey) in RULES.items():
        axes.plot([], [], mark, color=grey, label=name)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    # The same rows make the same file.
    with rc_context({"svg.hashsalt": out.stem}):
        figure.savefig(out, metadata={"Date": None})
