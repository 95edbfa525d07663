"""What each part of the forecast of a begun run's end counts, and what it buys.

    python case_studies/real_runs/pool.py FOLDER... [--curves PREDICTIONS] [--out pool.json]

Each run is cut at a tenth, a quarter and a half. The weights of the parts minimise the CRPS over
that of the analogues alone, in shares of the range that a run logged and of the reward's range,
repositories counting by the root of their looks. They are learned again without each fold of
repositories, as is the law of growth, and once without each part. Pooled curves come from the
predictions of `run.py`. In sample are `believed`, the rule for siblings, and the reach of the
analogues. Prints `[pool]` and `[growth]` as a preset needs them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from manifest import write_result  # noqa: E402
from run import CURVE, QUANTILES, Run, first_part, last_tenth, load  # noqa: E402
from trained_tasks import STUDY, runs_of_cells, runs_of_tasks  # noqa: E402

from advisor.forecast import analogues, corpus_for, crps, final_rows, growth, pooled  # noqa: E402
from advisor.forecast.run_in_progress import (  # noqa: E402
    Parts,
    missed_of,
    parts_of,
    rows_of,
    taken_off,
    weights_of,
)
from advisor.model import GrowthLaw, Pool, load_priors  # noqa: E402
from advisor.runs import PilotRun  # noqa: E402

SHARES = (0.1, 0.25, 0.5)
FOLDS = 10
BOOTSTRAPS = 1000
NAMES = ("analogues", "curve", "exponential", "random_walk", "growth")
LEARNED = (*NAMES[1:], "evidence", "take_off")
TAKE_OFFS = np.arange(0.0, 0.55, 0.05)
POINTS = (np.arange(200) + 0.5) / 200
RIDGE = 0.003
CLEAR_RISE = 0.3
"""Share of the reward's range above which a rise is told apart in the scores."""

NEVER = -20.0
"""Log weight of a part that is left out."""

BROAD = (float(np.log(0.01)), 1.5), (2.0, 1.5)
"""Prior of log speed and plateau under which whole runs are fitted: nothing is learned yet."""

MOST_OF_TASK = 15
"""Runs that are asked of a task trained here, drawn by seed."""

LEAST_ROWS, LEAST_RUNS = 8, 3
"""Rewards of a run, and runs of a repository that tell how far its own differ."""


class Look(NamedTuple):
    """A run of which a share is seen."""

    repository: str
    run: str
    share: float
    bounds: tuple[float, float]
    logged: float  # range of the whole run
    unit: float  # and of what is seen
    level: float
    came: float
    parts: Parts
    missed: dict[str, float]
    ahead: float  # `growth_ahead`

    @property
    def is_trained_here(self) -> bool:
        """Whether it is of a language model of ours."""
        return self.repository.startswith(STUDY)

    @property
    def span(self) -> float:
        """Range of the reward."""
        return self.bounds[1] - self.bounds[0]


