"""One figure per file. A new figure is a file with a ``FIGURE`` and its line in the list here."""

from advisor.reporting.figures import (
    convergence,
    exponents,
    frontier,
    posteriors,
    stability_map,
    trajectories,
)
from advisor.reporting.figures.figure import FigureKind

FIGURES: dict[str, FigureKind] = {
    module.FIGURE.name: module.FIGURE
    for module in (stability_map, frontier, trajectories, posteriors, exponents, convergence)
}
"""Figures of a study by name, in the order of the report: the decision first."""

__all__ = ["FIGURES", "FigureKind"]
