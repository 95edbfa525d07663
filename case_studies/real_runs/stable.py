"""How right the posterior's P(stable) of real runs is, when a part of each is seen.

    python case_studies/real_runs/stable.py FOLDER... --interim FITS [--seen 0.25] [--out FILE]

Every run that had not collapsed by the cut is asked for the probability that it has not by its end.
The posterior of its cohort is asked, cut at --seen and fitted under a preset learned without the
repository, beside a logistic regression on settings and on how the run stands, fitted to the other
repositories. Without scikit-learn that one is left out. What `watch` says is scored in
`case_studies/stability`.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from analogue_learning import update_norm_of
from run import BOOTSTRAPS, Run, by_cohort, first_part, load, marks_of, presets

from advisor.backtesting.cases import is_lora
from advisor.common import EngineSettings, Item
from advisor.diagnosis.collapse import find_final_fall
from advisor.forecast import Forecaster, fitted_or_none, stability_draws
from advisor.forecast.analogues import describe, kind_of
from advisor.forecast.survival import LOGITS
from advisor.model import Priors
from advisor.theory import BoolArray, FloatArray

sys.path.append(str(Path(__file__).resolve().parents[1]))

from engine_flags import add_engine_flags, on_engine, results
from recalibration import learn_line

LEAST_SURVIVAL = 1e-9
"""Chance of having lived so far below which a draw counts as if it had that."""


class Asked(NamedTuple):
    """One run that lives at the cut.

    Attributes
    ----------
    run, repository, cohort : str
    said : float or None
        P(stable) to its end; None where no curve could be pooled.
    died : bool
        Whether it had collapsed at its end.
    features : tuple of float
        Log learning rate, group size and refresh interval, LoRA, and how it stands.
    """

    run: str
    repository: str
    cohort: str
    said: float | None
    died: bool
    features: tuple[float, ...]


def asked_of_cohort(task: tuple[Sequence[Run], float, Priors]) -> list[dict[str, Any]]:
    """Ask about the runs of a cohort that live at the cut."""
    members, share, priors = task
    warnings.simplefilter("ignore")
    parts = [first_part(run.pilot, share) for run in members]
    posterior, _ = fitted_or_none(parts, priors)
    places = {}
    if posterior is not None:
        places = {one.id: index for index, one in enumerate(posterior.meta.runs)}
    found = []
    for run, part in zip(members, parts, strict=True):
        floor = run.bounds[0]
        if find_final_fall(part.step, part.reward, floor)[0].unstable:
            continue
        said = None
        if posterior is not None and part.id in places:
            forecaster = Forecaster.of_pilot(posterior, places[part.id])
            settings = posterior.meta.runs[places[part.id]].settings
            steps = int(run.pilot.step[-1])
            planned = settings.or_planned_over(steps)
            # It has lived so far: only the rest can kill it.
            so_far = forecaster.survival(planned, int(part.step[-1]))
            whole = stability_draws(forecaster, planned, steps)
            said = float((whole / np.maximum(so_far, LEAST_SURVIVAL)).mean())
        settings = run.pilot.hyperparameters.completed()
        stands = describe(part.step, part.reward, float(run.pilot.step[-1]), kind_of(part))
        features = (
            np.log10(settings.learning_rate),
            np.log2(settings.group_size),
            np.log2(settings.refresh_interval),
            float(is_lora(run.pilot)),
            *stands.features[1:5],
        )
        died = find_final_fall(run.pilot.step, run.pilot.reward, floor)[0].unstable
        found.append(
            Asked(
                run.pilot.id,
                run.repository,
                run.cohort,
                said,
                died,
                tuple(float(f"{value:.5g}") for value in features),
            )
        )
    return [one._asdict() for one in found]


def left_out(asked: Sequence[Asked], norm: FloatArray) -> dict[str, FloatArray]:
    """P(died) of every run by what was learned from the other repositories.

    ``norm`` is the log norm of an update of each (`stability.log_update_norm`).
    """
    died = np.array([one.died for one in asked], dtype=float)
    of = np.array([one.repository for one in asked])
    told = np.array([one.said is not None for one in asked])
    stable = np.array([0.5 if one.said is None else one.said for one in asked])
    features = np.array([one.features for one in asked])
    found = {name: np.empty(died.size) for name in ("base rate", "recalibrated", "logistic")}
    for name in np.unique(of):
        own, others = of == name, of != name
        base = (died[others].sum() + 0.5) / (others.sum() + 1)
        found["base rate"][own] = base
        known = others & told
        line = learn_line(stable[known], 1 - died[known], of[known], log_norm=norm[known])
        lowered = np.minimum(line(stable[own], norm[own]), stable[own])
        found["recalibrated"][own] = np.where(told[own], 1 - lowered, base)
        found["logistic"][own] = _logistic(features[others], died[others], features[own])
    least = 1 / (1 + np.exp(LOGITS))
    found["posterior"] = np.where(told, np.clip(1 - stable, least, 1 - least), found["base rate"])
    return found


def _logistic(seen: FloatArray, died: FloatArray, asked: FloatArray) -> FloatArray:
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        return np.full(asked.shape[0], np.nan)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    return np.asarray(model.fit(seen, died).predict_proba(asked)[:, 1])


def scores(asked: Sequence[Asked], said: dict[str, FloatArray]) -> dict[str, Any]:
    """Brier and log score of every method, and their difference from the base rate's."""
    died = np.array([one.died for one in asked], dtype=float)
    of = np.array([one.repository for one in asked])
    names = np.unique(of)
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(of == name) for name in names]
    draws = [
        np.concatenate([rows[i] for i in rng.integers(0, names.size, names.size)])
        for _ in range(BOOTSTRAPS)
    ]
    brier = {name: (p - died) ** 2 for name, p in said.items()}
    logs = {name: -np.log(np.where(died > 0, p, 1 - p)) for name, p in said.items()}
    found = {}
    for name in said:
        better = [float((brier[name] - brier["base rate"])[d].mean()) for d in draws]
        nearer = [float((logs[name] - logs["base rate"])[d].mean()) for d in draws]
        found[name] = {
            "brier": float(brier[name].mean()),
            "log_score": float(logs[name].mean()),
            "brier_less_base_rate_95": np.quantile(better, [0.025, 0.975]).tolist(),
            "log_score_less_base_rate_95": np.quantile(nearer, [0.025, 0.975]).tolist(),
        }
    return found


