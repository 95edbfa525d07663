"""P(stable) from runs of other projects: how many lived at such settings, what preceded a death.

Before a run, what its pilots predict counts as so many runs, beside those elsewhere at its learning
rate, size and adapter. Once it has begun, each signal in its log moves the log-odds. Forms and
signs were fixed before they were scored (case_studies/stability).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.diagnosis import Level
from advisor.forecast.analogues import USUAL_PARAMETERS, mark_of
from advisor.model import Elsewhere, RunSummary, preset_folder, sigmoid
from advisor.runs import PilotRun, Settings
from advisor.theory import BoolArray, FloatArray

NAME = "outcomes.json"

SIGNALS = {
    "time_left": (1, "the time that is left"),
    "trend": (-1, "the trend of the reward"),
    "lost": (1, "the reward below its best"),
    "shorter_answers": (1, "the length of completions"),
    "kl": (1, "the KL to the reference policy"),
    "entropy_jump": (1, "the entropy"),
    "gradient_jump": (1, "the gradient norm"),
    "silent_groups": (1, "the share of silent groups"),
    "held_out_lost": (1, "the held-out reward below its best"),
}
"""Signal -> sign of its slope in the log-odds of death, and its name in a sentence."""

LOG_RATES = np.linspace(np.log(1e-9), 0.0, 84)
"""At which runs elsewhere are counted: a quarter of an e-fold apart."""

LEAST_ROWS = 6  # Values of a signal below which it counts as not logged
MOST_FOLDS = 3.0  # Natural log of the largest change of a signal that counts
USUAL_KL = 0.1  # KL per token beyond which a policy counts as far from its reference


class Outcomes(NamedTuple):
    """Finished runs of other projects, shape (runs,)."""

    repository: npt.NDArray[np.str_]  # "project: task" where one has many tasks
    mark: npt.NDArray[np.str_]  # start of the run's fingerprint
    log_rate: FloatArray
    log_parameters: FloatArray
    is_lora: BoolArray
    died: BoolArray

    def without(self, marks: Sequence[str]) -> Outcomes:
        """Leave out the repositories that hold one of these runs."""
        kept = ~np.isin(self.repository, self.repository[np.isin(self.mark, marks)])
        columns: Any = (column[kept] for column in self)
        return Outcomes(*columns)

    @property
    def weight(self) -> FloatArray:
        """Of each run: those of a large project count for less than their number."""
        projects = [project_of(name) for name in self.repository]
        _, place, count = np.unique(projects, return_inverse=True, return_counts=True)
        return np.asarray(count[place] ** -0.5)


def project_of(repository: Any) -> str:
    """Project of a repository, or of one of its tasks."""
    return str(repository).split(":")[0]


@cache
def shipped_outcomes() -> Outcomes:
    """Finished runs that come with the package."""
    saved = json.loads((preset_folder() / NAME).read_text(encoding="utf-8"))
    return Outcomes(*map(np.array, zip(*saved["rows"], strict=True)))


@cache
def _of_others(marks: tuple[str, ...]) -> tuple[Outcomes, FloatArray]:
    outcomes = shipped_outcomes().without(marks)
    return outcomes, outcomes.weight


def stable_elsewhere(
    probability: FloatArray,
    settings: Settings,
    parameters: float,
    law: Elsewhere,
    pilots: Sequence[RunSummary],
) -> FloatArray:
    """P(stable) by the pilots, beside the runs elsewhere; shaped as ``probability``."""
    others, weight = _of_others(tuple(sorted(map(mark_of, pilots))))
    log_rate = np.log(np.asarray(settings.learning_rate, dtype=float))
    at = (log_rate, np.log(parameters or USUAL_PARAMETERS), settings.adapter == "lora")
    return 1 - share_died(1 - probability, at, law, others, weight)


def share_died(
    expected: FloatArray,
    at: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    law: Elsewhere,
    others: Outcomes,
    weight: FloatArray,
) -> FloatArray:
    """Share of runs near log rate, log size and adapter that died, beside ``law.pilots`` expected.

    Arrays ``at`` are shaped as ``expected``.
    """
    log_rate, size, is_lora = np.broadcast_arrays(*at, expected)[:3]
    found = np.empty(expected.shape)
    for kind in {*zip(size.flat, is_lora.flat, strict=True)}:
        here = (size == kind[0]) & (is_lora == kind[1])
        known = _by_rate(*kind, law, others, weight)
        count, share = (np.interp(log_rate[here], LOG_RATES, one) for one in known)
        found[here] = (count * share + law.pilots * expected[here]) / (count + law.pilots)
    return found


def _by_rate(
    size: float, is_lora: bool, law: Elsewhere, others: Outcomes, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How many runs count at LOG_RATES, and the share of them that died, which never falls."""
    from scipy.optimize import isotonic_regression

    hotter = (others.log_rate - LOG_RATES[:, None]) / law.rate_reach
    # What lived at a higher rate would have lived here.
    away = np.where(others.died, hotter, np.minimum(hotter, 0))
    squares = away**2 + ((others.log_parameters - size) / law.size_reach) ** 2
    near = np.exp(-0.5 * squares) * weight * (others.is_lora == is_lora)
    count = near.sum(-1) + 1e-9
    return count, isotonic_regression(near @ others.died / count, weights=count).x


