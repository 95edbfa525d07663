"""The study's figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw predicted against measured thresholds, and fluctuation."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = found["refresh"]
    exact = [r["map"] * r["interval"] for r in rows]
    left.plot([0.2, 5], [0.2, 5], color="#c4c4c4", lw=1)
    for cycles, colour in ((0, "#0072B2"), (1, "#E69F00"), (2, "#009E73")):
        own = [r for r in rows if r["lag_cycles"] == cycles]
        left.plot(
            [r["map"] * r["interval"] for r in own],
            [r["measured"] * r["interval"] for r in own],
            "o",
            color=colour,
            label=f"{cycles} cycles old",
        )
    left.axvline(1, color="#D55E00", ls="--", lw=1)
    left.annotate("the paper's rule", (1, max(exact)), color="#D55E00", ha="right", rotation=90,
                  va="top", fontsize=8)  # fmt: skip
    left.set(xlabel="k K at the limit of the refresh map", ylabel="k K where the bandit diverges")
    left.legend(frameon=False, fontsize=8)
    for momentum, colour in ((0.0, "#0072B2"), (0.9, "#E69F00")):
        own = [r for r in found["sampled_threshold"] if r["momentum"] == momentum]
        for samples, style in (("held", "o-"), ("corrected", "s--")):
            right.semilogy(
                [r["share"] for r in own],
                [r[samples] for r in own],
                style,
                color=colour,
                label=f"momentum {momentum:g}, {samples}",
            )
    right.axvline(1, color="#666666", lw=1)
    right.set(xlabel="stiffness over its limit", ylabel="variance over learning rate, relative")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})
