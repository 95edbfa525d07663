"""How right P(stable) is before a run and while it runs, its repository left out of all learning.

    python case_studies/stability/stability.py FOLDER... [--out stability.json]
    python case_studies/stability/stability.py FOLDER... --learn

Each FOLDER has logs and an INDEX.tsv. With ``--learn`` the numbers and the table that ship are
written, learned from all runs; nothing is scored.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from finished_runs import LOOKS, Finished, finished_runs  # noqa: E402
from learning import Learned, Runs, learned, log_score, outcome_rows  # noqa: E402
from manifest import ROOT, write_result  # noqa: E402

from advisor.forecast.elsewhere import NAME  # noqa: E402
from advisor.model import Elsewhere, load_priors  # noqa: E402
from advisor.theory import BoolArray, FloatArray  # noqa: E402

BOOTSTRAPS = 2000
PRESET = "theory"
RATE_DECADES = 0.25
"""Width of the kernel in log rate of the share that died elsewhere at a rate."""

TIMES = (1, 1.25, 1.5, 2, 3, 4, 6, 8)
"""Repositories, as multiples of those there are, at which a goal is asked again."""

LEVELS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.01)


def share_elsewhere(runs: Runs, kept: BoolArray | None = None) -> FloatArray:
    """Rival: the share that died among runs of other repositories of the same kind."""
    found = np.empty(runs.died.size)
    use = np.ones(runs.died.size, dtype=bool) if kept is None else kept
    for name in np.unique(runs.group):
        others = use & (runs.group != name)
        found[runs.group == name] = (runs.died[others].sum() + 0.5) / (others.sum() + 1)
    return found


def share_at_rate(runs: Runs) -> FloatArray:
    """Rival: the share that died elsewhere at a run's rate, full fine-tuning and LoRA apart."""
    plain, (log_rate, _, is_lora) = share_elsewhere(runs), runs.alike
    found = plain.copy()
    for row in np.flatnonzero(runs.knows_rate):
        others = (runs.group != runs.group[row]) & runs.knows_rate & (is_lora == is_lora[row])
        away = (log_rate[others] - log_rate[row]) / np.log(10) / RATE_DECADES
        near = np.exp(-0.5 * away**2)
        found[row] = (near @ runs.died[others] + plain[row]) / (near.sum() + 1)
    return found


def interval(values: FloatArray, group: Any, times: float = 1) -> list[float]:
    """95 % bootstrap interval of a mean over runs, repositories drawn."""
    names, place = np.unique(group, return_inverse=True)
    sums, counts = np.bincount(place, values), np.bincount(place)
    size = round(times * names.size)
    drawn = np.random.default_rng(0).integers(0, names.size, (BOOTSTRAPS, size))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return [round(float(end), 5) for end in np.quantile(means, [0.025, 0.975])]


def area(p: FloatArray, died: FloatArray) -> float | None:
    """Area under the ROC curve: chance that a run that died was given more than one that lived."""
    dead, living = p[died > 0], p[died == 0]
    if not (dead.size and living.size):
        return None
    above = (dead[:, None] > living).mean() + 0.5 * (dead[:, None] == living).mean()
    return round(float(above), 3)


def scored(
    said: FloatArray, rivals: Mapping[str, FloatArray], died: FloatArray, group: Any
) -> dict[str, Any]:
    """Brier and log score, and their difference from each rival."""
    scores: dict[str, Callable[[FloatArray], FloatArray]] = {
        "brier": lambda p: (p - died) ** 2,
        "log_score": lambda p: log_score(p, died),
    }
    found: dict[str, Any] = {
        "runs": int(died.size),
        "repositories": len(np.unique(group)),
        "with_deaths": len(np.unique(group[died > 0])),
        "died": int(died.sum()),
        "auc": area(said, died),
        **{name: round(float(of(said).mean()), 4) for name, of in scores.items()},
        "classes": [
            {"from": low, "runs": int(at.sum()), "said": _mean(said[at]), "died": _mean(died[at])}
            for low, high in pairwise(LEVELS)
            if (at := (said >= low) & (said < high)).any()
        ],
    }
    for name, rival in rivals.items():
        own: dict[str, Any] = {"auc": area(rival, died)}
        for score, of in scores.items():
            less = of(said) - of(rival)
            ends = interval(less, group)
            own[score] = round(float(of(rival).mean()), 4)
            own[f"{score}_difference_95"] = ends
            enough = [times for times in TIMES if interval(less, group, times)[1] < 0]
            own[f"{score}_deaths_needed"] = round(enough[0] * float(died.sum())) if enough else None
        found[name] = own
    return found


def _mean(values: FloatArray) -> float:
    return round(float(values.mean()), 4)


def parts_of(members: Sequence[Finished]) -> dict[str, BoolArray]:
    """Which runs are public, trained here, of the cells."""
    return {
        "public": np.array([one.is_public for one in members]),
        "trained here": np.array([not one.is_public for one in members]),
        "cells": np.array([one.is_cell for one in members]),
        "all": np.ones(len(members), dtype=bool),
    }


