"""Does every fit converge? Five seeds on the demo, the seed replicates and cohorts of any tables.

Usage: python case_studies/convergence/run.py [TABLE.jsonl ...] [--seeds 5] [--seen 0.25]

Cohorts of a table are those of the backtest: ten runs each, of which a share is seen.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from advisor.backtesting.cases import make_cases
from advisor.errors import NotConvergedError
from advisor.forecast.fitting import fit
from advisor.model.compat import versions
from advisor.model.sampling import Sampling
from advisor.runs.logs import demo_folder, read_runs
from advisor.runs.pilot_run import PilotRun

HERE = Path(__file__).parent
PRESET = "small_models"


def cohorts(tables: Sequence[Path], seen: float) -> Iterator[tuple[str, list[PilotRun]]]:
    """Name and runs of every cohort."""
    yield "demo", read_runs([demo_folder()])
    yield "seed replicates", read_runs([HERE.parent / "tiny_transformer" / "seeds"])
    for table in tables:
        for cohort in make_cases(read_runs([table]), seen)[0]:
            yield f"{table.stem}: {cohort.name}", [case.seen for case in cohort.cases]


def judged(runs: list[PilotRun], seed: int) -> dict[str, Any]:
    """Convergence of one fit, and how often it had to sample again."""
    settings, started = Sampling(seed=seed), time.perf_counter()
    stages: list[str] = []
    try:
        found = fit(
            runs,
            priors=PRESET,
            sampling=settings,
            progress=lambda stage, share, detail: stages.append(f"{stage}: {detail}"),
        )
    except NotConvergedError as error:
        return {"converged": False, "said": str(error)}
    figures = found.convergence
    again = list(dict.fromkeys(s for s in stages if s.startswith("Sampling again")))
    return {
        "converged": True,
        "rhat": figures.rhat,
        "ess": figures.ess,
        "divergent": round(figures.divergent_share * figures.draws),
        "draws": figures.draws,
        "again": again,
        "seconds": time.perf_counter() - started,
    }


def main() -> None:
    """Fit every cohort with every seed and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seen", type=float, default=0.25)
    parser.add_argument("--out", type=Path, default=HERE / "convergence.json")
    chosen = parser.parse_args()
    found: dict[str, Any] = {"versions": versions(), "cohorts": {}}
    for name, runs in cohorts(chosen.tables, chosen.seen):
        fits = [judged(runs, seed) for seed in range(1, chosen.seeds + 1)]
        found["cohorts"][name] = fits
        passed = [one for one in fits if one["converged"]]
        print(
            f"{name}: {len(passed)} of {len(fits)} converged, R-hat up to "
            f"{max((one['rhat'] for one in passed), default=0):.4f}, ESS from "
            f"{min((one['ess'] for one in passed), default=0):.0f}, "
            f"{sum(one['divergent'] for one in passed)} divergent, "
            f"{sum(bool(one['again']) for one in passed)} sampled again",
            flush=True,
        )
        chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
