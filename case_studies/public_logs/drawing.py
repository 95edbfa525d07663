"""The study's figure: R² against error, forecasts, P(unstable) left out, the sweep's boundary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#999999"


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw four panels."""
    figure = Figure(figsize=(11, 8.2), layout="constrained")
    panels = figure.subplots(2, 2)
    _fits(panels[0, 0], found["closed_form"])
    _forecasts(panels[0, 1], found["forecasts"])
    _left_out(panels[1, 0], found["instability"])
    _sweep(panels[1, 1], found["off_policy"])
    figure.savefig(path, metadata={"Date": None})


def _fits(panel: Any, found: dict[str, Any]) -> None:
    for name, colour, marker in (("lived", BLUE, "o"), ("collapsed or declined", RED, "x")):
        has_failed = name != "lived"
        own = [r for r in found["runs"] if (r["label"] in ("collapse", "decline")) == has_failed]
        panel.plot(
            [max(r["r2_bins"], -0.05) for r in own],
            [r["forecast_error"] for r in own],
            marker,
            color=colour,
            ms=4,
            alpha=0.7,
            label=name,
        )
    rank = found["rank_correlation_of_r2_and_error"]
    panel.set(
        title=f"A good fit is no good forecast (rank correlation {rank:.2f})",
        xlabel="R² of the closed form on the whole run, bin means",
        ylabel="error of its forecast from the first quarter",
    )
    panel.legend(frameon=False, fontsize=8)


def _forecasts(panel: Any, found: dict[str, Any]) -> None:
    names = [name for name in found if name != "all"]
    styles = (
        ("advisor", BLUE, "o"),
        ("last value", GREY, "s"),
        ("ensemble", ORANGE, "^"),
    )
    for at, name in enumerate(names):
        for method, colour, marker in styles:
            panel.plot(found[name][method]["mae"], at, marker, color=colour, ms=7, alpha=0.85)
    for method, colour, marker in styles:
        panel.plot([], [], marker, color=colour, label=method)
    panel.set_yticks(
        range(len(names)), [f"{name}, {found[name]['runs']}" for name in names], fontsize=8
    )
    panel.invert_yaxis()
    panel.set_xlim(left=0)
    panel.set(
        title="Forecasts from the first quarter (backtest)",
        xlabel="mean error of the final reward, share of its range",
    )
    panel.legend(frameon=False, fontsize=8)


def _left_out(panel: Any, found: dict[str, Any]) -> None:
    rows = found["repositories"]
    styles = (("hazard law", BLUE, "o"), ("logistic", ORANGE, "^"))
    for at, row in enumerate(rows):
        share = row["collapsed"] / row["runs"]
        panel.plot(share, at, "|", color=RED, ms=18, mew=3)
        for method, colour, marker in styles:
            panel.plot(row[method], at, marker, color=colour, ms=7, alpha=0.85)
        panel.plot(row["base rate of the others"], at, "s", color=GREY, ms=6, alpha=0.85)
    panel.plot([], [], "|", color=RED, ms=12, mew=3, label="collapsed")
    for method, colour, marker in (*styles, ("base rate of the others", GREY, "s")):
        panel.plot([], [], marker, color=colour, label=method)
    panel.set_yticks(
        range(len(rows)),
        [f"{row['repository'].split('/')[0]}, {row['runs']}" for row in rows],
        fontsize=8,
    )
    panel.invert_yaxis()
    panel.set(title="P(unstable) of a repository from the others", xlabel="mean probability; share")
    panel.legend(frameon=False, fontsize=8)


def _sweep(panel: Any, found: dict[str, Any]) -> None:
    rows = found["schedules"]
    order = sorted(range(len(rows)), key=lambda at: (rows[at]["epochs"], rows[at]["minibatches"]))
    colours = (BLUE, GREEN, GREY, ORANGE, "#cc79a7", RED)
    for (name, said), colour in zip(found["said"].items(), colours, strict=False):
        own = said["no knowledge of epochs"]
        if "stable" in own:
            values = [own["stable"][at] for at in order]
            panel.plot(range(len(rows)), values, "o-", color=colour, ms=4, lw=1, label=name)
    for place, at in enumerate(order):
        if rows[at]["label"] == "collapse":
            panel.axvspan(place - 0.5, place + 0.5, color=RED, alpha=0.15, lw=0)
    panel.axhline(0.5, color="0.5", lw=0.8, ls="--")
    ticks = [f"{rows[at]['minibatches']} x {rows[at]['epochs']}" for at in order]
    panel.set_xticks(range(len(rows)), ticks, fontsize=8)
    panel.set_ylim(0, 1.02)
    panel.set(
        title="Off-policy sweep: shaded schedules collapsed",
        xlabel="mini-batches x epochs per refresh",
        ylabel="P(stable), no knowledge of epochs",
    )
    panel.legend(frameon=False, fontsize=7, loc="lower left")
