"""What P(stable) learns from finished runs: a law of settings, runs alike, and signals.

All three are fits of a logistic regression with normal priors, slopes that keep their sign, and an
intercept for each repository.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from finished_runs import SHARES, Finished
from scipy.optimize import minimize

from advisor.forecast import log_update_norm
from advisor.forecast.analogues import USUAL_PARAMETERS, USUAL_RATE
from advisor.forecast.elsewhere import SIGNALS, Outcomes, moved_by, p_dies, share_died
from advisor.model import Elsewhere
from advisor.theory import BoolArray, FloatArray

USUAL_STEPS, USUAL_COMPLETIONS = 200.0, 64.0
SETTINGS_SD = 0.3
"""Of a slope in the law of settings, log-odds per e-fold."""

RATE_REACH = 0.58
"""A quarter of a decade."""

ALIKE = tuple(product((0.5, 1.6), (3.0, 10.0)))
"""Reach in log size, and runs that what is expected counts as."""

RIDGE = tuple(product((0.15, 0.3, 0.6), (0.05, 0.2), (0.3, 1.0)))
"""Prior sd of a slope by spread of its signal, of an indicator, of a repository's intercept."""

FOLDS = 5
SETTINGS_SIGNS = (1, 1, 1, -1, 0)
DIGITS = 3


def fit(columns: FloatArray, died: FloatArray, group: Any, **how: Any) -> FloatArray:
    """Penalised logistic regression; ``signs`` of 0 are free.

    ``how`` has ``weight`` and ``offset`` by row, ``sd`` and ``signs`` by column, and ``spread`` of
    the intercepts of groups.
    """
    _, place = np.unique(group, return_inverse=True)
    groups, width, sd = int(place.max()) + 1, columns.shape[1], np.asarray(how["sd"])
    weight, offset, spread = how["weight"], how["offset"], how["spread"]

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        slopes, own = theta[:width], theta[width:]
        odds = offset + columns @ slopes + own[place]
        value = weight @ (np.logaddexp(0, odds) - died * odds)
        miss = weight * (0.5 + 0.5 * np.tanh(odds / 2) - died)
        value += 0.5 * (((slopes / sd) ** 2).sum() + ((own / spread) ** 2).sum())
        back = np.bincount(place, miss, groups) + own / spread**2
        return float(value), np.concatenate([columns.T @ miss + slopes / sd**2, back])

    bounds = [(0 if sign > 0 else None, 0 if sign < 0 else None) for sign in how["signs"]]
    found = minimize(
        loss,
        np.zeros(width + groups),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds + [(None, None)] * groups,
        options={"maxiter": 500},
    )
    return np.asarray(found.x[:width])


def settings_of(one: Finished) -> list[float]:
    """Terms of the law of settings; a usual value stands for what is not known."""
    own, run = one.run.hyperparameters, one.run
    rate = own.learning_rate if one.knows_rate else None
    completions = (own.group_size or 0) * (own.prompts_per_step or 0)
    usual = log_update_norm(USUAL_RATE, USUAL_PARAMETERS)
    return [
        1.0,
        log_update_norm(rate, run.parameters or USUAL_PARAMETERS) - usual if rate else 0.0,
        float(np.log(run.step[-1] / USUAL_STEPS)),
        float(np.log(own.refresh_interval or 1)),
        float(np.log((completions or USUAL_COMPLETIONS) / USUAL_COMPLETIONS)),
        float(one.is_lora),
    ]


