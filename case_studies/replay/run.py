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
from tables import SCENARIOS, World, read_worlds

from advisor.model import NormalPrior, load_priors

sys.path.append(str(Path(__file__).resolve().parents[1]))

from engine_flags import add_engine_flags, on_engine, results

SEED_SPREAD = 0.015
"""Standard deviation between seeds of one configuration's final reward, from
``case_studies/tiny_transformer`` (0.010 to 0.018)."""

FLOOR_DRAWS = 2000

THEORY = {"rate_learning_rate": 1.0, "rate_group_size": 0.0, "rate_prompts_per_step": 0.0}
"""Exponents of arXiv:2606.30789, where they are not learned: the rate goes with the learning rate
and is the same for every group size."""


def main() -> None:
    """Parse, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--pilots", type=int, default=8)
    parser.add_argument("--cut", type=int, default=40, help="steps of each pilot")
    parser.add_argument("--repeats", type=int, default=50, help="sets of pilots per table")
    parser.add_argument("--priors", help="preset [default: as the runs are]")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all learning rates")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="repeat; [all]")
    parser.add_argument(
        "--slow", action="store_true", help="also Optuna's GP, and fits with fixed exponents"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--predictions", type=Path, help="one JSON line per advice")
    parser.add_argument("--seed", type=int, default=0)
    add_engine_flags(parser)
    given = parser.parse_args()
    worlds = read_worlds(given.tables, scale=given.scale)
    lines = replay(worlds, given)
    if given.predictions is not None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        given.predictions.write_text(text, encoding="utf-8")
    found = summary(worlds, lines, given)
    print(json.dumps(found, indent=1) if given.json else as_text(found))


def replay(worlds: list[World], given: argparse.Namespace) -> list[dict[str, Any]]:
    """Every method on every set of pilots; one record per set and scenario."""
    jobs = [
        (number, pool, repeat)
        for repeat in range(given.repeats)
        for number in range(len(worlds))
        for pool in pools(given)
        if len(worlds[number].pool(pool)) >= given.pilots
    ]
    found = results(_job, pieces(worlds, given, jobs), "Replaying", on_engine(given))
    return [record for records in found for record in records]


def pools(given: argparse.Namespace) -> list[str]:
    """Where pilots are drawn from: scenarios that draw alike share their fits."""
    scenarios = given.scenario or list(SCENARIOS)
    return [pool for pool in ("any", "low_lr") if _of_pool(pool, scenarios)]


def _of_pool(pool: str, scenarios: list[str]) -> list[str]:
    return [s for s in scenarios if (s == "low_lr") == (pool == "low_lr")]


def _job(
    task: tuple[list[World], argparse.Namespace, tuple[int, str, int]],
) -> list[dict[str, Any]]:
    worlds, given, (number, pool, repeat) = task
    world, others = worlds[number], [w for i, w in enumerate(worlds) if i != number]
    rng = np.random.default_rng([given.seed, number, pool == "low_lr", repeat])
    pilots = sorted(rng.choice(world.pool(pool), given.pilots, replace=False).tolist())
    posterior = fitted(world, pilots, given.cut, given.priors, repeat)
    fixed = None
    if given.slow and not isinstance(posterior, str):
        fixed = fitted(world, pilots, given.cut, _by_theory(posterior.meta.priors.name), repeat)
    records = []
    for scenario in _of_pool(pool, given.scenario or list(SCENARIOS)):
        candidates = world.candidates(scenario)
        named: dict[str, int] = {}
        record: dict[str, Any] = {
            "table": world.name,
            "scenario": scenario,
            "repeat": repeat,
            "pilots": pilots,
        }
        if isinstance(posterior, str):
            # No number is given where the sampler does not converge: the user is left with the
            # best pilot.
            record["failed"] = posterior
            named["advisor"] = best_pilot(world, candidates, pilots, given.cut)
        else:
            said = advise(world, posterior, scenario)
            named |= said.advised
            record |= said._asdict() | {"advised": None}
            empty = without_pilots(world, posterior, repeat)
            named["advisor, no pilots"] = advise(world, empty, scenario).advised["advisor"]
            if fixed is not None and not isinstance(fixed, str):
                told = advise(world, fixed, scenario).advised["advisor"]
                named["advisor, exponents of the theory"] = told
        named["best pilot"] = best_pilot(world, candidates, pilots, given.cut)
        named["best extrapolated pilot"] = best_extrapolated(
            world, candidates, pilots, given.cut, scenario
        )
        chosen = constant(world, others, scenario, candidates)
        if chosen is not None:
            named["best constant of the other tables"] = chosen
        for name, recipe in RECIPES.items():
            named[name] = nearest(world, candidates, *recipe)
        if pool == "any":
            seed = search_seed(number, repeat)
            for sampler in ("tpe", "gp") if given.slow else ("tpe",):
                try:
                    named[f"Optuna {sampler.upper()}"] = searched(
                        world, candidates, given.pilots, given.cut, sampler, seed
                    )
                except ImportError:  # the Gaussian process needs PyTorch
                    continue
            named["successive halving"] = halved(world, candidates, given.pilots, given.cut, seed)
        record["named"] = named
        records.append(record)
    return records


def _by_theory(preset: str) -> Any:
    priors = load_priors(preset)
    fixed = {
        name: NormalPrior(mean=value, sd=0.01, source="fixed for an ablation")
        for name, value in THEORY.items()
    }
    return priors.model_copy(update=fixed)


def summary(
    worlds: list[World], lines: list[dict[str, Any]], given: argparse.Namespace
) -> dict[str, Any]:
    """Regret and collapses by scenario, table and method."""
    by_name = {world.name: world for world in worlds}
    out: dict[str, Any] = {"settings": _settings(given), "scenarios": {}}
    for scenario in given.scenario or list(SCENARIOS):
        found: dict[str, dict[str, list[tuple[float, bool]]]] = {}
        for line in lines:
            if line["scenario"] != scenario:
                continue
            world = by_name[line["table"]]
            outcomes, dead = world.outcomes(scenario), world.collapsed()
            best = max(outcomes[i] for i in world.candidates(scenario))
            for method, index in line["named"].items():
                found.setdefault(world.name, {}).setdefault(method, []).append(
                    (float(best - outcomes[index]), bool(dead[index]))
                )
        tables = {
            name: {method: _score(pairs) for method, pairs in methods.items()}
            | {"floor": _floor(by_name[name], scenario)}
            for name, methods in found.items()
        }
        methods = dict.fromkeys(m for table in found.values() for m in table)
        pooled = {
            method: _score([pair for table in found.values() for pair in table.get(method, [])])
            for method in methods
        }
        floors = [table["floor"]["regret_mean"] for table in tables.values()]
        pooled["floor"] = {"regret_mean": float(np.mean(floors)) if floors else None}
        out["scenarios"][scenario] = {"tables": tables, "pooled": pooled}
    first = "any" if "any" in out["scenarios"] else next(iter(out["scenarios"]))
    out["pooled"] = out["scenarios"][first]["pooled"]
    out["not_converged"] = sum("failed" in line for line in lines)
    return out


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "pilots": given.pilots,
        "cut": given.cut,
        "repeats": given.repeats,
        "priors": given.priors,
        "scale": given.scale,
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


def _floor(world: World, scenario: str) -> dict[str, float]:
    """Regret of who knows every mean but not the luck: the best run is best by luck as well."""
    rng = np.random.default_rng(0)
    means = world.outcomes(scenario)[world.candidates(scenario)]
    seen = means + SEED_SPREAD * rng.standard_normal((FLOOR_DRAWS, means.size))
    return {"regret_mean": float((seen.max(axis=1) - seen[:, np.argmax(means)]).mean())}


def as_text(found: dict[str, Any]) -> str:
    """A table per scenario."""
    lines = []
    for scenario, part in found["scenarios"].items():
        names = list(part["tables"])
        lines += ["", f"## {scenario}", "", "| method | " + " | ".join([*names, "pooled"]) + " |"]
        lines.append("|---" * (len(names) + 2) + "|")
        for method in part["pooled"]:
            cells = [_cell(part["tables"][name].get(method)) for name in names]
            lines.append(
                f"| {method} | " + " | ".join([*cells, _cell(part["pooled"][method])]) + " |"
            )
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
