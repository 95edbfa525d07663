"""Replay advice on tables of finished runs: what would have come of it.

See README.md. ``python case_studies/replay/run.py TABLE.jsonl...`` prints a table, or JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from advise import LEVEL, advise, fitted, without_pilots
from methods import (
    RECIPES,
    best_extrapolated,
    best_pilot,
    constant,
    halved,
    nearest,
    search_seed,
    searched,
)
from pieces import pieces
from tables import World, read_worlds

sys.path.append(str(Path(__file__).resolve().parents[1]))

from engine_flags import add_engine_flags, on_engine, results

SEED_SPREAD = 0.015
"""Standard deviation between seeds of one configuration's final reward, from
``case_studies/tiny_transformer`` (0.010 to 0.018)."""

FLOOR_DRAWS = 2000


def main() -> None:
    """Parse, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--pilots", type=int, default=8)
    parser.add_argument("--cut", type=int, default=40, help="steps of each pilot")
    parser.add_argument("--repeats", type=int, default=50, help="sets of pilots per table")
    parser.add_argument("--priors", help="preset [default: as the runs are]")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--predictions", type=Path, help="one JSON line per advice")
    parser.add_argument("--seed", type=int, default=0)
    add_engine_flags(parser)
    given = parser.parse_args()
    worlds = read_worlds(given.tables)
    lines = replay(worlds, given)
    if given.predictions is not None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        given.predictions.write_text(text, encoding="utf-8")
    found = summary(worlds, lines, given)
    print(json.dumps(found, indent=1) if given.json else as_text(found))


def replay(worlds: list[World], given: argparse.Namespace) -> list[dict[str, Any]]:
    """Every method on every set of pilots; one record per set."""
    jobs = [
        (number, repeat)
        for repeat in range(given.repeats)
        for number, world in enumerate(worlds)
        if len(world.runs) >= given.pilots
    ]
    return results(_job, pieces(worlds, given, jobs), "Replaying", on_engine(given))


def _job(task: tuple[list[World], argparse.Namespace, tuple[int, int]]) -> dict[str, Any]:
    worlds, given, (number, repeat) = task
    world, others = worlds[number], [w for i, w in enumerate(worlds) if i != number]
    # Seeded as when pilots were also drawn from low rates alone, so that sets stay the same.
    rng = np.random.default_rng([given.seed, number, False, repeat])
    pilots = sorted(rng.choice(len(world.runs), given.pilots, replace=False).tolist())
    posterior = fitted(world, pilots, given.cut, given.priors, repeat)
    candidates = world.candidates()
    named: dict[str, int] = {}
    record: dict[str, Any] = {"table": world.name, "repeat": repeat, "pilots": pilots}
    if isinstance(posterior, str):
        # No number is given where the sampler does not converge: the user is left with the
        # best pilot.
        record["failed"] = posterior
        named["advisor"] = best_pilot(world, candidates, pilots, given.cut)
    else:
        said = advise(world, posterior)
        named |= said.advised
        record |= said._asdict() | {"advised": None}
        empty = without_pilots(world, posterior, repeat)
        named["advisor, no pilots"] = advise(world, empty).advised["advisor"]
    named["best pilot"] = best_pilot(world, candidates, pilots, given.cut)
    named["best extrapolated pilot"] = best_extrapolated(world, candidates, pilots, given.cut)
    if (chosen := constant(world, others, candidates)) is not None:
        named["best constant of the other tables"] = chosen
    for name, recipe in RECIPES.items():
        named[name] = nearest(world, candidates, *recipe)
    seed = search_seed(number, repeat)
    named["Optuna TPE"] = searched(world, candidates, given.pilots, given.cut, seed)
    named["successive halving"] = halved(world, candidates, given.pilots, given.cut, seed)
    return record | {"named": named}


def summary(
    worlds: list[World], lines: list[dict[str, Any]], given: argparse.Namespace
) -> dict[str, Any]:
    """Regret and collapses by table and method."""
    by_name = {world.name: world for world in worlds}
    found: dict[str, dict[str, list[tuple[float, bool]]]] = {}
    for line in lines:
        world = by_name[line["table"]]
        outcomes, dead = world.outcomes(), world.collapsed()
        best = max(outcomes[i] for i in world.candidates())
        for method, index in line["named"].items():
            found.setdefault(world.name, {}).setdefault(method, []).append(
                (float(best - outcomes[index]), bool(dead[index]))
            )
    tables = {
        name: {method: _score(pairs) for method, pairs in methods.items()}
        | {"floor": _floor(by_name[name])}
        for name, methods in found.items()
    }
    methods = dict.fromkeys(m for table in found.values() for m in table)
    pooled: dict[str, Any] = {
        method: _score([pair for table in found.values() for pair in table.get(method, [])])
        for method in methods
    }
    floors = [table["floor"]["regret_mean"] for table in tables.values()]
    pooled["floor"] = {"regret_mean": float(np.mean(floors)) if floors else None}
    failed = sum("failed" in line for line in lines)
    told = {"tables": tables, "pooled": pooled, "not_converged": failed}
    return {"settings": _settings(given), **told}


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "pilots": given.pilots,
        "cut": given.cut,
        "repeats": given.repeats,
        "priors": given.priors,
        "level": LEVEL,
        "seed": given.seed,
        "tables": [path.name for path in given.tables],
    }


def _score(pairs: list[tuple[float, bool]]) -> dict[str, float]:
    regret = np.array([pair[0] for pair in pairs])
    return {
        "regret_mean": float(regret.mean()),
        "regret_p90": float(np.quantile(regret, 0.9)),
        "collapses": int(sum(pair[1] for pair in pairs)),
        "n": len(pairs),
    }


def _floor(world: World) -> dict[str, float]:
    """Regret of who knows every mean but not the luck: the best run is best by luck as well."""
    rng = np.random.default_rng(0)
    means = world.outcomes()[world.candidates()]
    seen = means + SEED_SPREAD * rng.standard_normal((FLOOR_DRAWS, means.size))
    return {"regret_mean": float((seen.max(axis=1) - seen[:, np.argmax(means)]).mean())}


def as_text(found: dict[str, Any]) -> str:
    """A row per method."""
    tables, pooled = found["tables"], found["pooled"]
    lines = ["| method | " + " | ".join([*tables, "pooled"]) + " |"]
    lines.append("|---" * (len(tables) + 2) + "|")
    for method, score in pooled.items():
        cells = [*(_cell(table.get(method)) for table in tables.values()), _cell(score)]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    lines += ["", "Mean regret (90th percentile; collapses of n)."]
    lines.append(f"Fits that did not converge: {found['not_converged']}.")
    return "\n".join(lines)


def _cell(score: dict[str, float] | None) -> str:
    if score is None or score["regret_mean"] is None:
        return ""
    if "regret_p90" not in score:
        return f"{score['regret_mean']:.3f}"
    return (
        f"{score['regret_mean']:.3f} ({score['regret_p90']:.3f}; "
        f"{score['collapses']} of {score['n']})"
    )


if __name__ == "__main__":
    main()