@dataclass
class Runs:
    """Finished runs as columns."""

    members: Sequence[Finished]
    group: Any = field(init=False)  # projects, left out and weighted as one
    repository: Any = field(init=False)  # or task of a model: what scores are drawn by
    died: FloatArray = field(init=False)
    settings: FloatArray = field(init=False)
    knows_rate: BoolArray = field(init=False)
    alike: tuple[FloatArray, FloatArray, BoolArray] = field(init=False)

    def __post_init__(self) -> None:
        """Take the columns."""
        # Numbers: strings are slow to compare, and are compared often.
        self.group = np.unique([one.project for one in self.members], return_inverse=True)[1]
        names = [one.repository for one in self.members]
        self.repository = np.unique(names, return_inverse=True)[1]
        self.died = np.array([one.died for one in self.members], dtype=float)
        self.settings = np.array([settings_of(one) for one in self.members])
        rates = [one.run.hyperparameters.learning_rate or USUAL_RATE for one in self.members]
        sizes = [one.run.parameters or USUAL_PARAMETERS for one in self.members]
        self.knows_rate = np.array([one.knows_rate for one in self.members])
        self.alike = (np.log(rates), np.log(sizes), np.array([one.is_lora for one in self.members]))

    def outcomes(self, kept: BoolArray) -> Outcomes:
        """Those of them with a known rate, as the table that ships."""
        use = kept & self.knows_rate
        columns = (self.group, self.group, *self.alike, self.died > 0)
        return Outcomes(*(column[use] for column in columns))


def outcome_rows(members: Sequence[Finished]) -> list[list[Any]]:
    """Rows of the table that ships, of runs with a known learning rate."""
    return [
        [
            one.repository,
            one.mark,
            round(float(np.log(one.run.hyperparameters.learning_rate)), DIGITS),
            round(float(np.log(one.run.parameters or USUAL_PARAMETERS)), DIGITS),
            one.is_lora,
            one.died,
        ]
        for one in members
        if one.knows_rate
    ]


def by_settings(runs: Runs, kept: BoolArray, spread: float = 1.0) -> FloatArray:
    """P(died) of every run by the law of settings that the kept ones show, shape (runs,)."""
    slopes = fit(
        runs.settings[kept],
        runs.died[kept],
        runs.group[kept],
        weight=np.ones(kept.sum()),
        offset=0.0,
        sd=[10.0, *[SETTINGS_SD] * 5],
        signs=(0, *SETTINGS_SIGNS),
        spread=spread,
    )
    odds = runs.settings @ slopes / np.sqrt(1 + np.pi / 8 * spread**2)
    return np.asarray(1 / (1 + np.exp(-odds)))


def before(runs: Runs, kept: BoolArray) -> dict[tuple[float, float], FloatArray]:
    """P(died) before a run, each group left out of what is learned for it, by ALIKE.

    Groups that are not kept are left out of everything.
    """
    found = {alike: np.empty(runs.died.size) for alike in ALIKE}
    for name in np.unique(runs.group):
        own, others = runs.group == name, kept & (runs.group != name)
        expected, outcomes = by_settings(runs, others), runs.outcomes(others)
        weight = outcomes.weight
        at = tuple(column[own] for column in runs.alike)
        for alike in ALIKE:
            law = law_of(alike, np.zeros(1 + 2 * len(SIGNALS)), 0.0)
            known = share_died(expected[own], at, law, outcomes, weight)
            found[alike][own] = np.where(runs.knows_rate[own], known, expected[own])
    return found


def law_of(
    alike: tuple[float, float], slopes: FloatArray, spread: float, **about: Any
) -> Elsewhere:
    """Numbers that ship; ``slopes`` are the intercept, those of signals, those of their absence."""
    rounded = [float(f"{one:.{DIGITS}g}") for one in slopes]
    count = len(SIGNALS)
    source = about.pop("source", "case_studies/stability")
    return Elsewhere(
        pilots=alike[1],
        rate_reach=RATE_REACH,
        size_reach=alike[0],
        signals=dict(zip(("intercept", *SIGNALS), rounded[: 1 + count], strict=True)),
        missing={
            name: value
            for name, value in zip(SIGNALS, rounded[1 + count :], strict=True)
            if name not in ("time_left", "trend", "lost")
        },
        spread=spread,
        **({"groups": 0, "runs": 0, "deaths": 0} | about),
        source=source,
    )


