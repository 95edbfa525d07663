"""Study 1: many simulations, kept line by line, and what their ranks say."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from one_simulation import DRAWS, PRESET, formulas, simulate_and_rank
from ranks import coverage, difference, uniform_band

PROCESSES = 2
LEVEL = 0.05
"""Of every test: of one quantity, and by Bonferroni of all quantities of a study together."""

FORECAST = "reward at twice the horizon"


def run_simulations(study: str, wanted: int, folder: Path) -> None:
    """Run what is still missing of a study; every simulation is one line that stays.

    Parameters
    ----------
    study : str
    wanted : int
        Simulations 0 to ``wanted - 1``.
    folder : Path
        Of the lines; ``<study>.jsonl``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{study}.jsonl"
    done = {record["number"] for record in read_simulations(path)} if path.exists() else set()
    missing = [number for number in range(wanted) if number not in done]
    if not missing:
        return
    with ProcessPoolExecutor(PROCESSES) as pool, path.open("a") as stream:
        waiting = [pool.submit(simulate_and_rank, study, number) for number in missing]
        for count, future in enumerate(as_completed(waiting), start=1):
            record = future.result()
            if stream.tell() == 0:
                header = {
                    "study": study,
                    "formulas": formulas(),
                    "preset": PRESET,
                    "quantities": list(record["ranks"]),
                }
                stream.write(json.dumps(header) + "\n")
            record["ranks"] = list(record["ranks"].values())
            stream.write(json.dumps(record, separators=(",", ":")) + "\n")
            stream.flush()
            if count % 10 == 0 or count == len(missing):
                print(f"{study}: {count} of {len(missing)} done", flush=True)


def read_header(path: Path) -> dict[str, Any]:
    """First line of a study's file: the model it belongs to, and what was ranked."""
    with path.open() as stream:
        return dict(json.loads(stream.readline()))


def read_simulations(path: Path) -> list[dict[str, Any]]:
    """All simulations of a study.

    Raises
    ------
    SystemExit
        They are of another model than the one installed.
    """
    found = read_header(path)["formulas"]
    if found != formulas():
        raise SystemExit(
            f"{path} holds ranks under formulas {found}, but those installed are {formulas()}: "
            "delete the file to simulate afresh"
        )
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def summary(path: Path) -> dict[str, Any]:
    """What the ranks of one study say.

    Returns
    -------
    told : dict
        Per quantity the largest ECDF difference and the probability of one as odd under uniform
        ranks; of the study the smallest such probability times the number of quantities.
    """
    header = read_header(path)
    records = sorted(
        (json.loads(line) for line in path.read_text().splitlines()[1:]),
        key=lambda record: record["number"],
    )
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
