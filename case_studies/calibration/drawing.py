"""Figures of the two studies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bandit_study import METHODS
from matplotlib.figure import Figure
from one_simulation import DRAWS
from rank_study import LEVEL
from ranks import difference, uniform_band
from simulation_lines import read_header

from advisor.backtesting.scores import QUANTILES

INSIDE, OUTSIDE, LIGHT, DARK = "#0072b2", "#d55e00", "0.92", "0.82"
COLUMNS = 3
EVERY = 3
"""Ranks from one point of a drawn line to the next, to keep the figure small."""


def draw_ranks(paths: Sequence[Path], told: dict[str, Any], out: Path) -> None:
    """One panel per study: a line per quantity, the band of one and the band of all."""
    rows = -(-len(paths) // COLUMNS)
    figure = Figure(figsize=(3.4 * COLUMNS, 2.8 * rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, COLUMNS, sharex=True)).ravel()
    at = np.arange(1, DRAWS + 1) / (DRAWS + 1)
    for panel, path in zip(panels, paths, strict=False):
        result, names = told[path.stem], read_header(path)["quantities"]
        lines = path.read_text().splitlines()[1:]
        ranks = np.array([json.loads(line)["ranks"] for line in lines]).T
        band = uniform_band(ranks.shape[1], DRAWS)
        for level, color in ((LEVEL / len(names), LIGHT), (LEVEL, DARK)):
            panel.fill_between(at, *band.limits(level), color=color, lw=0, step="mid")
        for name, own in zip(names, ranks, strict=True):
            is_out = result["quantities"][name]["chance"] < LEVEL / len(names)
            panel.plot(
                at[::EVERY],
                difference(own, DRAWS)[::EVERY],
                color=OUTSIDE if is_out else INSIDE,
                lw=1.2 if is_out else 0.5,
                alpha=0.9 if is_out else 0.45,
            )
        verdict = "passes" if result["passes"] else "fails"
        panel.set_title(
            f"{path.stem.replace('_', ': ')}: {verdict}, {result['simulations']} simulations",
            fontsize=9,
        )
        panel.set_xlabel("rank of the truth / 100")
    for panel in panels[::COLUMNS]:
        panel.set_ylabel("ECDF minus uniform")
    for panel in panels[len(paths) :]:
        panel.set_axis_off()
    figure.savefig(out, metadata={"Date": None})


def draw_bandits(path: Path, told: dict[str, Any], out: Path) -> None:
    """Forecast against outcome per method, and the exponent's intervals over the cohorts."""
    records = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    figure = Figure(figsize=(3.1 * (len(METHODS) + 1), 3.4), layout="constrained")
    *panels, last = figure.subplots(1, len(METHODS) + 1)
    low, middle, high = (QUANTILES.index(q) for q in (0.1, 0.5, 0.9))
    for panel, method in zip(panels, METHODS, strict=True):
        for p in (p for record in records for p in record["predictions"]):
            if p["method"] != method:
                continue
            ends = p["quantiles"][low], p["quantiles"][high]
            color = INSIDE if ends[0] <= p["target"] <= ends[1] else OUTSIDE
            panel.plot([p["target"]] * 2, ends, color=color, lw=0.8, alpha=0.35)
            panel.plot(p["target"], p["quantiles"][middle], "o", ms=2, color=color)
        panel.plot((0, 1), (0, 1), color="0.6", lw=0.8, zorder=0)
        scores = told["methods"][method]
        panel.set_title(
            f"{method}: error {scores['mae']:.3f}, 80 % holds {scores['coverage']['0.8']:.0%}",
            fontsize=8,
        )
        panel.set_xlim(0, 1)
        panel.set_ylim(0, 1)
        panel.set_xlabel("reward the run came to")
    panels[0].set_ylabel("forecast, 80 % interval")
    fitted = sorted((r for r in records if r["exponent"]), key=lambda r: r["exponent"][middle])
    for place, record in enumerate(fitted):
        ends = record["exponent"][low], record["exponent"][high]
        color = INSIDE if ends[0] <= told["exponent"]["true"] <= ends[1] else OUTSIDE
        last.plot(ends, [place] * 2, color=color, lw=1)
        last.plot(record["exponent"][middle], place, "o", ms=2.5, color=color)
    last.axvline(told["exponent"]["true"], color="0.6", lw=0.8, zorder=0)
    last.set_title(f"exponent: 80 % holds {told['exponent']['holds']['0.8']:.0%}", fontsize=8)
    last.set_xlabel("rate exponent of the learning rate")
    last.set_yticks([])
    last.set_ylabel("cohorts")
    figure.savefig(out, metadata={"Date": None})
