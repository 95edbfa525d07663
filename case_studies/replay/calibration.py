"""Is P(stable) calibrated? Over every configuration and set of pilots, and where it was advised.

``python case_studies/replay/calibration.py PREDICTIONS.jsonl TABLE.jsonl... [--json] [--figure F]``
with the predictions that ``run.py --predictions`` wrote on the same tables.
"""

from __future__ import annotations

import argparse
import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta
from tables import World, read_worlds

EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
"""Of the classes of P(stable) whose observed share is stated."""

BOOTSTRAPS = 1000
SURE = 0.95
"""Advice given at this level or above is looked at apart."""


def main() -> None:
    """Parse, score, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions", type=Path)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    worlds = {world.name: world for world in read_worlds(given.tables)}
    opened = gzip.open if given.predictions.suffix == ".gz" else open
    with opened(given.predictions, "rt", encoding="utf-8") as text:
        lines = [json.loads(line) for line in text]
    found = calibration(worlds, [line for line in lines if "p_stable" in line])
    if given.figure is not None:
        draw(found, given.figure)
    print(json.dumps(found, indent=1) if given.json else as_text(found))


def calibration(worlds: dict[str, World], lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Reliability, Brier score and the advised points; intervals by bootstrap of the tables."""
    said, lived, table, run, advised = [], [], [], [], []
    for line in lines:
        if line["scenario"] == "sample_budget":
            continue  # ends at another step for every group size
        world = worlds[line["table"]]
        dead = world.collapsed()
        # A pilot that had died by its cut says nothing of the forecast.
        for index, probability in zip(line["candidates"], line["p_stable"], strict=True):
            if index in line["pilots"]:
                continue
            said.append(probability)
            lived.append(not dead[index])
            table.append(line["table"])
            run.append(f"{line['table']} {index}")
        named = line["named"]["advisor"]
        place = line["candidates"].index(named)
        advised.append((line["p_stable"][place], not dead[named], (line["table"], named)))
    p, y, of = np.array(said), np.array(lived, dtype=float), np.array(table)
    trained = np.array(run)
    names = sorted(set(table))
    rng = np.random.default_rng(0)
    draws = [
        np.concatenate([np.flatnonzero(of == name) for name in rng.choice(names, len(names))])
        for _ in range(BOOTSTRAPS)
    ]
    classes = []
    for low, high in pairwise(EDGES):
        inside = (p >= low) & ((p < high) | (high == 1.0))
        if not inside.any():
            continue
        shares = [y[d][inside[d]].mean() for d in draws if inside[d].any()]
        classes.append(
            {
                "from": low,
                "to": high,
                "n": int(inside.sum()),
                "runs": int(np.unique(trained[inside]).size),
                "said": float(p[inside].mean()),
                "lived": float(y[inside].mean()),
                "interval": [float(q) for q in np.quantile(shares, [0.1, 0.9])],
            }
        )
    brier = [float(np.mean((p[d] - y[d]) ** 2)) for d in draws]
    return {
        "forecasts": p.size,
        "tables": names,
        "lived": float(y.mean()),
        "brier": float(np.mean((p - y) ** 2)),
        "brier_interval": [float(q) for q in np.quantile(brier, [0.1, 0.9])],
        "brier_of_base_rate": float(y.mean() * (1 - y.mean())),
        "classes": classes,
        **_advised(advised),
    }


def _advised(advised: list[tuple[float, bool, tuple[str, int]]]) -> dict[str, Any]:
    """What became of advice: probability said, whether it lived, and which trained run it was."""
    sure = [held for said, held, _ in advised if said >= SURE]
    runs = {place: held for said, held, place in advised if said >= SURE}
    died = sum(not held for held in runs.values())
    return {
        "advised": len(advised),
        "advised_runs": len({place for _, _, place in advised}),
        "advised_lived": float(np.mean([held for _, held, _ in advised])),
        "advised_at_95": len(sure),
        "advised_at_95_lived": float(np.mean(sure)) if sure else None,
        "advised_at_95_runs": len(runs),
        "advised_at_95_tables": len({name for name, _ in runs}),
        "advised_at_95_may_die": (
            float(beta.ppf(0.95, died + 1, len(runs) - died)) if len(runs) > died else 1.0
        ),
    }


def as_text(found: dict[str, Any]) -> str:
    """A table of classes, and the scores."""
    lines = [
        "| P(stable) said | mean | forecasts (runs) | stayed stable [80 %, bootstrap of tables] |"
    ]
    lines.append("|---|---|---|---|")
    for one in found["classes"]:
        low, high = one["interval"]
        lines.append(
            f"| {one['from']:.2f} to {one['to']:.2f} | {one['said']:.3f} | {one['n']} "
            f"({one['runs']}) | {one['lived']:.3f} [{low:.3f}, {high:.3f}] |"
        )
    low, high = found["brier_interval"]
    sure = found["advised_at_95_lived"]
    lines += [
        "",
        f"Brier score {found['brier']:.3f} [{low:.3f}, {high:.3f}]; of the base rate "
        f"{found['brier_of_base_rate']:.3f}; {found['forecasts']} forecasts.",
        f"Advised points: {found['advised_lived']:.3f} of {found['advised']} stayed stable; of "
        f"{found['advised_at_95']} advised at {SURE:.0%} or more: "
        + ("none" if sure is None else f"{sure:.3f}.")
        + f" They are {found['advised_at_95_runs']} distinct trained runs of "
        f"{found['advised_at_95_tables']} tables: up to {found['advised_at_95_may_die']:.0%} of "
        "such runs may die (95 %).",
    ]
    return "\n".join(lines)


def draw(found: dict[str, Any], path: Path) -> None:
    """Reliability curve."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.0, 4.4), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", lw=1)
    axes.annotate("said = seen", (0.72, 0.745), rotation=41, color="0.45", size=9)
    said = [one["said"] for one in found["classes"]]
    lived = np.array([one["lived"] for one in found["classes"]])
    ends = np.array([one["interval"] for one in found["classes"]])
    errors = np.abs(ends.T - lived)
    axes.errorbar(said, lived, yerr=errors, fmt="o", color="#0072B2", capsize=3)
    for number, one in enumerate(found["classes"]):
        # The last classes lie close together: their counts hang below each other.
        below = -10 - 11 * max(0, number - 4)
        axes.annotate(
            f"{one['n']}",
            (one["said"], one["lived"]),
            (4, below),
            textcoords="offset points",
            size=8,
        )
    axes.set(
        xlabel="P(stable) said (probability)",
        ylabel="share of runs that stayed stable",
        xlim=(-0.03, 1.03),
        ylim=(-0.03, 1.03),
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    main()
