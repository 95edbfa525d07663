"""Study 1: many simulations, kept line by line, and what their ranks say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from one_simulation import DRAWS, PRESET, ranked_names, simulate_and_rank
from ranks import coverage, difference, uniform_band
from simulation_lines import Record, made_under, read_header, read_records, run_missing

from advisor.common import EngineSettings

LEVEL = 0.05
"""Of every test: of one quantity, and by Bonferroni of all quantities of a study together."""


def run_simulations(
    study: str, wanted: int, folder: Path, on: EngineSettings | None = None
) -> None:
    """Run what is still missing of a study; every simulation is one line that stays.

    Parameters
    ----------
    study : str
    wanted : int
        Simulations 0 to ``wanted - 1``.
    folder : Path
        Of the lines; ``<study>.jsonl``.
    on : dict, optional
        Where they are done.
    """
    header = made_under(study, PRESET) | {"quantities": ranked_names(study)}
    run_missing(folder / f"{study}.jsonl", header, _listed, range(wanted), on=on)


def _listed(study: str, number: int) -> Record:
    """A simulation with its ranks in the order of the header's quantities."""
    record = simulate_and_rank(study, number)
    return record | {"ranks": list(record["ranks"].values())}


def summary(path: Path) -> dict[str, Any]:
    """What the ranks of one study say.

    Returns
    -------
    told : dict
        Per quantity the largest ECDF difference and the probability of one as odd under uniform
        ranks; of the study the smallest such probability times the number of quantities.
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