def signals_of(run: PilotRun, end: float) -> dict[str, float]:
    """Values of SIGNALS for a run that lives and is planned to ``end``; NaN where not logged.

    *Latest* is the last sixth of the rows, three at least; *before* the median of those in front.
    """
    known = np.isfinite(run.reward)
    reward, now = run.reward[known], float(run.step[known][-1])
    low = min(0.0, float(reward.min())) if run.reward_floor is None else run.reward_floor
    noise, rows, third = Level.row_noise(reward), _latest_rows(reward), max(1, reward.size // 3)
    means = np.convolve(reward, np.ones(rows) / rows, "valid")
    gained = float(reward[-third:].mean() - reward[:third].mean())
    error = noise * np.sqrt(2 / third) + 0.02 * float(np.ptp(reward))
    fall = float(means.max() - means[-1]) - noise * np.sqrt(2 / rows)
    lost = float(np.clip(fall / max(float(means.max()) - low, 1e-9), 0, 1))
    latest = {name: _latest(run.series[name])[0] for name in run.series}
    silent = latest.get("silent_group_share", np.nan)
    # Groups that are all right are silent too: they end no run.
    right = max(float(means[-1]), 0.0) if reward.min() >= 0 and reward.max() <= 1 else 0.0
    values, held_out = run.eval_reward[np.isfinite(run.eval_reward)], np.nan
    if values.size >= 3:
        span = float(values.max()) - min(low, float(values.min()))
        held_out = 0.0 if lost > 0 else float(values.max() - values[-1]) / max(span, 1e-9)
    return {
        "time_left": float(np.log(-np.log(min(now / end, 0.99)))),
        "trend": float(np.tanh(gained / max(error, 1e-12) / 4)),
        "lost": lost,
        "shorter_answers": np.maximum(-_log_change(run, "completion_length"), 0.0),
        "kl": float(np.log1p(np.clip(latest.get("kl", np.nan), 0, 100) / USUAL_KL)),
        "entropy_jump": abs(_log_change(run, "entropy")),
        "gradient_jump": np.maximum(_log_change(run, "gradient_norm"), 0.0),
        "silent_groups": np.maximum(silent - right, 0.0),
        "held_out_lost": held_out,
    }


def moved_by(law: Elsewhere, signals: Mapping[str, float]) -> dict[str, float]:
    """What each signal, or its absence, adds to the log-odds of death; "intercept" comes first."""
    of = {
        name: law.signals[name] * value if np.isfinite(value) else law.missing.get(name, 0.0)
        for name, value in signals.items()
    }
    return {"intercept": law.signals["intercept"], **of}


def mover(moved: Mapping[str, float], *, is_worse: bool) -> str:
    """Name of the signal that moved P(stable) most in a direction; the time left if none did."""
    way = 1 if is_worse else -1
    others = {name: way * value for name, value in moved.items() if name in SIGNALS}
    most = max((name for name in others if name != "time_left"), key=lambda name: others[name])
    return SIGNALS[most if others[most] > 0 else "time_left"][1]


def p_dies(p_before: float, law: Elsewhere, moved: Mapping[str, float]) -> float:
    """Probability that a run dies, by what was predicted before it and by its signals."""
    share = float(np.clip(p_before, 1e-3, 1 - 1e-3))
    odds = np.log(share / (1 - share)) + sum(moved.values())
    return float(sigmoid(np.asarray(odds / np.sqrt(1 + np.pi / 8 * law.spread**2))))


def _latest_rows(values: FloatArray) -> int:
    return min(max(3, values.size // 6), values.size)


def _latest(series: FloatArray) -> tuple[float, float]:
    """Latest level of a signal and its level before; NaN where too few values are logged."""
    values = series[np.isfinite(series)]
    if values.size < LEAST_ROWS:
        return np.nan, np.nan
    rows = _latest_rows(values)
    return float(values[-rows:].mean()), float(np.median(values[:-rows]))


def _log_change(run: PilotRun, name: str) -> float:
    """Natural log of the latest level of a signal over that before."""
    latest, before = _latest(run.series.get(name, np.zeros(0)))
    if not (latest > 0 and before > 0):
        return np.nan
    return float(np.clip(np.log(latest / before), -MOST_FOLDS, MOST_FOLDS))
