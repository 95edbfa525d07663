"""Figure of the ranks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from one_simulation import DRAWS
from rank_study import LEVEL
from ranks import difference, uniform_band
from simulation_lines import read_header

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
