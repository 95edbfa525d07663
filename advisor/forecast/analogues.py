"""The end of a run from its own log and from the ends of runs like it.

No curve is assumed. Every finished run of the corpus is described as it was at the same share of
its length, by the size of its model and by numbers that do not depend on the scale of its reward,
and counts by how much it resembled the run that is forecast.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.diagnosis import Level
from advisor.errors import InputError
from advisor.model import RunSummary, all_small, preset_folder, sigmoid
from advisor.runs import PilotRun
from advisor.theory import BoolArray, FloatArray

FINAL_SHARE = 0.1  # Share of a run, at its end, whose mean reward is forecast and judged

SHARES = (0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 0.85)
"""Shares of their length at which the runs of a corpus are described."""

NEAR_SHARE = 0.12
"""Logarithm of the factor by which a share may miss one of those: logs are of whole rows."""

SCORED_SHARES = (0.1, 0.25, 0.5)
"""Shares at which reaches are compared."""

FEATURES = (
    *("log_share", "trend", "bend", "noise", "signal", "half_log_rows", "is_share", "level"),
    *("headroom", "log_unit", "log_parameters", "is_lora", "log_rate", "log_steps"),
)
"""What describes a run; see :func:`describe`."""

LOG_SHARE, LOG_STEPS, IS_SHARE = map(FEATURES.index, ("log_share", "log_steps", "is_share"))

USUAL_PARAMETERS, USUAL_RATE = 3e9, 5e-6
"""What a run whose size or learning rate is unknown counts as: the middle of the public ones."""

LEAST_RESEMBLANCE = 1e-6  # Of any run: one that resembles none is forecast by all

LEAST_SHARE = 0.02
"""By which a share stays clear of 0 and 1 in log-odds: a few completions measure no less."""

NAME = "analogues.json"

COLUMNS = ("features", "gain", "span", "odds", "by_odds", "run", "repository")
"""What a corpus holds by row."""


class RunKind(NamedTuple):
    """What a run is, whatever it logs."""

    is_share: bool  # its reward lies between 0 and 1
    parameters: float | None = None
    is_lora: bool = False
    learning_rate: float | None = None


def kind_of(run: PilotRun) -> RunKind:
    """Kind of a run: its reward is a share as stated, or else as logged."""
    low = np.nanmin(run.reward) if run.reward_floor is None else run.reward_floor
    high = np.nanmax(run.reward) if run.reward_ceiling is None else run.reward_ceiling
    given = run.hyperparameters
    is_share = bool(low >= 0 and high <= 1)
    return RunKind(is_share, run.parameters, given.adapter == "lora", given.learning_rate)


class Description(NamedTuple):
    """A run as it is now."""

    features: FloatArray  # (len(FEATURES),)
    level: float  # mean of the last third seen, in reward units
    unit: float  # range of what is seen, in reward units
    gained: float  # from the first third seen to the last, in reward units
    error: float  # standard error of that, in reward units

    def of_length(self, share: float) -> Description:
        """The same rows as such a share of a run."""
        features = self.features.copy()
        log_share = np.log(min(max(share, 1e-3), 1.0))
        features[LOG_STEPS] += features[LOG_SHARE] - log_share
        features[LOG_SHARE] = log_share
        return self._replace(features=features)


def describe(
    step: npt.ArrayLike, reward: npt.ArrayLike, end: float, kind: RunKind, *, thinned: int = 1
) -> Description:
    """Describe a run that has begun, of which one in so many rows is given."""
    steps, rewards = np.asarray(step, dtype=float), np.asarray(reward, dtype=float)
    third = max(1, rewards.size // 3)
    first, last = float(rewards[:third].mean()), float(rewards[-third:].mean())
    between = rewards[third:-third]
    middle = float(between.mean()) if between.size else (first + last) / 2
    unit = max(float(np.ptp(rewards)), 1e-9 * max(1.0, float(np.abs(rewards).max())))
    noise = Level.row_noise(rewards)
    error = noise * float(np.sqrt(2 / third / thinned))
    features = [
        0.0,
        (last - first) / unit,
        (last - 2 * middle + first) / unit,
        noise / unit,
        2 * np.tanh((last - first) / (error + 0.02 * unit) / 4),
        np.log(rewards.size * thinned) / 2,
        float(kind.is_share),
        2 * last if kind.is_share else 1.0,
        float(np.clip(np.log(min((1 - last) / unit, 20) + 0.05), -3, 3)) if kind.is_share else 0.0,
        float(np.log(unit)) if kind.is_share else 0.0,
        float(np.log((kind.parameters or USUAL_PARAMETERS) / USUAL_PARAMETERS)),
        float(kind.is_lora),
        float(np.log((kind.learning_rate or USUAL_RATE) / USUAL_RATE)),
        float(np.log(max(steps[-1], 1.0))),
    ]
    found = Description(np.array(features), last, unit, last - first, error)
    return found.of_length(float(steps[-1]) / end)


@dataclass(frozen=True)
class Corpus:
    """Finished runs, each as it was at several shares of its length, and what it still gained."""

    features: FloatArray  # (rows, len(FEATURES))
    gain: FloatArray  # (rows,), from the last third seen to the last tenth, in ranges seen
    span: FloatArray  # (rows,), range of the whole run, in ranges seen
    odds: FloatArray  # (rows,), the gain of a reward that is a share, in log-odds; else 0
    by_odds: FloatArray  # (rows,), what CRPS, by span, gained when forecast by log-odds of others
    run: npt.NDArray[np.str_]  # (rows,), start of its fingerprint
    repository: npt.NDArray[np.str_]  # (rows,)
    reach: FloatArray  # distance in each feature over which resemblance is lost

    @cached_property
    def weight(self) -> FloatArray:
        """Of each row by itself: runs of a large repository count for less than their number."""
        runs = {name: np.unique(self.run[self.repository == name]).size for name in self.names}
        return np.array([runs[name] ** -0.5 for name in self.repository])

    @cached_property
    def names(self) -> list[str]:
        """Repositories that it holds runs of."""
        return sorted(set(self.repository.tolist()))

    def without(self, marks: Sequence[str]) -> Corpus:
        """Return the corpus without the repositories that hold one of these runs."""
        known = np.isin(self.run, marks)
        if not known.any():
            return self
        kept = ~np.isin(self.repository, self.repository[known])
        return replace(self, **{name: getattr(self, name)[kept] for name in COLUMNS})


def final_rows(run: PilotRun) -> BoolArray:
    """Which rows of a finished run lie in its last tenth, shape (rows,)."""
    return np.asarray(run.step > (1 - FINAL_SHARE) * run.step[-1])


def end_of_run(
    corpus: Corpus, seen: Description, *, odds_share: float, size: int = 1000
) -> FloatArray:
    """Mean reward over the last tenth of a run that has begun."""
    ends, weight = ends_by(corpus, seen), resemblance(corpus, seen) * corpus.weight
    if weight @ corpus.by_odds > 0:
        ends = np.concatenate([ends, ends_by(corpus, seen, is_by_odds=True)])
        weight = np.concatenate([(1 - odds_share) * weight, odds_share * weight])
    return weighted_quantiles(ends, weight, (np.arange(size) + 0.5) / size)


def ends_by(corpus: Corpus, seen: Description, *, is_by_odds: bool = False) -> FloatArray:
    """Where a run would end that gains what each row of a corpus gained, shape (rows,).

    In ranges seen, or in log-odds where both rewards are shares: from little, a share rises along
    an S, and the range of its first rows, mostly noise, measures nothing of it.
    """
    ends = seen.level + seen.unit * corpus.gain
    if is_by_odds and seen.features[IS_SHARE]:
        odds = sigmoid(log_odds(seen.level) + corpus.odds)
        ends = np.where(corpus.features[:, IS_SHARE] > 0, odds, ends)
    return np.asarray(ends)


def log_odds(share: npt.ArrayLike, clear: float = LEAST_SHARE) -> FloatArray:
    """Log-odds of shares that are kept clear of 0 and 1."""
    kept = np.clip(share, clear, 1 - clear)
    return np.asarray(np.log(kept / (1 - kept)))


def ended_lower(corpus: Corpus, share: float, *, has_fallen: bool) -> tuple[int, int]:
    """Runs whose middle third at this share of them lay higher, or lower, than their last third.

    By more than two standard errors. The first number counts them, the second those of them that
    ended below their last third.
    """
    column = dict(zip(FEATURES, corpus.features.T, strict=True))
    nearest = SHARES[int(np.abs(np.log(np.array(SHARES) / max(share, 1e-3))).argmin())]
    rise = (column["trend"] + column["bend"]) / 2
    error = column["noise"] * np.sqrt(6 * np.exp(-2 * column["half_log_rows"]))
    moved = rise < -2 * error if has_fallen else rise > 2 * error
    kept = moved & (np.abs(column["log_share"] - np.log(nearest)) < NEAR_SHARE)
    return int(kept.sum()), int((corpus.gain[kept] < 0).sum())


def resemblance(corpus: Corpus, seen: Description) -> FloatArray:
    """How much each row of a corpus resembles a run, shape (rows,), 1 at most."""
    away = (corpus.features - seen.features) / corpus.reach
    return np.asarray(np.exp(-0.5 * (away**2).sum(axis=1)) + LEAST_RESEMBLANCE)


def weighted_quantiles(values: FloatArray, weights: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles of weighted values, linear between the middles of their weights."""
    order = np.argsort(values)
    weights = weights[order] / weights.sum()
    return np.asarray(np.interp(levels, np.cumsum(weights) - weights / 2, values[order]))


