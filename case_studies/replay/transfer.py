"""Advice for another model size: pilots on one size, none or two on the other.

``python case_studies/replay/transfer.py TABLE.jsonl... [--repeats 20] [--json]``: every ordered
pair of tables of one task and different sizes.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from advise import advise, fit_runs
from methods import best_pilot, constant
from pieces import pieces
from tables import World, read_worlds

sys.path.append(str(Path(__file__).resolve().parents[1]))

from engine_flags import add_engine_flags, on_engine, results

OWN = (0, 2)
"""Pilots on the size that is asked for."""


def main() -> None:
    """Parse, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--pilots", type=int, default=8)
    parser.add_argument("--cut", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    add_engine_flags(parser)
    given = parser.parse_args()
    worlds = read_worlds(given.tables)
    pairs = [
        (a, b)
        for a, b in permutations(range(len(worlds)), 2)
        if worlds[a].rows[0]["task"] == worlds[b].rows[0]["task"]
        and worlds[a].rows[0]["size"] != worlds[b].rows[0]["size"]
    ]
    jobs = [(pair, own, repeat) for pair in pairs for own in OWN for repeat in range(given.repeats)]
    found: dict[str, list[dict[str, Any]]] = {}
    items = pieces(worlds, given, jobs)
    for name, record in results(_job, items, "Replaying transfer", on_engine(given)):
        found.setdefault(name, []).append(record)
    out = {name: _score(records) for name, records in found.items()}
    print(json.dumps(out, indent=1) if given.json else as_text(out))


def _job(
    task: tuple[list[World], argparse.Namespace, tuple[tuple[int, int], int, int]],
) -> tuple[str, dict[str, Any]]:
    worlds, given, ((a, b), own, repeat) = task
    source, target = worlds[a], worlds[b]
    rng = np.random.default_rng([a, b, repeat])
    pilots = rng.choice(len(source.runs), given.pilots, replace=False)
    there = rng.choice(len(target.runs), max(OWN), replace=False)[:own].tolist()
    runs = [source.pilot(int(i), given.cut) for i in pilots]
    runs += [target.pilot(i, given.cut) for i in there]
    name = f"{source.name} to {target.name}, {own} pilots there"
    outcomes, dead = target.outcomes("any"), target.collapsed()
    posterior = fit_runs(runs, None, repeat)
    record: dict[str, Any] = {}
    choices = {"constant of the source": constant(target, [source], "any", _all(target))}
    if own:
        choices["best pilot there"] = best_pilot(target, _all(target), there, given.cut)
    if isinstance(posterior, str):
        choices["advisor"] = choices["constant of the source"]
        record["failed"] = True
    else:
        said = advise(target, posterior, "any")
        choices["advisor"] = said.advised["advisor"]
        place = said.candidates.index(said.advised["advisor"])
        final = outcomes[said.advised["advisor"]]
        record["covered"] = bool(said.lower[place] <= final <= said.upper[place])
        record["p_stable"] = said.p_stable[place]
    for method, index in choices.items():
        record[method] = (float(outcomes.max() - outcomes[index]), bool(dead[index]))
    return name, record


def _all(world: World) -> list[int]:
    return list(range(len(world.runs)))


def _score(records: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {"n": len(records), "failed": sum("failed" in r for r in records)}
    covered = [r["covered"] for r in records if "covered" in r]
    out["held by the 80 % interval"] = float(np.mean(covered)) if covered else None
    for method in ("advisor", "best pilot there", "constant of the source"):
        pairs = [r[method] for r in records if method in r]
        if pairs:
            out[method] = {
                "regret_mean": float(np.mean([p[0] for p in pairs])),
                "regret_p90": float(np.quantile([p[0] for p in pairs], 0.9)),
                "collapses": int(sum(p[1] for p in pairs)),
            }
    return out


def as_text(found: dict[str, Any]) -> str:
    """A row per direction."""
    methods = ("advisor", "best pilot there", "constant of the source")
    lines = ["| pilots | n | " + " | ".join(methods) + " | 80 % interval held |"]
    lines.append("|---" * (len(methods) + 3) + "|")
    for name, one in found.items():
        cells = [
            ""
            if method not in one
            else f"{one[method]['regret_mean']:.3f} ({one[method]['regret_p90']:.3f}; "
            f"{one[method]['collapses']})"
            for method in methods
        ]
        held = one["held by the 80 % interval"]
        lines.append(
            f"| {name} | {one['n']} | " + " | ".join(cells) + f" | {held:.2f} |"
            if held is not None
            else f"| {name} | {one['n']} | " + " | ".join(cells) + " | |"
        )
    return "\n".join([*lines, "", "Mean regret (90th percentile; collapses)."])


if __name__ == "__main__":
    main()
