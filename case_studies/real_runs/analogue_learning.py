"""Learn from finished runs what makes runs alike: leave one repository out, and score."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.forecast import Corpus, final_rows, log_update_norm
from advisor.forecast.analogues import (
    FEATURES,
    IS_SHARE,
    LEAST_RESEMBLANCE,
    MOST_GAIN,
    SCORED_SHARES,
    SHARES,
    USUAL_PARAMETERS,
    USUAL_RATE,
    Description,
    ends_by,
    log_odds,
    mark_of,
    tabulated,
    weighted_quantiles,
)
from advisor.model import sigmoid
from advisor.runs import PilotRun
from advisor.theory import BoolArray, FloatArray

FEWEST_REPOSITORIES = 3
"""Repositories from which one can be left out and something be learned from the others."""

START_REACH = 1.4
"""Reach in standard deviations from which the search starts."""

STEPS = (0.7, 0.35, 0.18)
"""Steps of the search in the log of a reach."""

REACH_PENALTY = 0.0004
"""Score that a reach must gain per unit of its log away from the start: fewer runs than numbers."""

WIDENINGS = (1.0, 1.1, 1.2, 1.3, 1.4)
SIBLING_WEIGHTS = (1.0, 3.0, 10.0, 30.0, 60.0)
SIBLING_REACH = 2.0
"""Distance within which siblings resemble, over that of strangers: what they share is unseen."""

LEVELS = 41
"""Quantiles that tell how far the end of a run lies from those of its siblings."""

CURVE_WEIGHTS, NEW_CURVE_WEIGHT = (0.5, 0.7, 0.4), 0.8
"""Shares of the pooled curve with about the least CRPS over repositories left out, by the share of
a run that is seen; see case_studies/real_runs."""

POOL_WIDENINGS = (1.1, 1.0, 1.0)
"""Of all together. 0.85 and 0.75 at a quarter and a half make intervals hold 80 % in the
repositories that they were chosen on, and held 71 and 70 % in eighteen that nobody had seen."""

INTERVAL = 0.8
"""Interval whose coverage chooses the widening."""

DIGITS = 4
"""Significant digits of what describes a run."""


def learned_corpus(
    runs: Mapping[str, Sequence[PilotRun]],
    cohort_of: Mapping[str, str] | None = None,
) -> Corpus:
    """Learn a corpus of analogues from finished runs.

    Parameters
    ----------
    runs : mapping of repository to sequence of PilotRun
    cohort_of : mapping of run id to name, optional
        Runs of one name are siblings [default: those of one task and model in a repository].

    Returns
    -------
    corpus : Corpus
        Its reaches minimise the mean CRPS, in shares of the range logged, of every run forecast
        from the runs of the other repositories; every repository counts by the root of its runs.

    Raises
    ------
    InputError
        Fewer than three repositories have a run that can be described.
    """
    plain = Corpus(
        features=np.zeros((0, len(FEATURES))),
        gain=np.zeros(0),
        span=np.zeros(0),
        odds=np.zeros(0),
        by_odds=np.zeros(0),
        run=np.zeros(0, dtype=str),
        repository=np.zeros(0, dtype=str),
        reach=np.full(len(FEATURES), START_REACH),
        widening=1.0,
        sibling_weight=SIBLING_WEIGHTS[0],
        sibling_reach=SIBLING_REACH,
        sibling_errors=np.zeros(LEVELS),
        curve_weights=np.array(CURVE_WEIGHTS),
        pool_widenings=np.array(POOL_WIDENINGS),
        new_curve_weight=NEW_CURVE_WEIGHT,
    )
    scored = tabulated(runs, SCORED_SHARES, plain)
    if len(scored.names) < FEWEST_REPOSITORIES:
        raise InputError(
            f"finished runs of {len(scored.names)} repositories were given",
            argument="runs",
            advice=f"Give those of {FEWEST_REPOSITORIES} or more: one is left out at a time",
        )
    spread = np.maximum(scored.features.std(axis=0), 1e-6)
    reach = _searched_reach(scored, spread)
    corpus = replace(scored, reach=reach)
    names = {
        mark_of(run): (cohort_of or {}).get(run.id, f"{repository} {run.task} {run.model}")
        for repository, members in runs.items()
        for run in members
    }
    widening = _least_widening(corpus)
    sibling_weight = _best_sibling_weight(corpus, names)
    return replace(
        tabulated_by_odds(runs, replace(plain, reach=reach)),
        widening=widening,
        sibling_weight=sibling_weight,
        sibling_errors=_sibling_errors(runs, names),
    )


def update_norm_of(run: PilotRun) -> float:
    """Log norm of an Adam update; where rate or size is unknown, as of a usual one."""
    rate = run.hyperparameters.learning_rate or USUAL_RATE
    return float(log_update_norm(rate, run.parameters or USUAL_PARAMETERS))


def _sibling_errors(runs: Mapping[str, Sequence[PilotRun]], names: Mapping[str, str]) -> FloatArray:
    """Quantiles of ends less the siblings' median, each repository by the root of its runs."""
    errors, weights = [], []
    for members in runs.values():
        ended = [run for run in members if np.ptp(run.reward[np.isfinite(run.reward)]) > 0]
        own = []
        for run in ended:
            kin = [
                one
                for one in ended
                if one is not run and names[mark_of(one)] == names[mark_of(run)]
            ]
            if kin:
                span = float(
                    np.median([np.ptp(one.reward[np.isfinite(one.reward)]) for one in kin])
                )
                own.append((_end(run) - float(np.median([_end(one) for one in kin]))) / span)
        errors += own
        weights += [max(len(own), 1) ** -0.5] * len(own)
    if not errors:
        return np.zeros(LEVELS)
    at = np.linspace(0, 1, LEVELS)
    return weighted_quantiles(np.clip(errors, -3, 3), np.array(weights), at)