def mark_of(run: PilotRun | RunSummary) -> str:
    """What a run is known by in a corpus: the start of its fingerprint, or else its id."""
    return run.fingerprint[:12] or run.id


def columns_of(rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Columns of a corpus from rows of repository, run, four numbers and features."""
    numbers = ("gain", "span", "odds", "by_odds")
    return {
        "repository": np.array([row[0] for row in rows], dtype=str),
        "run": np.array([row[1] for row in rows], dtype=str),
        "features": np.array([row[-1] for row in rows], dtype=float).reshape(-1, len(FEATURES)),
    } | {
        name: np.array([row[place] for row in rows], dtype=float)
        for place, name in enumerate(numbers, start=2)
    }


@cache
def shipped_corpus() -> Corpus:
    """Corpus that comes with the package."""
    return load_corpus(preset_folder() / NAME)


def corpus_for(runs: Sequence[PilotRun | RunSummary]) -> Corpus | None:
    """Shipped corpus without the repositories of these runs; None where every model is small."""
    if all_small(run.parameters for run in runs):
        return None
    return shipped_corpus().without([mark_of(run) for run in runs])


def load_corpus(path: Path) -> Corpus:
    """Read a corpus."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        return Corpus(
            **columns_of([(*row[:6], row[6:]) for row in saved["rows"]]),
            reach=np.array([saved["reach"][name] for name in FEATURES], dtype=float),
        )
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"it is no corpus of finished runs: {type(error).__name__}: {error!s:.100}",
            path=path,
            advice="Install the package again; case_studies/real_runs/learn.py makes the file",
        ) from error