def classes(died: BoolArray, said: FloatArray) -> list[dict[str, float]]:
    """What was said and what happened, in classes of P(died)."""
    edges = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.01)
    found = []
    for low, high in pairwise(edges):
        inside = (said >= low) & (said < high)
        if inside.any():
            found.append(
                {
                    "from": low,
                    "runs": int(inside.sum()),
                    "said": float(said[inside].mean()),
                    "died": float(died[inside].mean()),
                }
            )
    return found


def ask_all(runs: Sequence[Run], share: float, interim: Path, where: EngineSettings) -> list[Asked]:
    """Ask about every run under a preset learned without its repository."""
    priors = presets(runs, None, interim)
    items = []
    for name, part in by_cohort(runs).items():
        preset = priors[part[0].repository, is_lora(part[0].pilot)]
        items.append(Item(name, (part, share, preset), marks_of(part, share, preset)))
    found = results(asked_of_cohort, items, "Asking for stability", where)
    return [Asked(**one) for part in found for one in part]


def main() -> None:
    """Ask, score, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--interim", type=Path, help="folder of fits, made where they are missing")
    parser.add_argument("--asked", type=Path, help="an earlier result, scored again without a fit")
    parser.add_argument("--seen", type=float, default=0.25)
    parser.add_argument("--out", type=Path)
    add_engine_flags(parser)
    given = parser.parse_args()
    if (given.asked is None) == (given.interim is None):
        parser.error("give --interim or --asked")
    runs, _ = load(given.folders)
    if given.asked is None:
        where: EngineSettings = {**on_engine(given), "keep": given.keep or given.interim}
        asked = ask_all(runs, given.seen, given.interim, where)
    else:
        earlier = json.loads(given.asked.read_text(encoding="utf-8"))
        asked = [Asked(**one) for one in earlier["asked"]]
    norms = {run.pilot.id: update_norm_of(run.pilot) for run in runs}
    norm = np.array([norms[one.run] for one in asked])
    said = left_out(asked, norm)
    died = np.array([one.died for one in asked])
    told = np.array([one.said is not None for one in asked])
    of = np.array([one.repository for one in asked])
    stable = np.array([one.said for one in asked if one.said is not None])
    document = {
        "seen": given.seen,
        "runs": len(asked),
        "with_pooled_curve": int(told.sum()),
        "repositories": len({one.repository for one in asked}),
        "died": int(died.sum()),
        "scores": scores(asked, said),
        "classes": {name: classes(died, p) for name, p in said.items()},
        "line": learn_line(stable, ~died[told], of[told], log_norm=norm[told])._asdict()
        | {"groups": len(set(of[told])), "runs": int(told.sum())},
        "asked": [one._asdict() for one in asked],
    }
    if given.out:
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for name, found in document["scores"].items():
        print(name, found)
    print(document["classes"]["posterior"], document["line"])


if __name__ == "__main__":
    main()
