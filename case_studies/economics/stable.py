"""Is P(stable) right in worlds that shaped nothing? Of every configuration that was not piloted.

    python case_studies/economics/stable.py RECORDS.jsonl.gz TABLE.jsonl.gz... \
        --replayed PREDICTIONS.jsonl.gz TABLE.jsonl... [--out stable.json]

with the records that ``run.py`` wrote on the same tables, and ``predictions.jsonl.gz``, which an
earlier release made of eight pilots each on older tables. What the model says, and what a line
learned on the other worlds makes of it, are set beside what became of the trained runs. The line of
all of them is what the preset ``small_models`` ships.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from manifest import write_result  # noqa: E402
from recalibration import Line, learn_line  # noqa: E402
from run import Purse, read_all  # noqa: E402
from tables import World, lines_of, read_worlds  # noqa: E402

from advisor.forecast import log_update_norm  # noqa: E402
from advisor.theory import BoolArray, FloatArray  # noqa: E402

EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
BOOTSTRAPS = 1000
SURE = 0.95
OPTIMIZERS = ("adamw",)
"""Whose updates have the norm that the line speaks of."""


class Forecasts(NamedTuple):
    """What was said of runs that were not piloted, and what became of them, one entry each.

    Attributes
    ----------
    said : ndarray of shape (forecasts,)
        P(stable) by the model.
    norm : ndarray of shape (forecasts,)
        Log norm of an update (`stability.log_update_norm`).
    lived : ndarray of shape (forecasts,)
        0 or 1.
    world, run : ndarray of str, shape (forecasts,)
    """

    said: FloatArray
    norm: FloatArray
    lived: FloatArray
    world: Any
    run: Any

    def where(self, chosen: BoolArray) -> Forecasts:
        """Some of them."""
        return Forecasts(*(column[chosen] for column in self))


def main() -> None:
    """Read, score, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("records", type=Path)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--replayed", nargs="+", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE / "stable.json")
    given = parser.parse_args()
    lines = lines_of(given.records)
    new = of_records(lines, read_all(given.tables))
    old = of_replays(lines_of(given.replayed[0]), read_worlds(given.replayed[1:]))
    both = Forecasts(*(np.concatenate(pair) for pair in zip(new, old, strict=True)))
    by_line = left_out(both)
    is_new = np.isin(both.world, new.world)
    # A line knows nothing of other optimizers, whose updates have another norm.
    of_line = np.isfinite(by_line)
    part = is_new & of_line
    own, line = both.where(part), by_line[part]
    base = np.array([own.lived[own.world != w].mean() for w in own.world])
    methods = {"model": own.said, "line of the others": line, "base rate of the others": base}
    found: dict[str, Any] = {
        "worlds": {
            "forecasts": own.said.size,
            "runs": np.unique(own.run).size,
            "worlds": np.unique(own.world).size,
            "lived": round(float(own.lived.mean()), 4),
            "methods": {key: scores(p, own) for key, p in methods.items()},
            "classes": classes(line, own),
        }
    }
    known = both.where(of_line)
    found["line"] = {
        **{key: round(value, 3) for key, value in learned(known)._asdict().items()},
        "groups": np.unique(known.world).size,
        "runs": np.unique(known.run).size,
    }
    found["advised"] = advised(lines)
    print(json.dumps(found, indent=1))
    write_result(given.out, found, Path(__file__), [*given.tables, *given.replayed])


def of_records(lines: list[dict[str, Any]], worlds: list[World]) -> Forecasts:
    """Forecasts of the full runs that the rest of a purse pays for."""
    purses = {world.name: Purse(world) for world in worlds}
    rows = []
    for record in lines:
        if not record["said"] or record["world"] not in purses:
            continue
        purse = purses[record["world"]]
        left = purse.total - round(record["spent"] * purse.total)
        for key, said in record["said"].items():
            rows.append(
                (purse.world, int(key), said, not purse.world.has_collapsed(int(key), left))
            )
    return gathered(rows)


