"""How often begun runs still rise by a quarter of the range, and what a tail for it gains.

    python case_studies/real_runs/take_off.py FOLDER... [--out take_off.json]

Each run is cut at a tenth, a quarter and a half, and its end is forecast from its own rows and
the analogues of other repositories, with and without the tail. The log-odds of a rise are learned
again without the repository that is asked about. Prints what is learned from all of them, as
`[take_off]` of a preset needs it. In sample are the rise of 0.25, the terms, the trust,
and the reach of the analogues.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from manifest import write_result  # noqa: E402
from run import Run, first_part, load  # noqa: E402

from advisor.backtesting.scores import crps  # noqa: E402
from advisor.forecast import corpus_for, end_of_begun_run, final_rows, final_steps  # noqa: E402
from advisor.forecast.analogues import describe, kind_of  # noqa: E402
from advisor.forecast.take_off import RISE, TERMS, take_off_terms, with_take_off  # noqa: E402
from advisor.model import TakeOff, load_priors  # noqa: E402

SHARES = (0.1, 0.25, 0.5)
RIDGE = 1.0
"""On standardised terms, repositories counting alike."""

CLEAR_RISE = 0.3
"""Share of the range above which a rise is told apart in the scores."""


class Look(NamedTuple):
    """A run of which a share is seen."""

    repository: str
    run: str
    share: float
    bounds: tuple[float, float]
    seen: Any
    terms: np.ndarray
    ends: np.ndarray  # draws without the tail, in order
    came: float


def looks_of(runs: Sequence[Run]) -> list[Look]:
    """Every run at every share at which enough of it is seen."""
    shipped = load_priors("theory")
    never = shipped.take_off.model_copy(update={"trust": 0.0})
    priors = shipped.model_copy(update={"take_off": never})
    found = []
    for run in runs:
        own = [other.pilot for other in runs if other.repository == run.repository]
        corpus = corpus_for(own)
        end = float(run.pilot.step[-1])
        came = float(run.pilot.reward[final_rows(run.pilot)].mean())
        for share in SHARES:
            part = first_part(run.pilot, share)
            known = np.isfinite(part.reward)
            if corpus is None or known.sum() < part.LEAST_REWARDS:
                continue
            steps = final_steps(int(end)).astype(float)
            told = end_of_begun_run(part, steps, corpus=corpus, bounds=run.bounds, priors=priors)
            seen = describe(part.step[known], part.reward[known], end, kind_of(part))
            terms = take_off_terms(seen, run.bounds)
            place = (run.repository, run.pilot.id, share, run.bounds)
            found.append(Look(*place, seen, terms, told.draws, came))
    return found


def rose(look: Look, by: float) -> bool:
    """Whether the end of a run lies so much of the range above where it stood."""
    return look.came - look.seen.level > by * (look.bounds[1] - look.bounds[0])


def learned(looks: Sequence[Look]) -> np.ndarray:
    """Log-odds of a rise per term, shape (9,), by a ridge in which repositories count alike."""
    from scipy.optimize import minimize

    terms = np.stack([look.terms for look in looks])
    risen = np.array([rose(look, RISE) for look in looks], dtype=float)
    names, place = np.unique([look.repository for look in looks], return_inverse=True)
    weight = 1 / np.bincount(place, minlength=names.size)[place]
    weight /= weight.mean()
    middle, spread = terms.mean(0), terms.std(0)
    middle[0], spread[0] = 0.0, 1.0
    scaled = (terms - middle) / spread

    def misfit(odds: np.ndarray) -> tuple[float, np.ndarray]:
        said = scaled @ odds
        slope = scaled.T @ (weight * (risen - 0.5 - 0.5 * np.tanh(said / 2)))
        ridge = np.concatenate([[0.0], odds[1:]])
        likelihood = float((weight * (risen * said - np.logaddexp(0, said))).sum())
        return RIDGE * float(ridge @ ridge) - likelihood, 2 * RIDGE * ridge - slope

    odds = minimize(misfit, np.zeros(terms.shape[1]), jac=True).x / spread
    odds[0] -= float(odds[1:] @ middle[1:])
    return np.asarray(odds)


def rule_of(odds: np.ndarray) -> TakeOff:
    """The same as an entry of a preset."""
    trust = load_priors("theory").take_off.trust
    values = {name: float(f"{value:.3g}") for name, value in zip(TERMS, odds, strict=True)}
    return TakeOff(**values, trust=trust, source="case_studies/real_runs/take_off.py")


def scores(looks: Sequence[Look], ends: Sequence[np.ndarray]) -> dict[str, Any]:
    """CRPS by run and by repository, cover of 80 % intervals, and the same of clear rises."""
    rows = []
    for look, own in zip(looks, ends, strict=True):
        floor, span = look.bounds[0], look.bounds[1] - look.bounds[0]
        draws, came = (own - floor) / span, (look.came - floor) / span
        low, middle, high = np.quantile(draws, [0.1, 0.5, 0.9])
        rows.append((crps(draws, came), low <= came <= high, came - middle))
    score, held, bias = np.array(rows, dtype=float).T
    names = np.array([look.repository for look in looks])
    by_repository = [score[names == name].mean() for name in np.unique(names)]
    clear = np.array([rose(look, CLEAR_RISE) for look in looks])
    return {
        "crps": round(float(score.mean()), 4),
        "crps by repository": round(float(np.mean(by_repository)), 4),
        "held": round(float(held.mean()), 3),
        "rises": {
            "runs": int(clear.sum()),
            "crps": round(float(score[clear].mean()), 3),
            "bias": round(float(bias[clear].mean()), 3),
            "held": round(float(held[clear].mean()), 3),
        },
    }


def main() -> None:
    """Learn, score nested, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=HERE / "take_off.json")
    asked = parser.parse_args()
    looks = looks_of(load(asked.folders)[0])
    nested = {
        name: rule_of(learned([look for look in looks if look.repository != name]))
        for name in {look.repository for look in looks}
    }
    found: dict[str, Any] = {"looks": len(looks), "repositories": len(nested)}
    for share in SHARES:
        own = [look for look in looks if look.share == share]
        tailed = [
            with_take_off(look.ends, look.seen, look.bounds, nested[look.repository])
            for look in own
        ]
        found[f"{share:g}"] = {
            "without": scores(own, [look.ends for look in own]),
            "with": scores(own, tailed),
        }
        print(share, found[f"{share:g}"])
    rule = rule_of(learned(looks))
    found["learned from all"] = rule.model_dump(exclude={"source"})
    write_result(asked.out, found, Path(__file__), [])
    for name, value in found["learned from all"].items():
        print(f"{name} = {value}")


if __name__ == "__main__":
    main()
