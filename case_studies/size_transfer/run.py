"""Advice for a model 4 and 22 times as large as any that was piloted.

python case_studies/size_transfer/run.py      # a quarter of an hour on two cores; resumable

Sorting. Pilots of 40 steps on the small model, and on the small and the middle one; advice for the
large one (600 k parameters), where five learning rates are really trained at group size 16, K = 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "closed_loop"))

import numpy as np  # noqa: E402
import run as loop  # noqa: E402
import torch  # noqa: E402

from advisor.advice import recommend  # noqa: E402
from advisor.advice.cost import CostModel  # noqa: E402
from advisor.diagnosis import diagnose  # noqa: E402
from advisor.posterior import Target  # noqa: E402

TASK, LARGE = "sort", "l"
RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
CHOICES = [(rate, 16, 1) for rate in RATES]


def outcome(rate: float) -> dict[str, Any]:
    """Full run of the large model."""
    torch.set_num_threads(1)
    run = loop.trained(TASK, LARGE, (rate, 16, 1), 0, loop.STEPS)
    fallen = diagnose(loop.as_runs([run])[0]).collapse_step
    return {
        "learning_rate": rate,
        "final": run.final,
        "collapse_step": fallen,
        "seconds": run.seconds,
        "parameters": run.row["params"],
    }


def pilots(sizes: tuple[str, ...], seed: int) -> list[loop.Trained]:
    """Eight pilots, shared out among the sizes."""
    places = random.Random(f"{TASK} {seed}").sample(loop.PILOT_GRID, loop.PILOTS)
    return [
        loop.trained(TASK, sizes[at % len(sizes)], place, 100 + seed, loop.CUT)
        for at, place in enumerate(places)
    ]


def advised(sizes: tuple[str, ...], seed: int, parameters: float) -> dict[str, Any]:
    """Advice for the large model, and what it rests on."""
    rows = pilots(sizes, seed)
    posterior = loop.fitted(loop.as_runs(rows), seed)
    if posterior is None:
        return {"sizes": sizes, "seed": seed, "learning_rate": None}
    found = recommend(
        posterior,
        target=Target(TASK, f"tiny-{LARGE}", parameters),
        steps=loop.STEPS,
        choose_from=[loop.settings(place) for place in CHOICES],
        indifference=0.0,
        weigh_pilots=True,
        cost=CostModel(source="not asked"),
        trials=len(CHOICES),
    )
    exponent = np.quantile(posterior.flat("curvature_exponent"), [0.1, 0.5, 0.9])
    return {
        "sizes": sizes,
        "seed": seed,
        "learning_rate": found.settings.learning_rate,
        "kind": found.kind,
        "p_stable": found.stability.probability,
        "reward": found.reward.model_dump(),
        "outside": found.outside,
        "cautions": list(found.cautions),
        "curvature_exponent": exponent.round(3).tolist(),
        "best_pilot_rate": float(
            rows[int(np.argmax([row.seen for row in rows]))].row["lr"]
        ),
    }  # fmt: skip


def main() -> None:
    """Train the large model, ask, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "size_transfer.json")
    asked = parser.parse_args()
    loop.pretrain(loop.TASKS[TASK], LARGE)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as executor:
        runs = list(executor.map(outcome, RATES))
    parameters = float(runs[0]["parameters"])
    final = {run["learning_rate"]: run["final"] for run in runs}
    told = []
    for sizes in (("s",), ("s", "m")):
        for seed in range(1, asked.seeds + 1):
            one = advised(sizes, seed, parameters)
            if one["learning_rate"] is not None:
                one["final"] = final[one["learning_rate"]]
                one["regret"] = max(final.values()) - one["final"]
                nearest = min(RATES, key=lambda r: abs(np.log(r / one["best_pilot_rate"])))
                one["regret_of_best_pilot"] = max(final.values()) - final[nearest]
            told.append(one)
    result = {"runs": runs, "advice": told}
    asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for row in (*runs, *told):
        print(row)


if __name__ == "__main__":
    main()
