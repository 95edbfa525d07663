"""Results of other studies on the same runs, by repository; nothing is computed anew."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
from sources import STUDIES

BACKTEST = STUDIES / "backtest" / "real_logs.json"
DIAGNOSE = STUDIES / "diagnose" / "diagnose.json"
SEEN = "0.25"
SCORES = ("mae", "crps", "80 % holds")


def forecasts() -> dict[str, Any]:
    """Errors of forecasts from the first quarter by repository, from the backtest's cohorts."""
    by_method = json.loads(BACKTEST.read_text(encoding="utf-8"))["by_share"][SEEN]
    table: dict[str, dict[str, Any]] = defaultdict(dict)
    for method, found in by_method.items():
        parts: dict[str, list[tuple[int, list[float]]]] = defaultdict(list)
        for cohort, own in found["cohorts"].items():
            values = [own["mae"], own["crps"], own["coverage"]["0.8"]]
            for name in (cohort.split("/")[0], "all"):
                parts[name].append((own["runs"], values))
        for name, rows in parts.items():
            runs, values = np.array([n for n, _ in rows]), np.array([v for _, v in rows])
            means = (runs @ values / runs.sum()).round(3).tolist()
            table[name] |= {"runs": int(runs.sum()), method: dict(zip(SCORES, means, strict=True))}
    return dict(sorted(table.items(), key=lambda pair: -pair[1]["runs"]))


def diagnoses() -> dict[str, Any]:
    """Collapses found and healthy runs failed, from the study of the diagnoses."""
    real = json.loads(DIAGNOSE.read_text(encoding="utf-8"))["real"]
    out = real["leave_one_repository_out"]
    return {
        "collapses_found": real["recall"][:2],
        "onset_within_10": real["onset_within_10"],
        "healthy_failed": real["healthy_failed"][:2],
        "left_out_collapses_found": out["recall"][:2],
        "left_out_false": out["false"][:2],
        "verdicts": real["verdicts"],
    }
