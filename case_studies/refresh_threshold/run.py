"""Does the refresh threshold show in a network? Uncorrected GRPO through the predicted limit.

python case_studies/refresh_threshold/run.py [--jobs 1]       # forty minutes of one core
python case_studies/refresh_threshold/run.py --quick --out quick.json

Pilots are on policy (K = 1) and say nothing of staleness; from them alone the posterior tells how
likely the refresh map is to diverge at K steps per refresh, or at a lag, without an importance
ratio. Then such runs are made, and the same with the ratio, under AdamW and under SGD with
momentum. Finished runs are kept in .cache.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tiny_transformer")]

from engine_flags import add_engine_flags, on_engine  # noqa: E402
from manifest import manifest  # noqa: E402
from plan import QUICK, SETUPS, Setup  # noqa: E402
from pretrain import pretrain  # noqa: E402
from table import TASKS, train_row, trained_rows  # noqa: E402
from verdict import Rows, cells_of, posterior_of, reliability  # noqa: E402

from advisor.model import Sampling  # noqa: E402

HASTY = 30
"""Steps of pre-training for ``--quick``, of which nothing is kept."""


def _is_stale(cell: dict[str, Any]) -> bool:
    return (cell["interval"], cell["lag"]) != (1, 0)


def studied(setup: Setup, rows: Rows, seeds: int, sampling: Sampling) -> dict[str, Any]:
    """All that the result says of one setup."""
    posterior = posterior_of(setup, rows, sampling)
    cells = cells_of(setup, posterior, rows, seeds)
    uncorrected = [cell for cell in cells if not cell["importance_ratio"]]
    stale = [cell for cell in uncorrected if _is_stale(cell)]
    return {
        "name": setup.name,
        "optimizer": setup.optimizer,
        "task": setup.task,
        "size": setup.size,
        "steps": setup.steps,
        "pilots": len(setup.pilots()),
        "without_ratio": {"p_diverges": reliability(stale)},
        "with_ratio": reliability(
            [c for c in cells if c["importance_ratio"] and c["clipped"] and _is_stale(c)]
        ),
        "cells": cells,
    }


def checks(found: list[dict[str, Any]]) -> dict[str, bool]:
    """What the README claims."""
    beats: dict[str, list[bool]] = {"adamw": [], "sgd": []}
    for s in found:
        score = s["without_ratio"]["p_diverges"]
        beats[s["optimizer"]].append(score["brier"] < score["brier_of_the_share"])
    corrected = [c for s in found for c in s["cells"] if c["importance_ratio"] and _is_stale(c)]
    unclipped = [c for c in corrected if not c["clipped"]]
    return {
        "AdamW: forecasts from on-policy pilots beat the share of lost runs": all(beats["adamw"]),
        "SGD: they do not, runs are lost below the limit foretold": not any(beats["sgd"]),
        "with a ratio runs are lost all the same": any(c["lost_a_third"] for c in corrected),
        "clipped or not": any(c["lost_a_third"] for c in unclipped),
    }


def main() -> None:
    """Make pilots and runs, fit the pilots, set forecast beside outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "refresh_threshold.json")
    parser.add_argument("--quick", action="store_true", help="tiny, writes to --out alone")
    add_engine_flags(parser)
    asked = parser.parse_args()
    setups, seeds = (QUICK, 1) if asked.quick else (SETUPS, asked.seeds)
    runs = [run for setup in setups for run in (*setup.pilots(), *setup.sweeps(seeds))]
    if asked.quick:
        made = [train_row(run, pretrain(TASKS[run.task], run.size, HASTY)) for run in runs]
    else:
        made = trained_rows(runs, {**on_engine(asked), "keep": asked.keep or HERE / ".cache"})
    rows = dict(zip(runs, made, strict=True))
    sampling = Sampling(seed=2 if asked.quick else 1)  # the one that needs fewer attempts
    found = [studied(setup, rows, seeds, sampling) for setup in setups]
    checked = manifest(Path(__file__), seeds=seeds, checks=checks(found))
    result = {"setups": found, "manifest": checked}
    asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(checked["checks"], indent=1))


if __name__ == "__main__":
    main()
