"""Policy concentration: the policy has hardly any choice left, so rollouts stop exploring."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.advantage_degeneracy import SOLVED, share_of_range
from advisor.runs.diagnosis.card import Card, Finding, card_of, not_applicable
from advisor.runs.diagnosis.collapse import has_collapsed, judged_series
from advisor.runs.diagnosis.levels import SMALLEST, Level, difference, ends, series_of, since
from advisor.runs.pilot_run import PilotRun
from advisor.runs.trainers import setting_name
from advisor.theory import FloatArray

LEFT_WARNING = 0.1
"""Entropy at the end over that at the start."""

SOURCE = (
    "ours, read off the labelled runs; the law reward = b - a exp(entropy) is that of "
    "arXiv:2505.22617"
)
LEAST_ROWS = 12


class Choice(NamedTuple):
    """How much choice a policy has left by one series."""

    summary: str
    unit: str
    step: FloatArray
    values: FloatArray
    first: Level
    last: Level

    @property
    def left(self) -> float:
        """Share at the end of what was there at the start."""
        return self.last.mean / self.first.mean

    @property
    def interval(self) -> tuple[float, float] | None:
        """Two standard errors around ``left``, where the errors are known."""
        start, left = self.first.mean, self.left
        spread = float(np.hypot(self.last.error / start, left * self.first.error / start))
        return (left - 2 * spread, left + 2 * spread) if np.isfinite(spread) else None

    @property
    def is_lower(self) -> bool:
        """Whether the end lies below the start beyond noise."""
        return difference(self.first, self.last) > 2


def policy_concentration(run: PilotRun) -> Card:
    """Judge entropy and distinct answers at the end against the start, by what fell most."""
    logged, answers = series_of(run, "entropy"), _distinct(run)
    if logged is None and answers is None:
        return not_applicable(
            "policy_concentration",
            "The log holds no entropy.",
            "TRL and OpenRLHF log entropy; verl logs actor/entropy. Distinct answers per group "
            "(distinct_answers) would do as well.",
        )
    entropy = None if logged is None else _entropy(*logged)
    is_entropy = entropy is None or (entropy.first.mean > 0 and entropy.last.mean >= 0)
    if entropy is not None and not is_entropy and answers is None:
        return not_applicable(
            "policy_concentration",
            f"What is logged as entropy is no entropy: {entropy.first.mean:.3g} at the start, "
            f"{entropy.last.mean:.3g} at the end.",
            "Log the entropy of the policy in nats, with its own sign.",
        )
    choices = [one for one in (entropy if is_entropy else None, answers) if one is not None]
    least = min(choices, key=lambda choice: choice.left)
    unknown = "Whether answers became few: log the number of distinct answers per group."
    return card_of(
        "policy_concentration",
        _finding(run, least),
        number=least.left,
        unit=least.unit,
        interval=least.interval,
        threshold=LEFT_WARNING,
        source=SOURCE,
        witnesses=(
            *(choice.summary for choice in choices if choice is not least),
            *(() if logged is None else _law(run)),
        ),
        unknown=() if answers is not None else (unknown,),
    )


def _finding(run: PilotRun, least: Choice) -> Finding:
    """How far the choice has gone, and whether the reward could still use it."""
    step, left, summary = least.step, least.left, least.summary
    is_lost = least.is_lower and left <= LEFT_WARNING
    limit = LEFT_WARNING * least.first.mean
    begins = since(step, least.values, limit, below=True) if is_lost else float(step[0])
    steps = (begins, float(step[-1]))
    change = (
        f"Raise {setting_name(run, 'temperature')} or {setting_name(run, 'entropy')}, or lower "
        f"{setting_name(run, 'learning_rate')}; what is not sampled cannot be learned."
    )
    is_solved = share_of_range(run, judged_series(run)[1])[0] >= SOLVED
    if is_lost and left <= 0.05 and not is_solved and (_stalled(run) or has_collapsed(run)):
        headline = f"{summary} while the reward stands still short of its ceiling."
        return Finding("FAIL", headline, steps, change)
    if is_lost and not is_solved:
        return Finding("WARNING", f"{summary}.", steps, change)
    return Finding("INFO" if least.is_lower and left <= 0.2 else "PASS", f"{summary}.", steps)


def _entropy(step: FloatArray, values: FloatArray) -> Choice:
    first, last = ends(values, 0.1)[0], ends(values)[1]
    summary = f"Entropy went from {first.mean:.3g} to {last.mean:.3g} nats"
    unit = "entropy at the end over that at the start"
    return Choice(summary, unit, step, values, first, last)


def _distinct(run: PilotRun) -> Choice | None:
    """Distinct answers per group, beyond the one that any group has."""
    found = series_of(run, "distinct_answers")
    if found is None:
        return None
    step, values = found
    first, last = ends(values, 0.1)[0], ends(values)[1]
    # A count leaves one answer, a share one in a group.
    least = 1.0 if first.mean > 1 else 1 / (run.hyperparameters.group_size or np.inf)
    # By how much a mean of distinct answers may lie below one answer: rounding.
    if first.mean <= least or last.mean < least - 1e-6:
        return None
    summary = f"Distinct answers per group went from {first.mean:.3g} to {last.mean:.3g}"
    unit = "distinct answers at the end over those at the start, beyond the first"
    above = values - least
    ends_above = (first._replace(mean=first.mean - least), last._replace(mean=last.mean - least))
    return Choice(summary, unit, step, above, *ends_above)


def _stalled(run: PilotRun) -> bool:
    """Whether the reward gained nothing over the last half."""
    reward = judged_series(run)[1]
    half = reward[reward.size // 2 :]
    return half.size >= LEAST_ROWS and difference(*ends(half, 0.5)[::-1]) < 2


def _law(run: PilotRun) -> tuple[str, ...]:
    """What the entropy law says the reward could still gain, where it fits."""
    entropy = run.series["entropy"]
    if run.is_eval_only:
        return ()
    kept = np.isfinite(entropy) & np.isfinite(run.reward)
    if kept.sum() < LEAST_ROWS:
        return ()
    if np.abs(entropy[kept]).max() > 30.0 or np.abs(run.reward[kept]).max() > 1e9:
        return ()
    power, reward = np.exp(entropy[kept]), run.reward[kept]
    if np.ptp(power) <= 0 or np.ptp(reward) <= SMALLEST * np.abs(reward).max():
        return ()
    slope, top = np.polyfit(power, reward, 1)
    fitted = float(np.corrcoef(power, reward)[0, 1] ** 2)
    if fitted < 0.5 or slope >= 0:
        return ()
    return (
        f"entropy law: reward at zero entropy {top + slope:.3g} (R² {fitted:.2f}), "
        f"now {ends(reward)[1].mean:.3g}",
    )