def studied(members: Sequence[Finished]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Scores before a run and at each look, and what was said of each run."""
    runs, parts = Runs(members), parts_of(members)
    p_before = np.empty(runs.died.size)
    said = {look: np.full(runs.died.size, np.nan) for look in LOOKS}
    chosen: list[Learned] = []
    for name in np.unique(runs.group):
        own = runs.group == name
        chosen.append(of := learned(runs, ~own))
        p_before[own] = of.p_before[own]
        for row in np.flatnonzero(own):
            for look in LOOKS:
                if look in members[row].looks:
                    said[look][row] = of.said(runs, row, look)
        print(f"{len(chosen)} of {runs.group.max() + 1} repositories", file=sys.stderr)
    plain = {
        part: share_elsewhere(runs, use if part == "public" else None)
        for part, use in parts.items()
    }
    at_rate = share_at_rate(runs)
    found: dict[str, Any] = {"before": {}, **{f"{look:g}": {} for look in LOOKS}}
    for part, use in parts.items():
        rivals = {"share elsewhere": plain[part][use], "share at its rate": at_rate[use]}
        found["before"][part] = scored(p_before[use], rivals, runs.died[use], runs.repository[use])
        for look in LOOKS:
            at = use & np.isfinite(said[look])
            rivals = {"share elsewhere": plain[part][at], "before the run": p_before[at]}
            if look == LOOKS[1]:
                rivals["share at its rate"] = at_rate[at]
            of = runs.died[at], runs.repository[at]
            found[f"{look:g}"][part] = scored(said[look][at], rivals, *of)
    dead = [one for one in members if one.died]
    found["deaths"] = {
        "in the first quarter": sum((one.onset or 0) <= 0.25 for one in dead),
        "later": sum((one.onset or 0) > 0.25 for one in dead),
        "fell and came back": sum(one.has_recovered for one in members),
    }
    found["chosen"] = {
        name: sorted({str(getattr(one.law, name)) for one in chosen})
        for name in ("size_reach", "pilots")
    } | {"ridge": sorted({str(one.ridge) for one in chosen})}
    rows = [
        {
            "repository": one.repository,
            "run": one.run.id,
            "died": one.died,
            "before": round(float(p_before[row]), 4),
            "share at its rate": round(float(at_rate[row]), 4),
            **{
                f"{look:g}": round(float(said[look][row]), 4)
                for look in LOOKS
                if np.isfinite(said[look][row])
            },
        }
        for row, one in enumerate(members)
    ]
    return found, rows


def ship(members: Sequence[Finished]) -> Elsewhere:
    """Write the section of the preset and the table of runs, learned from all."""
    runs = Runs(members)
    every = np.ones(runs.died.size, dtype=bool)
    public = sum(one.is_public for one in members)
    source = (
        f"{public} public runs and {runs.died.size - public} of tasks trained here; signs and "
        "forms were fixed first, the rest chosen by repositories left out (case_studies/stability)."
    )
    law = learned(runs, every, source=source).law
    path = ROOT / "priors" / f"{PRESET}.toml"
    text = re.sub(r"\[elsewhere\]\n(?:[^\[\n].*\n)*\n?", "", path.read_text(encoding="utf-8"))
    lines = []
    for name, value in law.model_dump().items():
        if isinstance(value, dict):
            inner = ", ".join(f"{key} = {number:g}" for key, number in value.items())
            lines.append(f"{name} = {{ {inner} }}")
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    lines.sort(key=lambda line: line.startswith("source"))
    section = "\n".join(["[elsewhere]", *lines]) + "\n\n"
    text = text.replace("[discrepancy]", section + "[discrepancy]", 1)
    path.write_text(text, encoding="utf-8")
    rows = ",\n".join(json.dumps(row) for row in outcome_rows(members))
    columns = ["repository", "mark", "log_rate", "log_parameters", "is_lora", "died"]
    (ROOT / "priors" / NAME).write_text(
        f'{{\n "evidence": {json.dumps(source)},\n "columns": {json.dumps(columns)},\n'
        f' "rows": [\n{rows}\n ]\n}}\n',
        encoding="utf-8",
    )
    assert load_priors(PRESET).elsewhere == law
    return law


def main() -> None:
    """Score or learn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "stability.json")
    parser.add_argument("--learn", action="store_true", help="write what ships")
    given = parser.parse_args()
    members = finished_runs(given.folders)
    if given.learn:
        print(ship(members))
        return
    found, rows = studied(members)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    kept = given.out.with_suffix(".predictions.jsonl.gz")
    kept.write_bytes(gzip.compress(lines.encode(), mtime=0))
    indexes = [folder / "INDEX.tsv" for folder in given.folders]
    write_result(given.out, found, Path(__file__), indexes)


if __name__ == "__main__":
    main()
