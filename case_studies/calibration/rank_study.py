"""Study 1: many simulations, kept line by line, and what their ranks say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from one_simulation import DRAWS, PRESET, ranked_names, simulate_and_rank
from ranks import coverage, difference, uniform_band
from simulation_lines import Record, made_under, read_header, read_records, run_missing

from advisor.common import EngineSettings

LEVEL = 0.05
"""Of every test: of one quantity, and by Bonferroni of all quantities of a study together."""

INSIDE, OUTSIDE, LIGHT, DARK = "#0072b2", "#d55e00", "0.92", "0.82"
COLUMNS = 3
EVERY = 3
"""Ranks from one point of a drawn line to the next, to keep the figure small."""


def run_simulations(
    study: str, wanted: int, folder: Path, on: EngineSettings | None = None
) -> None:
    """Run what is missing of simulations 0 to ``wanted - 1``; each is one line that stays."""
    header = made_under(study, PRESET) | {"quantities": ranked_names(study)}
    run_missing(folder / f"{study}.jsonl", header, _listed, range(wanted), on=on)


def _listed(study: str, number: int) -> Record:
    """A simulation with its ranks in the order of the header's quantities."""
    record = simulate_and_rank(study, number)
    return record | {"ranks": list(record["ranks"].values())}


def summary(path: Path) -> dict[str, Any]:
    """What the ranks of one study say.

    Per quantity the largest ECDF difference and the probability of one as odd under uniform ranks;
    of the study the smallest such probability times the number of quantities.
    """
    header = read_header(path)
    records = read_records(path)
    ranks = np.array([record["ranks"] for record in records]).T
    band = uniform_band(len(records), DRAWS)
    names = header["quantities"]
    quantities = {
        name: {
            "largest_difference": round(float(np.abs(difference(own, DRAWS)).max()), 4),
            "chance": band.chance(own),
            "holds_80": round(coverage(own, DRAWS, 0.8), 4),
        }
        for name, own in zip(names, ranks, strict=True)
    }
    chances = np.array([told["chance"] for told in quantities.values()])
    low, high = band.limits(LEVEL)
    wide_low, wide_high = band.limits(LEVEL / len(names))
    return {
        "formulas": header["formulas"],
        "preset": header["preset"],
        "simulations": len(records),
        "not_converged": sum(not record["converged"] for record in records),
        "sampled_twice": sum(record["attempts"] > 1 for record in records),
        "draws_per_rank": DRAWS,
        "quantities_tested": len(names),
        "band_of_one": round(float(np.maximum(-low, high).max()), 4),
        "band_of_all": round(float(np.maximum(-wide_low, wide_high).max()), 4),
        "outside_band_of_one": int(np.sum(chances < LEVEL)),
        "outside_band_of_all": int(np.sum(chances < LEVEL / len(names))),
        "worst": names[int(chances.argmin())],
        "chance_of_all": float(min(1.0, chances.min() * len(names))),
        "passes": bool(chances.min() * len(names) >= LEVEL),
        "quantities": quantities,
    }


def draw_ranks(paths: Sequence[Path], told: dict[str, Any], out: Path) -> None:
    """One panel per study: a line per quantity, the band of one and the band of all."""
    rows = -(-len(paths) // COLUMNS)
    figure = Figure(figsize=(3.4 * COLUMNS, 2.8 * rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, COLUMNS, sharex=True)).ravel()
    at = np.arange(1, DRAWS + 1) / (DRAWS + 1)
    for panel, path in zip(panels, paths, strict=False):
        result, names = told[path.stem], read_header(path)["quantities"]
        ranks = np.array([record["ranks"] for record in read_records(path)]).T
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
