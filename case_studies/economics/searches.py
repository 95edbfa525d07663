"""Optuna's searches on the purses of `run.py`: TPE, a Gaussian process, Hyperband.

    python case_studies/economics/searches.py TABLE.jsonl[.gz]... [--out searches.json]

The Gaussian process needs PyTorch. Nothing of the advisor is run.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import optuna
from run import COUNTS, Pilots, Purse, all_runs, read_all
from trials import hyperband

HERE = Path(__file__).resolve().parent

from manifest import manifest  # noqa: E402
from methods import search_seed, searched  # noqa: E402
from run import summary as summed  # noqa: E402

DRAWS = 5
"""Of chance in every world: one seed for all worlds would be one draw."""


def study(purse: Purse, number: int) -> list[dict[str, Any]]:
    """All searches in one world."""
    warnings.simplefilter("ignore")
    best, records = purse.best(), []
    for count, draw in product(COUNTS[1:], range(DRAWS)):
        steps, seed = purse.shared(count), search_seed(number, draw)

        def by(sampler: str, steps: int = steps, count: int = count, seed: int = seed) -> int:
            return searched(purse.world, all_runs(purse), count, steps, sampler, seed)

        found = {
            name: (index, Pilots({index: steps, -1: steps * (count - 1)}))
            for name, index in (("Optuna TPE", by("tpe")), ("Optuna GP", by("gp")))
        }
        found["Hyperband"] = hyperband(purse, count, seed)
        for method, (index, pilots) in found.items():
            reward, fell = purse.outcome(index, pilots)
            records.append(
                {
                    "world": purse.world.name,
                    "method": method,
                    "pilots": count,
                    "spent": pilots.cost / purse.total,
                    "run": index,
                    "regret": best - reward,
                    "collapsed": fell,
                    "p_stable": None,
                }
            )
    return records


def main() -> None:
    """Search every world, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "searches.json")
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    purses = [Purse(world) for world in read_all(given.tables)]
    done = [record for number, purse in enumerate(purses) for record in study(purse, number)]
    told = summed(done)
    del told["guard"], told["differences"]
    told["manifest"] = manifest(Path(__file__), seeds=DRAWS, checks={}, inputs=given.tables)
    given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    for method, row in told["methods"].items():
        print(method, row["regret_mean"], row["regret_p90"], row["collapsed"], row["spent"])


if __name__ == "__main__":
    main()