def _end(run: PilotRun) -> float:
    return float(np.nanmean(run.reward[final_rows(run)]))


def _searched_reach(corpus: Corpus, spread: FloatArray) -> FloatArray:
    """Coordinate search from one reach for all features."""
    log_reach = np.full(spread.size, np.log(START_REACH))

    def value(at: FloatArray) -> float:
        moved = np.abs(at - np.log(START_REACH)).sum()
        scores, _ = _scores(corpus, _resemblance(corpus, np.exp(at) * spread))
        return _weighted(corpus, scores) + REACH_PENALTY * float(moved)

    best = value(log_reach)
    for step in STEPS:
        improved = True
        while improved:
            improved = False
            for feature in range(spread.size):
                for sign in (step, -step):
                    tried = log_reach.copy()
                    tried[feature] += sign
                    found = value(tried)
                    if found < best - 1e-6:
                        best, log_reach, improved = found, tried, True
                        break
    return np.asarray(np.exp(log_reach) * spread)


def _least_widening(corpus: Corpus) -> float:
    """Least widening at which intervals hold what they say, over repositories left out."""
    weights = _resemblance(corpus, corpus.reach)
    for widening in WIDENINGS:
        _, holds = _scores(corpus, weights, widening)
        if _weighted(corpus, holds.astype(float)) >= INTERVAL:
            return widening
    return WIDENINGS[-1]


def _best_sibling_weight(corpus: Corpus, names: Mapping[str, str]) -> float:
    """Weight of a finished run of the same cohort, scored on the runs that have one."""
    cohort = np.array([names[run] for run in corpus.run])
    share = np.round(corpus.features[:, 0], 1)
    kin = (cohort[:, None] == cohort) & (corpus.run[:, None] != corpus.run)
    kin &= np.abs(share[:, None] - share) <= 0.3
    if not kin.any():
        return SIBLING_WEIGHTS[0]
    strangers = _resemblance(corpus, corpus.reach)
    near = np.exp(-0.5 * _squares(corpus, corpus.sibling_reach * corpus.reach)) + LEAST_RESEMBLANCE
    has_kin = kin.any(axis=1)
    scores = {
        weight: _weighted(corpus, _scores(corpus, strangers + weight * near * kin)[0], has_kin)
        for weight in SIBLING_WEIGHTS
    }
    # Strangers stand in the corpus at more shares than were scored, finished siblings at one.
    return min(scores, key=lambda weight: scores[weight]) * len(SHARES) / len(SCORED_SHARES)


