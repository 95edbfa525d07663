"""The study's figure: outcome against forecast, and the stiffness ratio from three sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LEAST_MARGIN = 1e-2  # cells on policy stand far to the left of what matters


def draw(setups: list[dict[str, Any]], path: Path) -> None:
    """Draw the figure of a result.

    Parameters
    ----------
    setups : list of dict
        As in the result.
    path : Path
        SVG to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(5, 4))
    _outcomes(left, setups)
    _ratios(right, setups)
    figure.savefig(path, metadata={"Date": None})


def _outcomes(axes: Any, setups: list[dict[str, Any]]) -> None:
    keys = [(setup["name"], fit["learning_rate"]) for setup in setups for fit in setup["stiffness"]]
    colours = dict(zip(keys, COLOURS * len(keys), strict=False))
    for setup in setups:
        margins = {
            (c["learning_rate"], c["interval"], c["lag"]): c["stiffness_over_limit"]
            for c in setup["cells"]
            if not c["importance_ratio"]
        }
        for cell in filter(lambda c: c["clipped"], setup["cells"]):
            place = (cell["learning_rate"], cell["interval"], cell["lag"])
            axes.semilogx(
                max(margins[place], LEAST_MARGIN),
                cell["final"] / max(cell["on_policy"], 1e-9),
                "^" if cell["lag"] else "o",
                color=colours[setup["name"], cell["learning_rate"]],
                fillstyle="none" if cell["importance_ratio"] else "full",
                ms=5,
            )
    for (name, rate), colour in colours.items():
        axes.plot([], [], "o", color=colour, label=f"{name}, {rate:g}")
    axes.plot([], [], "^", color="#555555", label="lag at K = 1")
    axes.plot([], [], "o", color="#555555", fillstyle="none", label="with a ratio")
    axes.axvline(1, color="#666666", lw=1)
    axes.axhline(2 / 3, color="#c4c4c4", lw=1, ls="--")
    axes.set(
        xlabel="stiffness over its limit without a ratio, from on-policy pilots",
        ylabel="final reward over that on policy",
    )
    axes.legend(frameon=False, fontsize=7, loc="lower left")


def _ratios(axes: Any, setups: list[dict[str, Any]]) -> None:
    low, middle, high = setups[0]["prior_stiffness_ratio"]
    axes.axvspan(low, high, color="#e6e6e6", lw=0)
    axes.axvline(middle, color="#999999", lw=1)
    axes.text(middle, -0.7, "prior", fontsize=7, color="#555555", ha="center")
    names, row = [], 0
    for setup in setups:
        for fit in setup["stiffness"]:
            for kind, bracket in fit["needed"].items():
                ends = [bracket[side] for side in ("low", "high")]
                drawn = [end for end in ends if end is not None]
                axes.plot(drawn, [row] * len(drawn), "|-", color="#0072B2", ms=8)
                names.append(f"{setup['name']} {fit['learning_rate']:g}\nneeded, {kind}")
                row += 1
            if fit.get("ratio_by_products"):
                least, median, most = fit["ratio_by_products"]
                axes.plot([least, most], [row, row], "-", color="#D55E00")
                axes.plot(median, row, "o", color="#D55E00")
                names.append("by Hessian-vector products")
                row += 1
    axes.set_xscale("log")
    axes.set_yticks(range(row), names, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="stiffest mode over the fitted one")