def kept_rows(file: Path) -> list[dict[str, Any]]:
    """Forecasts of every method that `run.py` kept."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def curves_of(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, float], np.ndarray]:
    """Draws of the pooled curve by run and share seen, from its quantiles."""
    found = {}
    for row in rows:
        if row["method"] == CURVE:
            kept = np.array(row["quantiles"])
            low, high = (4 * kept[0] - kept[1]) / 3, (4 * kept[-1] - kept[-2]) / 3
            ends = np.concatenate([[low], kept, [high]])
            found[row["run"], row["share"]] = np.interp(POINTS, [0.0, *QUANTILES, 1.0], ends)
    return found


def beside_others(
    looks: Sequence[Look], ends: Sequence[np.ndarray], rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """CRPS over that of the best other method on the same runs, repositories drawn again."""
    others: dict[str, dict[tuple[str, float], float]] = {}
    for row in rows:
        if row["method"] != CURVE:
            others.setdefault(row["method"], {})[row["run"], row["share"]] = row["crps"]
    own = np.array(
        [crps(draws, look.came) / look.logged for look, draws in zip(looks, ends, strict=True)]
    )
    places = [(look.run, look.share) for look in looks]
    told = np.array([all(place in of for of in others.values()) for place in places])
    of_others = {
        name: np.array([of.get(place, np.nan) for place in places])[told]
        for name, of in others.items()
    }
    best = min(of_others, key=lambda name: of_others[name].mean())
    names = np.array([look.repository for look in looks])[told]
    each = [
        (own[told][names == one].sum(), of_others[best][names == one].sum())
        for one in np.unique(names)
    ]
    sums, rng = np.array(each), np.random.default_rng(0)
    drawn = sums[rng.integers(0, len(sums), (BOOTSTRAPS, len(sums)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.1, 0.9])
    return {
        "runs": int(told.sum()),
        "repositories": len(sums),
        "advisor": round(float(own[told].mean()), 4),
        "best": best,
        "other": round(float(of_others[best].mean()), 4),
        "methods": len(of_others),
        "ratio": round(float(own[told].mean() / of_others[best].mean()), 3),
        "low": round(float(low), 3),
        "high": round(float(high), 3),
    }


def looks_of(runs: Sequence[Run], curves: Mapping[tuple[str, float], np.ndarray]) -> list[Look]:
    """Every run at every share at which enough of it is seen, then those of tasks trained here."""
    laws = nested_laws(runs)
    found = []
    for name in dict.fromkeys(run.repository for run in runs):
        own = [run for run in runs if run.repository == name]
        corpus = corpus_for([run.pilot for run in own])
        priors = load_priors("theory").model_copy(update={"growth": laws[name]})
        for run in own if corpus else ():
            for look in looks_at(
                name, run.pilot, run.bounds, last_tenth(run.pilot), corpus, priors
            ):
                if (look.run, look.share) in curves:
                    curve = np.quantile(curves[look.run, look.share], POINTS)
                    look.parts["curve"] = curve
                found.append(look)
        print(f"{name}: {len(own)} runs", file=sys.stderr)
    priors = load_priors("theory").model_copy(update={"growth": laws[""]})
    rng = np.random.default_rng(0)
    for name, members in (runs_of_tasks() | runs_of_cells()).items():
        corpus = analogues.shipped_corpus().without([analogues.mark_of(run) for run in members])
        for place in sorted(rng.permutation(len(members))[:MOST_OF_TASK]):
            run = members[place]
            found += looks_at(name, run, (0.0, 1.0), run.step[final_rows(run)], corpus, priors)
        print(f"{name}: {len(members)} runs", file=sys.stderr)
    return found


def looks_at(
    name: str, run: PilotRun, bounds: tuple[float, float], end: Any, corpus: Any, priors: Any
) -> list[Look]:
    """One run at every share at which enough of it is seen."""
    came, found = float(run.reward[final_rows(run)].mean()), []
    for share in SHARES:
        part = first_part(run, share)
        seen = part.reward[np.isfinite(part.reward)]
        if seen.size < part.LEAST_REWARDS:
            continue
        parts = parts_of(part, end, corpus, bounds, (), priors)
        kept = {of: np.quantile(draws, POINTS) for of, draws in parts.items()}
        level, logged = float(seen[-max(1, seen.size // 3) :].mean()), float(np.ptp(run.reward))
        unit = max(float(np.ptp(seen)), 1e-9 * max(1.0, float(np.abs(seen).max())))
        missed = missed_of(part, corpus, bounds, (), priors)
        place = (name, run.id, share, bounds, max(logged, 1e-3), unit, level, came)
        share_now = (level - bounds[0]) / (bounds[1] - bounds[0])
        ahead = growth.growth_ahead(part, share_now, float(np.max(end)))
        found.append(Look(*place, kept, missed, ahead))
    return found


def nested_laws(runs: Sequence[Run]) -> dict[str, GrowthLaw]:
    """Law of growth for each repository, learned without it; under an empty name that of all."""
    fits: dict[str, list[np.ndarray]] = {}
    for run in runs:
        if np.isfinite(run.pilot.reward).sum() >= LEAST_ROWS:
            own = growth.fitted(rows_of(run.pilot, run.bounds), *BROAD)[0][1:]
            fits.setdefault(run.repository, []).append(own)
    return {
        name: law_of({other: of for other, of in fits.items() if other != name})
        for name in (*{run.repository for run in runs}, "")
    }


def law_of(fits: Mapping[str, Sequence[np.ndarray]]) -> GrowthLaw:
    """Between repositories and within one, large ones counting for less than their number."""
    every = np.concatenate([np.array(of) for of in fits.values()])
    weight = np.concatenate([np.full(len(of), len(of) ** -0.5) for of in fits.values()])
    middle = np.average(every, axis=0, weights=weight)
    between = np.sqrt(np.average((every - middle) ** 2, axis=0, weights=weight))
    many = [np.std(of, axis=0) for of in fits.values() if len(of) >= LEAST_RUNS]
    within = np.median(many, axis=0)
    values = {
        f"{name}{part}": float(f"{of[place]:.3g}")
        for place, name in enumerate(("log_speed", "plateau"))
        for part, of in (("", middle), ("_spread", between), ("_within", within))
    }
    return load_priors("theory").growth.model_copy(update=values)


class Quadratic(NamedTuple):
    """What the CRPS of a pool is made of: it is quadratic in the weights."""

    error: np.ndarray  # (looks, parts), mean distance of a part's draws from what came
    apart: np.ndarray  # (looks, parts, parts), and from those of another
    fixed: np.ndarray  # (looks, parts), weight without what is learned; 0 where a part lacks
    missed: np.ndarray  # (looks, parts)
    unit: np.ndarray  # (looks, 2), ranges over the analogues' mean CRPS at that share
    counts: np.ndarray  # (looks,)

    @classmethod
    def of(cls, looks: Sequence[Look], rule: Pool) -> Quadratic:
        """Of looks, in their order."""
        errors, aparts, fixed, missed = [], [], [], []
        even = rule.model_copy(update={**dict.fromkeys(NAMES[1:], 1.0), "evidence": 0.0})
        for look in looks:
            own = np.stack([look.parts.get(name, look.parts["analogues"]) for name in NAMES])
            own = np.clip(own, *look.bounds)
            errors.append(np.abs(own - look.came).mean(axis=1))
            aparts.append(np.abs(own[:, None, :, None] - own[None, :, None, :]).mean(axis=(2, 3)))
            weights = weights_of(look.parts, {}, look.unit, even)
            fixed.append([weights.get(name, 0.0) for name in NAMES])
            missed.append([look.missed.get(name, 1.0) for name in NAMES])
        error, apart = np.array(errors), np.array(aparts)
        alone = error[:, 0] - 0.5 * apart[:, 0, 0]
        share = np.array([look.share for look in looks])
        units = []
        for span in ([look.logged for look in looks], [look.span for look in looks]):
            own = np.array(span)
            usual = np.array([(alone / own)[share == one].mean() for one in share])
            units.append(own * usual)
        names = np.array([look.repository for look in looks])
        counts = np.array([(names == name).sum() ** -0.5 for name in names])
        return cls(error, apart, np.array(fixed), np.array(missed), np.stack(units, axis=1), counts)

    def objective(self, theta: np.ndarray, kept: np.ndarray) -> float:
        """Mean score of some looks at log weights and evidence."""
        log_weights = np.concatenate([[0.0], theta[:-1]]) - theta[-1] * self.missed[kept]
        weights = self.fixed[kept] * np.exp(log_weights)
        weights /= weights.sum(axis=1, keepdims=True)
        between = np.einsum("li,lij,lj->l", weights, self.apart[kept], weights)
        scores = (weights * self.error[kept]).sum(axis=1) - 0.5 * between
        return float(
            np.average((scores[:, None] / self.unit[kept]).mean(axis=1), weights=self.counts[kept])
        )


def learned(
    looks: Sequence[Look], quadratic: Quadratic, kept: np.ndarray, rule: Pool, without: str = ""
) -> dict[str, float]:
    """What a pool learns from some looks."""
    weights = learned_weights(quadratic, kept, without)
    if without == "take_off":
        return weights | {"take_off": 0.0}
    places = np.flatnonzero(kept)
    plain = rule.model_copy(update=weights | {"take_off": 0.0})
    ends = [ends_of(looks[at], plain) for at in places]

    def score(take_off: float) -> float:
        missed = [
            crps(further(look, draws, take_off), look.came)
            for look, draws in zip((looks[at] for at in places), ends, strict=True)
        ]
        scores = (np.array(missed)[:, None] / quadratic.unit[places]).mean(axis=1)
        return float(np.average(scores, weights=quadratic.counts[places])) + RIDGE * take_off**2

    return weights | {"take_off": float(min(TAKE_OFFS, key=score))}


def learned_weights(quadratic: Quadratic, kept: np.ndarray, without: str) -> dict[str, float]:
    """Weights over that of the analogues and the evidence."""
    from scipy.optimize import minimize

    ends = [(-3.0, 3.0)] * 4 + [(0.0, 10.0)]
    if without in LEARNED[:-1]:
        place = LEARNED.index(without)
        ends[place] = (0.0, 0.0) if without == "evidence" else (NEVER, NEVER)

    def penalised(theta: np.ndarray) -> float:
        free = np.where(theta > NEVER, theta, 0.0)
        return quadratic.objective(theta, kept) + RIDGE * float(free @ free)

    start = np.array([low if low == high else 0.0 for low, high in ends])
    found = minimize(penalised, start, bounds=ends, method="L-BFGS-B").x
    values = [*np.exp(found[:-1]), found[-1]]
    return {name: float(f"{value:.3g}") for name, value in zip(LEARNED, values, strict=False)}


def ends_of(look: Look, rule: Pool) -> np.ndarray:
    """Draws of the end, as `watch` pools them for a run without siblings."""
    weights = weights_of(look.parts, look.missed, look.unit, rule)
    ends = pooled([(look.parts[name], weight) for name, weight in weights.items()])
    lacks = float(np.median(look.parts["random_walk"]) - ends[ends.size // 2])
    return further(look, ends + max(lacks, 0.0), rule.take_off)


def further(look: Look, draws: np.ndarray, take_off: float) -> np.ndarray:
    """Draws within the bounds, as far off as a run that may take off ends."""
    return np.clip(taken_off(draws, take_off * look.ahead, look.bounds), *look.bounds)


def scores(looks: Sequence[Look], ends: Sequence[np.ndarray]) -> dict[str, Any]:
    """CRPS in shares of the range logged and of the reward's, cover, and the same of rises."""
    rows = []
    for look, draws in zip(looks, ends, strict=True):
        low, middle, high = np.quantile(draws, [0.1, 0.5, 0.9])
        miss = crps(draws, look.came)
        rose = look.came - look.level > CLEAR_RISE * look.span
        holds = low <= look.came <= high
        rows.append(
            (miss / look.logged, miss / look.span, holds, rose, (look.came - middle) / look.span)
        )
    logged, of_range, holds, rose, off = np.array(rows, dtype=float).T
    names, clear = np.array([look.repository for look in looks]), rose > 0
    by_repository = [logged[names == name].mean() for name in np.unique(names)]
    return {
        "crps": round(float(logged.mean()), 4),
        "crps by repository": round(float(np.mean(by_repository)), 4),
        "crps of the reward's range": round(float(of_range.mean()), 4),
        "held": round(float(holds.mean()), 3),
        "rises": int(clear.sum()),
        "rises held": round(float(holds[clear].mean()), 3),
        "rises bias": round(float(off[clear].mean()), 3),
    }


