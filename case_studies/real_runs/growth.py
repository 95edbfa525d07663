"""What a law of growth adds to forecasts of begun runs, alone and beside whole siblings.

    python case_studies/real_runs/growth.py FOLDER... [--out growth.json]

Each run is cut at a tenth, a quarter and a half, and its end is forecast with and without the
law, its analogues and the prior of the law learned without its repository. Prints what is learned
from all repositories, as `[growth]` of a preset needs it. In sample are the law's weights, its
wander, and the reach of the analogues. Rewards of 0 to 1 are scored apart: elsewhere the ceiling
may be the highest reward of the whole run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from manifest import write_result  # noqa: E402
from run import Run, first_part, load  # noqa: E402
from take_off import SHARES, Look, describe, kind_of, scores  # noqa: E402

from advisor.forecast import (  # noqa: E402
    RewardRows,
    corpus_for,
    end_of_begun_run,
    final_rows,
    final_steps,
    growth,
)
from advisor.model import GrowthLaw, load_priors  # noqa: E402

BROAD = (float(np.log(0.01)), 1.5), (2.0, 1.5)
"""Prior of log speed and plateau under which whole runs are fitted: nothing is learned yet."""

LEAST_ROWS, LEAST_RUNS, MOST_RUNS = 8, 3, 10
"""Rewards of a run, runs of a repository that has siblings, and those of it that are asked."""


def rows_of(run: Run) -> RewardRows:
    """Means of a whole run."""
    own = run.pilot
    return RewardRows.of(own.step, own.reward, run.bounds, own.hyperparameters.group_size)


def learned(fits: Mapping[str, Sequence[np.ndarray]], shipped: GrowthLaw) -> GrowthLaw:
    """Between repositories and within one, large ones counting for less than their number."""
    every = np.concatenate([np.array(of) for of in fits.values()])
    weight = np.concatenate([np.full(len(of), len(of) ** -0.5) for of in fits.values()])
    middle = np.average(every, axis=0, weights=weight)
    between = np.sqrt(np.average((every - middle) ** 2, axis=0, weights=weight))
    many = [np.std(of, axis=0) for of in fits.values() if len(of) >= LEAST_RUNS]
    within = np.median(many, axis=0)
    found = {"log_speed": 0, "plateau": 1}
    values = {
        f"{name}{part}": float(f"{of[place]:.3g}")
        for name, place in found.items()
        for part, of in (("", middle), ("_spread", between), ("_within", within))
    }
    return shipped.model_copy(update=values)


def looks_of(
    run: Run, siblings: Sequence[Run], corpus: Any, laws: Mapping[str, GrowthLaw]
) -> list[dict[str, Any]]:
    """The run at every share at which enough of it is seen, forecast under each law."""
    end, own = float(run.pilot.step[-1]), run.pilot
    came = float(own.reward[final_rows(own)].mean())
    beside = [rows_of(one) for one in siblings]
    found = []
    for share in SHARES:
        part = first_part(own, share)
        known = np.isfinite(part.reward)
        if known.sum() < part.LEAST_REWARDS:
            continue
        seen = describe(part.step[known], part.reward[known], end, kind_of(part))
        steps = final_steps(int(end)).astype(float)
        for name, law in laws.items():
            for pilots in [[], *([beside] if len(beside) > 1 else [])]:
                told = end_of_begun_run(
                    part,
                    steps,
                    corpus=corpus,
                    bounds=run.bounds,
                    pilots=pilots,
                    priors=load_priors("theory").model_copy(update={"growth": law}),
                )
                look = Look(
                    run.repository, own.id, share, run.bounds, seen, np.zeros(0), told.draws, came
                )
                found.append({"look": look, "law": name, "beside": bool(pilots)})
    return found


def main() -> None:
    """Learn, forecast nested, score, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=HERE / "growth.json")
    asked = parser.parse_args()
    shipped = load_priors("theory").growth
    by_repository: dict[str, list[Run]] = {}
    for run in load(asked.folders)[0]:
        if np.isfinite(run.pilot.reward).sum() >= LEAST_ROWS:
            by_repository.setdefault(run.repository, []).append(run)
    fits = {
        name: [growth.fitted(rows_of(run), *BROAD)[0][1:] for run in runs]
        for name, runs in by_repository.items()
    }
    found: list[dict[str, Any]] = []
    for name, runs in by_repository.items():
        own = learned({other: of for other, of in fits.items() if other != name}, shipped)
        nothing = own.model_copy(update={"weight_alone": 0.0, "weight_beside": 0.0})
        corpus = corpus_for([run.pilot for run in runs])
        for run in runs[:MOST_RUNS] if corpus else ():
            siblings = [other for other in runs if other is not run]
            found += looks_of(run, siblings, corpus, {"with": own, "without": nothing})
        print(f"{name}: {len(runs)} runs", file=sys.stderr)
    document: dict[str, Any] = {"repositories": len(fits), "runs": sum(map(len, fits.values()))}
    for share in SHARES:
        for beside in (False, True):
            for is_unit in (True, False):
                part = [
                    one
                    for one in found
                    if (one["look"].share, one["beside"]) == (share, beside)
                    and (one["look"].bounds == (0.0, 1.0)) == is_unit
                ]
                kind = f"{share:g}, {'beside siblings' if beside else 'alone'}"
                kind += f", {'0 to 1' if is_unit else 'other scales'}"
                own = {law: [o["look"] for o in part if o["law"] == law] for law in part_laws(part)}
                document[kind] = {
                    law: {"looks": len(of)} | scores(of, [one.ends for one in of])
                    for law, of in own.items()
                }
                print(kind, document[kind])
    document["learned from all"] = learned(fits, shipped).model_dump(exclude={"source"})
    write_result(asked.out, document, Path(__file__), [])
    print(document["learned from all"])


def part_laws(part: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the laws that were asked."""
    return sorted({one["law"] for one in part})


if __name__ == "__main__":
    main()
