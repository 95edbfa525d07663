"""Figure of the closed loop: regret of every method, and forecasts beside what came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BLUE, GREY = "#0072B2", "#9a9a9a"


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw one point a loop: regret by method; what came against what was forecast."""
    from matplotlib.figure import Figure

    best = {one["task"]: one["reward"] for one in found["oracles"]}
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    methods = list(found["summary"])[::-1]
    for height, method in enumerate(methods):
        own = [
            best[one["task"]] - row["final"]
            for one in found["loops"]
            for row in one["rows"]
            if row["method"] == method and row["place"] is not None
        ]
        colour = BLUE if method.startswith("advisor") else GREY
        left.plot(own, [height] * len(own), "o", color=colour, ms=4, alpha=0.6)
        left.plot([found["summary"][method]["regret_mean"]], [height], "|", color="black", ms=16)
    left.set_yticks(range(len(methods)), methods)
    left.axvline(0.015, color="#c4c4c4", lw=1, ls="--")
    left.set(xlabel="regret in held-out reward (bar: mean; dashed: goal)")
    for method, colour in (
        ("advisor, small pilots", BLUE),
        ("advisor, pilots of the same size", GREY),
    ):
        rows = [
            row
            for one in found["loops"]
            for row in one["rows"]
            if row["method"] == method and "lower" in row
        ]
        middle = [row["reward"] for row in rows]
        right.errorbar(
            [row["final"] for row in rows],
            middle,
            [
                [m - row["lower"] for m, row in zip(middle, rows, strict=True)],
                [row["upper"] - m for m, row in zip(middle, rows, strict=True)],
            ],
            fmt="o",
            ms=3,
            lw=1,
            color=colour,
            label=method.removeprefix("advisor, "),
        )
    right.plot([0.4, 1], [0.4, 1], color="black", lw=0.8)
    right.set(xlabel="came", ylabel="forecast, 80 % interval")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})
