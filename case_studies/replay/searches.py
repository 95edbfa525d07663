"""Searches of `run.py` with many draws of chance a table: one seed for all tables is one draw.

python case_studies/replay/searches.py TABLE.jsonl... [--pilots 8] [--cut 40] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from manifest import manifest  # noqa: E402
from methods import halved, search_seed, searched  # noqa: E402
from tables import read_worlds  # noqa: E402

DRAWS = 10


def main() -> None:
    """Search every table, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--pilots", type=int, default=8)
    parser.add_argument("--cut", type=int, default=40, help="steps of each pilot")
    parser.add_argument("--out", type=Path, default=HERE / "searches.json")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    regrets: dict[str, dict[str, list[float]]] = {"Optuna TPE": {}, "successive halving": {}}
    collapsed = dict.fromkeys(regrets, 0)
    for number, world in enumerate(read_worlds(given.tables)):
        candidates, ends = world.candidates(), world.outcomes()
        dead, best = world.collapsed(), max(ends[i] for i in candidates)
        for draw in range(DRAWS):
            seed = search_seed(number, draw)
            named = {
                "Optuna TPE": searched(world, candidates, given.pilots, given.cut, seed),
                "successive halving": halved(world, candidates, given.pilots, given.cut, seed),
            }
            for method, index in named.items():
                regrets[method].setdefault(world.name, []).append(float(best - ends[index]))
                collapsed[method] += bool(dead[index])
    told = {
        method: {
            "regret_mean": round(float(np.mean([np.mean(one) for one in own.values()])), 4),
            "regret_p90": round(float(np.quantile(np.concatenate(list(own.values())), 0.9)), 4),
            "collapses": collapsed[method],
            "n": DRAWS * len(own),
            "tables": {name: round(float(np.mean(one)), 4) for name, one in own.items()},
        }
        for method, own in regrets.items()
    }
    document = {
        "pooled": told,
        "manifest": manifest(Path(__file__), seeds=DRAWS, checks={}, inputs=given.tables),
    }
    given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for method, row in told.items():
        print(method, row["regret_mean"], row["regret_p90"], row["collapses"], row["n"])


if __name__ == "__main__":
    main()
