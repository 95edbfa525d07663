"""Make the results anew of runs and forecasts that are there: nothing is trained, nothing forecast.

python case_studies/language_model/results.py [cells compared ...]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from manifest import write_result  # noqa: E402
from run_store import TABLES  # noqa: E402

FORECASTS = sorted(HERE.glob("*.predictions.jsonl.gz"))
MADE = {
    "cells": sorted(TABLES.glob("*/*.jsonl.gz")),
    "compared": [HERE / "loop.json", *FORECASTS],
    "equal_completions": sorted(TABLES.glob("*.jsonl.gz")),
    "group_sizes": sorted(TABLES.glob("**/*.jsonl.gz")),
    "live_across": sorted(TABLES.glob("*/*.jsonl.gz")),
    "refresh": sorted(TABLES.glob("*.jsonl.gz")),
    "optimum": FORECASTS,
    "rising": sorted(TABLES.glob("**/*.jsonl.gz")),
    "silent_groups": sorted(TABLES.glob("*.jsonl.gz")),
    "twins": sorted(TABLES.glob("**/*.jsonl.gz")),
}
"""Module of which the function ``result`` makes the file of its name -> what it reads."""


def main() -> None:
    """Make, keep, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"[default: {', '.join(MADE)}]")
    names = parser.parse_args().names or list(MADE)
    if unknown := set(names) - set(MADE):
        parser.error(f"no result is called {', '.join(sorted(unknown))}: {', '.join(MADE)}")
    for name in names:
        document = importlib.import_module(name).result()
        write_result(HERE / f"{name}.json", document, Path(__file__), MADE[name])
        if name == "cells":
            from figures import draw_cells

            draw_cells(document["cells"], HERE / "cells.svg")
        print(name, {key: value for key, value in document.items() if not isinstance(value, list)})


if __name__ == "__main__":
    main()