def of_replays(lines: list[dict[str, Any]], worlds: list[World]) -> Forecasts:
    """Forecasts of whole runs of the older tables."""
    named = {world.name: world for world in worlds}
    rows = []
    for line in lines:
        # A budget of completions ends at another step for every group size.
        if "p_stable" not in line or line.get("scenario") == "sample_budget":
            continue
        world = named[line["table"]]
        for index, said in zip(line["candidates"], line["p_stable"], strict=True):
            if index not in line["pilots"]:
                rows.append((world, index, said, not world.has_collapsed(index, world.steps)))
    return gathered(rows)


def gathered(rows: list[tuple[World, int, float, bool]]) -> Forecasts:
    """Columns of forecasts; the norm is missing where the optimizer is not AdamW."""
    norms = []
    for world, index, _, _ in rows:
        settings = world.settings(index)
        norm = log_update_norm(settings.learning_rate, world.target.parameters)
        norms.append(norm if settings.optimizer in OPTIMIZERS else np.nan)
    return Forecasts(
        np.array([said for _, _, said, _ in rows], dtype=float),
        np.array(norms),
        np.array([lived for _, _, _, lived in rows], dtype=float),
        np.array([world.name for world, _, _, _ in rows]),
        np.array([f"{world.name} {index}" for world, index, _, _ in rows]),
    )


def learned(part: Forecasts) -> Line:
    """Line of some forecasts; those of a world weigh as many as it has runs."""
    pairs = {(w, r) for w, r in zip(part.world, part.run, strict=True)}
    runs = {str(name): sum(w == name for w, _ in pairs) for name in np.unique(part.world)}
    return learn_line(part.said, part.lived, part.world, runs, part.norm)


def left_out(both: Forecasts) -> FloatArray:
    """What the line of the other worlds says of each; NaN where a line knows nothing."""
    told = np.full(both.said.size, np.nan)
    known = np.isfinite(both.norm)
    for name in np.unique(both.world[known]):
        own = known & (both.world == name)
        line = learned(both.where(known & ~own))
        told[own] = line(both.said[own], both.norm[own])
    return told


def scores(p: FloatArray, own: Forecasts) -> dict[str, Any]:
    """Brier score, its interval by bootstrap of the worlds, and the line on which truth lies."""
    came, of = own.lived, own.world
    rng = np.random.default_rng(0)
    names = np.unique(of)
    squares = np.array([np.mean((p - came)[of == name] ** 2) for name in names])
    counts = np.array([np.sum(of == name) for name in names])
    picks = rng.integers(0, names.size, (BOOTSTRAPS, names.size))
    draws = (squares[picks] * counts[picks]).sum(axis=1) / counts[picks].sum(axis=1)
    line = learn_line(p, came, np.full(came.size, "all"))
    return {
        "brier": round(float(np.mean((p - came) ** 2)), 4),
        "interval": [round(float(q), 4) for q in np.quantile(draws, [0.1, 0.9])],
        "slope": round(line.slope, 3),
        "intercept": round(line.intercept, 3),
    }


def classes(p: FloatArray, own: Forecasts) -> list[dict[str, Any]]:
    """What lived where so much was said, by forecasts and distinct runs."""
    told = []
    for low, high in pairwise(EDGES):
        inside = (p >= low) & ((p < high) | (high == 1.0))
        if inside.any():
            told.append(
                {
                    "from": low,
                    "to": high,
                    "forecasts": int(inside.sum()),
                    "runs": int(np.unique(own.run[inside]).size),
                    "said": round(float(p[inside].mean()), 3),
                    "lived": round(float(own.lived[inside].mean()), 3),
                }
            )
    return told


def advised(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Runs that were advised as surely stable, each once."""
    sure = [one for one in lines if (one["p_stable"] or 0.0) >= SURE]
    fate = {(one["world"], one["run"]): one["collapsed"] for one in sure}
    return {str(SURE): {"runs": len(fate), "died": sum(fate.values())}}


if __name__ == "__main__":
    main()
