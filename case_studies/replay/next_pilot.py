"""Does a chosen pilot teach more than a random one? Four random pilots, then four of either kind.

``python case_studies/replay/next_pilot.py TABLE.jsonl... [--repeats 20] [--json]``
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from advise import UNPRICED, advise, fitted
from pieces import pieces
from tables import World, read_worlds

from advisor.advice import Budget, Lattice, Objective
from advisor.advice.evaluate import Evaluator
from advisor.advice.pilot_choice import choose_pilot
from advisor.errors import AdvisorError
from advisor.forecast import Forecaster
from advisor.model import Posterior

sys.path.append(str(Path(__file__).resolve().parents[1]))

from engine_flags import add_engine_flags, on_engine, results

FIRST, MORE = 4, 4
"""Random pilots to begin with, and pilots that follow."""


def main() -> None:
    """Parse, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--cut", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    add_engine_flags(parser)
    given = parser.parse_args()
    worlds = read_worlds(given.tables)
    jobs = [(n, repeat) for repeat in range(given.repeats) for n in range(len(worlds))]
    items = pieces(worlds, given, jobs)
    records = results(_job, items, "Replaying next pilots", on_engine(given))
    found = _summary(records)
    print(json.dumps(found, indent=1) if given.json else as_text(found))


def _job(task: tuple[list[World], argparse.Namespace, tuple[int, int]]) -> dict[str, Any]:
    worlds, given, (number, repeat) = task
    world = worlds[number]
    rng = np.random.default_rng([number, repeat])
    order = rng.permutation(len(world.runs)).tolist()
    first = order[:FIRST]
    record: dict[str, Any] = {"table": world.name, "repeat": repeat}
    chosen = list(first)
    for turn in range(MORE):
        posterior = fitted(world, chosen, given.cut, None, repeat)
        chosen.append(_next(world, posterior, chosen, order, given.cut, turn))
    for name, pilots in (
        ("first four alone", first),
        ("four chosen", chosen),
        ("four at random", order[: FIRST + MORE]),
    ):
        record[name] = _regret(world, pilots, given.cut, repeat)
        record[f"{name}, completions"] = sum(
            given.cut
            * world.runs[i].hyperparameters.prompts_per_step
            * world.runs[i].hyperparameters.group_size
            for i in pilots
        )
    record["chosen"] = chosen[FIRST:]
    return record


def _next(
    world: World,
    posterior: Posterior | str,
    known: list[int],
    order: list[int],
    cut: int,
    seed: int,
) -> int:
    """Pilot that the advisor asks for, among runs not piloted yet."""
    left = [index for index in order if index not in known]
    if isinstance(posterior, str):
        return left[0]
    evaluate = Evaluator(
        Forecaster(posterior, world.target), Objective(), Budget(steps=world.steps), UNPRICED
    )
    settings = {index: world.settings(index) for index in range(len(world.runs))}
    try:
        found = choose_pilot(
            evaluate,
            Lattice(tuple(settings.values())),
            steps=cut,
            seed=seed,
            candidates=[settings[index] for index in left],
        )
    except AdvisorError:
        return left[0]
    return next(index for index in left if settings[index] == found.settings)


def _regret(world: World, pilots: list[int], cut: int, seed: int) -> float:
    outcomes = world.outcomes("any")
    posterior = fitted(world, pilots, cut, None, seed)
    if isinstance(posterior, str):
        named = max(pilots, key=lambda i: world.rows[i]["reward"][cut - 1])
    else:
        named = advise(world, posterior, "any").advised["advisor"]
    return float(outcomes.max() - outcomes[named])


def _summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    methods = ("first four alone", "four chosen", "four at random")
    gain = np.array([r["four at random"] - r["four chosen"] for r in records])
    rng = np.random.default_rng(0)
    means = [rng.choice(gain, gain.size).mean() for _ in range(4000)]
    return {
        "n": len(records),
        "methods": {
            m: {
                "regret_mean": float(np.mean([r[m] for r in records])),
                "regret_p90": float(np.quantile([r[m] for r in records], 0.9)),
                "completions": float(np.mean([r[f"{m}, completions"] for r in records])),
            }
            for m in methods
        },
        "by_table": {
            table: {
                m: float(np.mean([r[m] for r in records if r["table"] == table])) for m in methods
            }
            for table in dict.fromkeys(r["table"] for r in records)
        },
        "random_minus_chosen": float(gain.mean()),
        "random_minus_chosen_interval": [float(q) for q in np.quantile(means, [0.1, 0.9])],
    }


def as_text(found: dict[str, Any]) -> str:
    """A row per way of choosing."""
    lines = [
        "| pilots | mean regret | 90th percentile | completions piloted |",
        "|---|---|---|---|",
    ]
    for name, one in found["methods"].items():
        lines.append(
            f"| {name} | {one['regret_mean']:.3f} | {one['regret_p90']:.3f} | "
            f"{one['completions']:,.0f} |"
        )
    low, high = found["random_minus_chosen_interval"]
    lines += [
        "",
        f"Random less chosen: {found['random_minus_chosen']:.3f} [80 %: {low:.3f}, {high:.3f}], "
        f"n = {found['n']}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
