"""The study's figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw predicted against measured thresholds, fluctuation, and rewards by group size."""
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    left, right, off = figure.subplots(1, 3)
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
    for name, colour in (
        ("sgd, leave_one_out", "#0072B2"),
        ("sgd, group", "#E69F00"),
        ("adamw, leave_one_out", "#009E73"),
    ):
        own = [r for r in found["elsewhere"] if f"{r['optimizer']}, {r['scaling']}" == name]
        for kind, style in (("train", "o-"), ("held-out contexts", "s--"), ("other rewards", "^:")):
            off.semilogx(
                [r["group_size"] for r in own],
                [r[kind] for r in own],
                style,
                color=colour,
                ms=4,
                label=f"{name}: {kind}",
            )
    off.set(xlabel="group size", ylabel="settled mean reward")
    off.legend(frameon=False, fontsize=6, ncols=2, loc="lower center")
    off.set_xticks([2, 4, 8, 16, 32], ["2", "4", "8", "16", "32"])
    off.minorticks_off()
    off.set_ylim(0.44, 0.74)
    figure.savefig(path, metadata={"Date": None})
