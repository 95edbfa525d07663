"""The figure: final reward against learning rate by size, with the advised rates marked."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from judge import means
from matplotlib.figure import Figure

COLOURS = ("#c6dbef", "#6baed6", "#2171b5", "#f16913", "#a63603")
MARKS = ("o", "s", "^", "D")


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw one panel per task; a mark's size is the number of draws that named the rate."""
    runs, advice = found["runs"], found["advice"]
    tasks = list(dict.fromkeys(run["task"] for run in runs))
    sizes = {run["size"]: run["parameters"] for run in sorted(runs, key=lambda r: r["parameters"])}
    sets = list(dict.fromkeys(one["pilots"] for one in advice))
    figure = Figure(figsize=(3.2 * len(tasks) + 1.6, 3.6), layout="constrained")
    panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        for (size, parameters), colour in zip(sizes.items(), COLOURS, strict=False):
            final = means(runs, task, size)
            axes.semilogx(
                list(final),
                list(final.values()),
                color=colour,
                label=f"{size}, {parameters / 1e3:.0f} k",
            )
            for at, pilots in enumerate(sets):
                named = Counter(
                    one["learning_rate"]
                    for one in advice
                    if (one["task"], one["pilots"], one["target"]) == (task, pilots, size)
                    and one.get("learning_rate") is not None
                )
                for rate, count in named.items():
                    # Set side by side: marks of several sets at one rate would hide each other.
                    axes.scatter(
                        rate * 1.16 ** (at - (len(sets) - 1) / 2),
                        final[rate],
                        18 * count,
                        marker=MARKS[at],
                        facecolor="white",
                        edgecolor=colour,
                        linewidth=1.3,
                        zorder=3,
                    )
        axes.set(title=task, xlabel="learning rate")
    for at, pilots in enumerate(sets):
        panels[-1].scatter(
            [], [], 30, marker=MARKS[at], facecolor="white", edgecolor="k", label=f"from {pilots}"
        )
    panels[0].set_ylabel("final held-out reward")
    figure.legend(
        *panels[-1].get_legend_handles_labels(),
        loc="outside right center",
        frameon=False,
        fontsize=8,
    )
    figure.savefig(path, metadata={"Date": None})
