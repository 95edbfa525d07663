"""P(unstable) of each repository's runs, from their settings and the other repositories' runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scores
from instability import DRAWS, learned
from sources import Labelled

VARIANTS: dict[str, dict[str, bool]] = {
    "hazard law": {},
    "hazard law, no knowledge of epochs": {"told": False},
    "hazard law, adapters at a tenth": {"tenfold": True},
}
METHODS = (*VARIANTS, "logistic", "base rate of the others")


def _known(value: float) -> float | None:
    return round(value, 3) if np.isfinite(value) else None


def leave_one_out(rows: Sequence[Labelled], *, draws: int = DRAWS) -> dict[str, Any]:
    """Probabilities for each repository from the others, by every method, and their scores."""
    names = list(dict.fromkeys(row.repository for row in rows))
    said: dict[str, list[float]] = {name: [] for name in METHODS}
    order: list[Labelled] = []
    tables = []
    for name in names:
        own = [row for row in rows if row.repository == name]
        others = [row for row in rows if row.repository != name]
        laws = {name: learned(others, draws=draws, **how) for name, how in VARIANTS.items()}
        for variant, law in laws.items():
            said[variant] += [law.unstable(row.run) for row in own]
        said["logistic"] += scores.logistic(others, own).tolist()
        said["base rate of the others"] += [scores.base_rate(others)] * len(own)
        order += own
        tables.append(
            {
                "repository": name,
                "runs": len(own),
                "collapsed": int(scores.collapsed(own).sum()),
                "settings": len({tuple(scores.features(row)) for row in own}),
                "effective_draws": round(min(law.effective_draws for law in laws.values())),
                **{m: round(float(np.mean(v[-len(own) :])), 4) for m, v in said.items()},
                "auc_within": {
                    variant: _known(
                        scores.rank_auc(np.array(said[variant][-len(own) :]), scores.collapsed(own))
                    )
                    for variant in VARIANTS
                },
            }
        )
    happened, repositories = scores.collapsed(order), [row.repository for row in order]
    peer = np.array(said["base rate of the others"])
    own_rate = {name: happened[np.array(repositories) == name].mean() for name in names}
    known = np.array([own_rate[name] for name in repositories])
    return {
        "repositories": tables,
        "scores": {
            method: scores.scored(np.array(values), peer, happened, repositories)
            for method, values in said.items()
        },
        "brier_if_each_rate_were_known": round(scores.brier(known, happened), 4),
        "reliability": {
            method: scores.reliability(np.array(values), happened)
            for method, values in said.items()
        },
        "runs": [
            {
                "id": row.id,
                "repository": row.repository,
                "label": row.label,
                **{method: round(values[at], 4) for method, values in said.items()},
            }
            for at, row in enumerate(order)
        ],
    }