@dataclass(frozen=True)
class Seen:
    """Looks at runs, as rows."""

    row: Any  # of its run
    terms: FloatArray  # (looks, 1 + 2 len(SIGNALS)): one, signals, whether each is not logged
    weight: FloatArray  # looks of one run count as one

    @classmethod
    def of(cls, runs: Runs) -> Seen:
        """Every run at each share at which it lives."""
        rows, terms, weight = [], [], []
        for row, one in enumerate(runs.members):
            here = [share for share in SHARES if share in one.looks]
            for share in here:
                values = np.array([one.looks[share][name] for name in SIGNALS])
                lacks = ~np.isfinite(values)
                rows.append(row)
                terms.append([1.0, *np.where(lacks, 0.0, values), *lacks])
                weight.append(1 / len(here))
        return cls(np.array(rows), np.array(terms, dtype=float), np.array(weight))


def by_signals(
    runs: Runs, seen: Seen, odds_before: FloatArray, kept: BoolArray, ridge: tuple[float, ...]
) -> FloatArray:
    """Intercept, slopes of signals, and of their absence, learned from the kept runs."""
    slope_sd, missing_sd, spread = ridge
    count, use = len(SIGNALS), kept[seen.row]
    rows = seen.row[use]
    scale = np.maximum(seen.terms[use].std(axis=0), 1e-6)[1 : 1 + count]
    found: FloatArray = fit(
        seen.terms[use],
        runs.died[rows],
        runs.group[rows],
        weight=seen.weight[use],
        offset=odds_before[rows],
        sd=[10.0, *(slope_sd / scale), *[missing_sd] * count],
        signs=(0, *(sign for sign, _ in SIGNALS.values()), *[0] * count),
        spread=spread,
    )
    return found


def log_score(p: FloatArray, died: FloatArray) -> FloatArray:
    """Surprise at each outcome, in nats."""
    return np.asarray(-np.log(np.where(died > 0, p, 1 - p)))


@dataclass(frozen=True)
class Learned:
    """What was chosen and learned from the kept runs."""

    law: Elsewhere
    ridge: tuple[float, ...]
    p_before: FloatArray  # P(died) of every run, its own group left out

    def said(self, runs: Runs, row: int, share: float) -> float:
        """P(died) of a run when a share of it is seen."""
        moved = moved_by(self.law, runs.members[row].looks[share])
        return p_dies(self.p_before[row], self.law, moved)


def learned(runs: Runs, kept: BoolArray, **about: Any) -> Learned:
    """Learn from the kept runs; what is chosen is chosen by their own groups left out."""
    by_alike, seen = before(runs, kept), Seen.of(runs)
    alike = min(ALIKE, key=lambda one: log_score(by_alike[one][kept], runs.died[kept]).mean())
    p_before = by_alike[alike]
    odds = np.log(p_before / (1 - p_before))
    folds = np.unique(runs.group[kept])
    use = kept[seen.row]

    def value(ridge: tuple[float, ...]) -> float:
        total = 0.0
        for fold in range(FOLDS):
            out = np.isin(runs.group, folds[fold::FOLDS]) & kept
            slopes = by_signals(runs, seen, odds, kept & ~out, ridge)
            asked = use & out[seen.row]
            shrunk = np.sqrt(1 + np.pi / 8 * ridge[2] ** 2)
            of = (odds[seen.row[asked]] + seen.terms[asked] @ slopes) / shrunk
            p = 0.5 + 0.5 * np.tanh(of / 2)
            total += seen.weight[asked] @ log_score(p, runs.died[seen.row[asked]])
        return float(total)

    ridge = min(RIDGE, key=value)
    slopes = by_signals(runs, seen, odds, kept, ridge)
    about = {
        "groups": folds.size,
        "runs": int(kept.sum()),
        "deaths": int(runs.died[kept].sum()),
    } | about
    return Learned(law_of(alike, slopes, ridge[2], **about), ridge, p_before)
