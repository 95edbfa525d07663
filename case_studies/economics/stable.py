"""Is P(stable) right in worlds that shaped nothing? Of every configuration that was not piloted.

    python case_studies/economics/stable.py RECORDS.jsonl[.gz] TABLE.jsonl.gz... [--out stable.json]

with the records that ``run.py --records`` wrote on the same tables. What the model says and what
the preset's line makes of it are set beside what became of the trained runs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import numpy as np  # noqa: E402
from run import LEVEL, Purse, manifest, read_all  # noqa: E402
from scipy.stats import beta  # noqa: E402

from advisor.backtesting.recalibration import learn_line  # noqa: E402
from advisor.forecast.stability import log_update_norm, recalibrated  # noqa: E402
from advisor.model.priors import load_priors  # noqa: E402
from advisor.theory.arrays import FloatArray  # noqa: E402

EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
BOOTSTRAPS = 1000
SURE = 0.95


def main() -> None:
    """Read, score, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("records", type=Path)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    purses = {world.name: Purse(world) for world in read_all(given.tables)}
    opened = gzip.open if given.records.suffix == ".gz" else open
    with opened(given.records, "rt", encoding="utf-8") as text:
        lines = [json.loads(line) for line in text]
    line = load_priors("small_models").stability_line
    model, own, base, lived, worlds, runs = [], [], [], [], [], []
    for record in lines:
        if not record["said"] or record["world"] not in purses:
            continue
        purse = purses[record["world"]]
        left = purse.total - round(record["spent"] * purse.total)
        for key, said in record["said"].items():
            settings = purse.world.settings(int(key))
            norm = log_update_norm(settings.learning_rate, purse.world.target.parameters)
            model.append(said)
            own.append(recalibrated(said, line, norm))
            lived.append(not purse.outcome(int(key), left)[1])
            worlds.append(record["world"])
            runs.append(f"{record['world']} {key}")
    of, came = np.array(worlds), np.array(lived, dtype=float)
    base = np.array([came[of != name].mean() for name in of])
    said = {"model": np.array(model), "line": np.array(own), "base rate of the others": base}
    found: dict[str, Any] = {
        "forecasts": came.size,
        "runs": len(set(runs)),
        "worlds": len(set(worlds)),
        "lived": float(came.mean()),
        "methods": {name: scores(p, came, of) for name, p in said.items()},
        "classes": {name: classes(said[name], came, np.array(runs)) for name in ("model", "line")},
        "advised": advised(lines),
    }
    found["manifest"] = manifest(Path(__file__), seeds=1, checks={}, inputs=given.tables)
    written = json.dumps(found, indent=1)
    if given.out is not None:
        given.out.write_text(written + "\n", encoding="utf-8")
    print(written)


def scores(p: FloatArray, came: FloatArray, of: Any) -> dict[str, Any]:
    """Brier score, its interval by bootstrap of the worlds, and the line on which truth lies."""
    rng = np.random.default_rng(0)
    names = np.unique(of)
    squares = np.array([np.mean((p - came)[of == name] ** 2) for name in names])
    counts = np.array([np.sum(of == name) for name in names])
    picks = rng.integers(0, names.size, (BOOTSTRAPS, names.size))
    draws = (squares[picks] * counts[picks]).sum(axis=1) / counts[picks].sum(axis=1)
    line = learn_line(p, came, np.full(came.size, "all"))
    return {
        "brier": round(float(np.mean((p - came) ** 2)), 4),
        "interval": [round(float(q), 4) for q in np.quantile(draws, [0.1, 0.9])],
        "slope": round(line.slope, 3),
        "intercept": round(line.intercept, 3),
    }


def classes(p: FloatArray, came: FloatArray, runs: Any) -> list[dict[str, Any]]:
    """What lived where so much was said, by forecasts and distinct runs."""
    told = []
    for low, high in pairwise(EDGES):
        inside = (p >= low) & ((p < high) | (high == 1.0))
        if inside.any():
            told.append(
                {
                    "from": low,
                    "to": high,
                    "forecasts": int(inside.sum()),
                    "runs": int(np.unique(runs[inside]).size),
                    "said": round(float(p[inside].mean()), 3),
                    "lived": round(float(came[inside].mean()), 3),
                }
            )
    return told


def advised(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Runs that were advised, each once, at the level asked for and at a higher one."""
    told = {}
    for level in (LEVEL, SURE):
        sure = [one for one in lines if (one["p_stable"] or 0.0) >= level]
        fate = {(one["world"], one["run"]): one["collapsed"] for one in sure}
        died = sum(fate.values())
        told[str(level)] = {
            "pieces": len(sure),
            "runs": len(fate),
            "worlds": len({world for world, _ in fate}),
            "died": died,
            "lived": round(1 - died / len(fate), 4),
            "at_least": round(float(beta.ppf(0.05, len(fate) - died, died + 1)), 4),
        }
    return told


if __name__ == "__main__":
    main()
