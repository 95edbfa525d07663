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
    SCORED_SHARES,
    SHARES,
    USUAL_PARAMETERS,
    USUAL_RATE,
    Description,
    columns_of,
    describe,
    ends_by,
    kind_of,
    log_odds,
    mark_of,
)
from advisor.model import sigmoid
from advisor.runs import PilotRun
from advisor.theory import FloatArray

MOST_GAIN = 4.0  # Of a run, in ranges seen

FEWEST_REPOSITORIES = 3
"""Repositories from which one can be left out and something be learned from the others."""

START_REACH = 1.4
"""Reach in standard deviations from which the search starts."""

STEPS = (0.7, 0.35, 0.18)
"""Steps of the search in the log of a reach."""

REACH_PENALTY = 0.0004
"""Score that a reach must gain per unit of its log away from the start: fewer runs than numbers."""

DIGITS = 4
"""Significant digits of what describes a run."""


def learned_corpus(runs: Mapping[str, Sequence[PilotRun]]) -> Corpus:
    """Learn a corpus of analogues from finished runs by repository.

    Its reaches minimise the mean CRPS, in shares of the range logged, of every run forecast from
    the runs of the other repositories; every repository counts by the root of its runs.

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
    return tabulated_by_odds(runs, replace(plain, reach=reach))


def update_norm_of(run: PilotRun) -> float:
    """Log norm of an Adam update; where rate or size is unknown, as of a usual one."""
    rate = run.hyperparameters.learning_rate or USUAL_RATE
    return float(log_update_norm(rate, run.parameters or USUAL_PARAMETERS))


def _searched_reach(corpus: Corpus, spread: FloatArray) -> FloatArray:
    """Coordinate search from one reach for all features."""
    log_reach = np.full(spread.size, np.log(START_REACH))

    def value(at: FloatArray) -> float:
        moved = np.abs(at - np.log(START_REACH)).sum()
        score = _score(corpus, _resemblance(corpus, np.exp(at) * spread))
        return score + REACH_PENALTY * float(moved)

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


def tabulated(
    runs: Mapping[str, Sequence[PilotRun]], shares: Sequence[float], like: Corpus
) -> Corpus:
    """Describe finished runs, by the name of their repository, at shares of their length."""
    rows: list[tuple[str, str, float, float, float, float, FloatArray]] = []
    for repository, members in runs.items():
        for run in members:
            known = np.isfinite(run.reward)
            step, reward, last = run.step[known], run.reward[known], float(run.step[-1])
            target = run.reward[known & final_rows(run)]
            for share in shares:
                begun = step <= share * last
                if begun.sum() < PilotRun.LEAST_REWARDS or not target.size or np.ptp(reward) <= 0:
                    continue
                seen = describe(step[begun], reward[begun], last, kind_of(run))
                end = float(target.mean())
                # Clipped: a run that had hardly begun would else speak alone.
                gain = float(np.clip((end - seen.level) / seen.unit, -3.0, MOST_GAIN))
                span = float(np.ptp(reward)) / seen.unit
                odds = log_odds(end) - log_odds(seen.level) if seen.features[IS_SHARE] else 0.0
                rows.append((repository, mark_of(run), gain, span, float(odds), 0.0, seen.features))
    return replace(like, **columns_of(rows))


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


def _score(corpus: Corpus, weights: FloatArray) -> float:
    """Mean CRPS of the rows in shares of the range logged."""
    order = np.argsort(corpus.gain)
    gain = corpus.gain[order]
    share = weights[:, order]
    levels = np.cumsum(share / share.sum(axis=1, keepdims=True), axis=1)
    below = gain[None, :-1] >= corpus.gain[:, None]
    crps = ((levels[:, :-1] - below) ** 2 * np.diff(gain)).sum(axis=1) / corpus.span
    return float(np.average(crps, weights=corpus.weight))


def corpus_json(corpus: Corpus, evidence: str) -> str:
    """Corpus as JSON, with what it was learned from in words."""
    head: dict[str, Any] = {
        "evidence": evidence,
        "reach": dict(zip(FEATURES, _rounded(corpus.reach), strict=True)),
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