def write_predictions(
    out: Path,
    looks: Sequence[Look],
    ends: Mapping[int, np.ndarray],
    folders: Mapping[str, set[str]],
) -> None:
    """Write quantiles and outcome of every look beside the result."""
    lines = []
    for at, look in enumerate(looks):
        quantiles = [float(f"{value:.6g}") for value in np.quantile(ends[at], QUANTILES)]
        folder = next(name for name, ids in folders.items() if look.run in ids)
        place = {"folder": folder, "repository": look.repository, "run": look.run}
        told = {"share": look.share, "quantiles": quantiles, "target": look.came}
        lines.append(json.dumps(place | told) + "\n")
    packed = gzip.compress("".join(lines).encode(), mtime=0)
    out.with_suffix(".predictions.jsonl.gz").write_bytes(packed)


def main() -> None:
    """Learn, score nested, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    kept = HERE / "real_runs.predictions.jsonl.gz"
    parser.add_argument("--curves", type=Path, default=kept)
    parser.add_argument("--out", type=Path, default=HERE / "pool.json")
    asked = parser.parse_args()
    runs = load(asked.folders)[0]
    kept_before = kept_rows(asked.curves)
    folders = {one.name: {run.pilot.id for run in load([one])[0]} for one in asked.folders}
    looks = looks_of(runs, curves_of(kept_before))
    shipped = load_priors("theory").pool
    quadratic = Quadratic.of(looks, shipped)
    names = sorted({look.repository for look in looks})
    order = np.random.default_rng(0).permutation(len(names)) % FOLDS
    fold = np.array([order[names.index(look.repository)] for look in looks])
    every = np.ones(len(looks), dtype=bool)
    document: dict[str, Any] = {"looks": len(looks), "repositories": len(names)}
    for without in ("", *LEARNED):
        ends: dict[int, np.ndarray] = {}
        for one in range(FOLDS):
            rule = shipped.model_copy(
                update=learned(looks, quadratic, fold != one, shipped, without)
            )
            ends |= {at: ends_of(looks[at], rule) for at in np.flatnonzero(fold == one)}
        own = {"weights": learned(looks, quadratic, every, shipped, without)}
        for share in SHARES:
            here = [place for place, look in enumerate(looks) if look.share == share]
            at = [place for place in here if not looks[place].is_trained_here]
            others = [place for place in here if looks[place].is_trained_here]
            ours = scores([looks[i] for i in others], [ends[i] for i in others])
            asked_now = [looks[i] for i in at], [ends[i] for i in at]
            own[f"{share:g}"] = scores(*asked_now) | {"tasks trained here": ours}
            if not without:
                own[f"{share:g}"]["over the best other"] = beside_others(*asked_now, kept_before)
                own[f"{share:g}"]["by folder"] = {
                    name: beside_others(
                        [look for look in asked_now[0] if look.run in ids],
                        [one for look, one in zip(*asked_now, strict=True) if look.run in ids],
                        kept_before,
                    )
                    for name, ids in folders.items()
                }
        if not without:
            public = [look for look in looks if not look.is_trained_here]
            write_predictions(asked.out, public, ends, folders)
        document[f"without {without}" if without else "nested"] = own
        print(without or "all parts", own, flush=True)
    for share in SHARES:
        at = [look for look in looks if look.share == share and not look.is_trained_here]
        alone = [np.clip(look.parts["analogues"], *look.bounds) for look in at]
        document.setdefault("analogues alone", {})[f"{share:g}"] = scores(at, alone)
    document["growth"] = nested_laws(runs)[""].model_dump(exclude={"source"})
    write_result(asked.out, document, Path(__file__), [asked.curves])
    for entry in (document["nested"]["weights"], document["growth"]):
        print("".join(f"{name} = {value}\n" for name, value in entry.items()))


if __name__ == "__main__":
    main()