def tabulated_by_odds(runs: Mapping[str, Sequence[PilotRun]], like: Corpus) -> Corpus:
    """Finished runs at all shares, with what the CRPS of each gains from log-odds of others."""
    corpus = tabulated(runs, SHARES, like)
    weights = _resemblance(corpus, corpus.reach)
    features, level = corpus.features, FEATURES.index("level")
    gained = np.zeros(corpus.gain.size)
    for row in np.flatnonzero(features[:, IS_SHARE]):
        unit = float(np.exp(features[row, FEATURES.index("log_unit")]))
        seen = Description(features[row], features[row, level] / 2, unit, 0.0, 0.0)
        end = seen.level + unit * corpus.gain[row]
        if corpus.gain[row] >= MOST_GAIN:
            end = float(sigmoid(log_odds(seen.level) + corpus.odds[row]))
        scores = [
            _crps(ends_by(corpus, seen, is_by_odds=by_odds), weights[row], end)
            for by_odds in (False, True)
        ]
        gained[row] = (scores[0] - scores[1]) / unit / corpus.span[row]
    return replace(corpus, by_odds=gained)


def _crps(values: FloatArray, weights: FloatArray, came: float) -> float:
    """CRPS of weighted values."""
    order = np.argsort(values)
    levels = np.cumsum(weights[order] / weights.sum())[:-1]
    below = values[order][:-1] >= came
    return float(((levels - below) ** 2 * np.diff(values[order])).sum())


def _squares(corpus: Corpus, reach: FloatArray) -> FloatArray:
    """Squared distance of every row from every other, shape (rows, rows)."""
    scaled = corpus.features / reach
    norm = (scaled**2).sum(axis=1)
    return np.asarray(np.maximum(norm[:, None] + norm - 2 * scaled @ scaled.T, 0.0))


def _resemblance(corpus: Corpus, reach: FloatArray) -> FloatArray:
    """Weight of every row in the forecast of every other; none within a repository."""
    other = corpus.repository[:, None] != corpus.repository
    near = np.exp(-0.5 * _squares(corpus, reach)) + LEAST_RESEMBLANCE
    return np.asarray(near * other * corpus.weight)


def _scores(
    corpus: Corpus, weights: FloatArray, widening: float = 1.0
) -> tuple[FloatArray, BoolArray]:
    """CRPS of each row in shares of the range logged, and whether its interval holds its gain."""
    order = np.argsort(corpus.gain)
    gain = corpus.gain[order]
    share = weights[:, order]
    levels = np.cumsum(share / share.sum(axis=1, keepdims=True), axis=1)
    below = gain[None, :-1] >= corpus.gain[:, None]
    crps = ((levels[:, :-1] - below) ** 2 * np.diff(gain)).sum(axis=1) / corpus.span
    low, middle, high = (
        gain[np.minimum((levels < level).sum(axis=1), gain.size - 1)]
        for level in ((1 - INTERVAL) / 2, 0.5, (1 + INTERVAL) / 2)
    )
    holds = (middle + widening * (low - middle) <= corpus.gain) & (
        corpus.gain <= middle + widening * (high - middle)
    )
    return np.asarray(crps), np.asarray(holds)


def _weighted(corpus: Corpus, values: FloatArray, kept: BoolArray | None = None) -> float:
    weight = corpus.weight if kept is None else corpus.weight * kept
    return float((weight * values).sum() / weight.sum())


def corpus_json(corpus: Corpus, evidence: str) -> str:
    """Corpus as JSON, with what it was learned from in words."""
    head: dict[str, Any] = {
        "evidence": evidence,
        "reach": dict(zip(FEATURES, _rounded(corpus.reach), strict=True)),
        "widening": corpus.widening,
        "sibling_weight": corpus.sibling_weight,
        "sibling_reach": corpus.sibling_reach,
        "curve_weights": corpus.curve_weights.tolist(),
        "pool_widenings": corpus.pool_widenings.tolist(),
        "new_curve_weight": corpus.new_curve_weight,
        "sibling_errors": _rounded(corpus.sibling_errors),
        "columns": ["repository", "run", "gain", "span", "odds", "by_odds", *FEATURES],
    }
    rows = [
        json.dumps([str(repository), str(run), *_rounded([*numbers, *features])])
        for repository, run, *numbers, features in zip(
            corpus.repository,
            corpus.run,
            corpus.gain,
            corpus.span,
            corpus.odds,
            corpus.by_odds,
            corpus.features,
            strict=True,
        )
    ]
    body = json.dumps(head, indent=1)[:-2]
    return body + ',\n "rows": [\n' + ",\n".join(rows) + "\n ]\n}\n"


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]
