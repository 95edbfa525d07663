"""Two figures: pilots, forecasts and outcomes of each task; the best learning rate of each cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from run_plan import STEPS
from trained_runs import Trained

PILOT, ADVISED, LADDER_RUN = "#D55E00", "#0072B2", "#b8b8b8"
SMOOTHED = 5
COLOURS = {"smollm2": "#0072B2", "gemma": "#D55E00", "qwen": "#009E73"}
RULES = {"constant": ("|", "#555555"), "Tinker, a tenth for RL": ("x", "#999999")}


def draw_loops(
    found: list[dict[str, Any]], runs: dict[str, dict[str, list[Trained]]], out: Path
) -> None:
    """A panel a task: the ladder in grey, pilots' part in orange, the advised runs in blue.

    Parameters
    ----------
    found : list of dict
        Of ``advice_loop.told``.
    runs : dict
        Task -> "ladder", "pilots" and "advised" -> runs.
    """
    columns = 4
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(11.0, 2.3 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for axes, one in zip(grid, found, strict=False):
        own = runs[one["task"]]
        for run in own["ladder"]:
            axes.plot(*_smooth(run, STEPS), color=LADDER_RUN, lw=1.0)
        for run in own["pilots"]:
            axes.plot(*_smooth(run, 12), color=PILOT, lw=1.6)
        for run in own["advised"]:
            axes.plot(*_smooth(run, STEPS), color=ADVISED, lw=1.6)
        low, middle, high = one["said"]["interval"]
        spread = [[middle - low], [high - middle]]
        axes.errorbar([STEPS + 3], [middle], spread, fmt="o", ms=4, color=ADVISED, capsize=3)
        axes.set_title(one["task"].replace("_", " "), fontsize=10, loc="left")
        axes.set_ylim(-0.03, 1.03)
    for axes in list(grid)[len(found) :]:
        axes.set_visible(False)
    lines = [
        (LADDER_RUN, "ladder of learning rates"),
        (PILOT, "its first 12 steps: the pilots"),
        (ADVISED, "trained as advised, and the forecast (80 %)"),
    ]
    for colour, label in lines:
        figure.axes[0].plot([], [], color=colour, label=label)
    figure.supxlabel("optimizer step", fontsize=9)
    figure.supylabel(f"train reward, mean of {SMOOTHED} rows", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    _write(figure, out)


def _smooth(run: Trained, until: int) -> tuple[np.ndarray, np.ndarray]:
    step, reward = run.rewards
    step, reward = step[step <= until], reward[step <= until]
    width = min(SMOOTHED, step.size)
    kernel = np.ones(width) / width
    return np.convolve(step, kernel, "valid"), np.convolve(reward, kernel, "valid")


def draw_cells(rows: Sequence[dict[str, Any]], out: Path) -> None:
    """A line a cell and horizon, by model and adapter; dots are best rates, bars 80 % intervals."""
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
    _write(figure, out)


def _write(figure: Figure, out: Path) -> None:
    """The same results make the same file."""
    with rc_context({"svg.hashsalt": out.stem}):
        figure.savefig(out, metadata={"Date": None})
