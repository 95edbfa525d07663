"""Policy concentration: the policy has hardly any choice left, so rollouts stop exploring."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.diagnosis.advantage_degeneracy import SOLVED, share_of_range
from advisor.diagnosis.card import Card, not_applicable
from advisor.diagnosis.collapse_card import has_collapsed, judged_series
from advisor.diagnosis.levels import SMALLEST, Level, difference, ends, series_of, since
from advisor.run.pilot_run import PilotRun
from advisor.theory.arrays import FloatArray
from advisor.trainers import setting_name

MODE = "policy_concentration"
TITLE = "Policy concentration"

LEFT_INFO, LEFT_WARNING, LEFT_FAIL = 0.2, 0.1, 0.05
"""Entropy at the end over that at the start."""

SOURCE = (
    "ours, read off the labelled runs; the law reward = b - a exp(entropy) is that of "
    "arXiv:2505.22617"
)
LEAST_ROWS = 12

MOST_BELOW = 1e-6
"""By how much a mean of distinct answers may lie below one answer: rounding."""

MOST_NATS, MOST_REWARD = 30.0, 1e9
"""Entropy and reward beyond which no law is fitted."""


class Choice(NamedTuple):
    """How much choice a policy has left by one series.

    Attributes
    ----------
    said : str
        From where to where it went.
    unit : str
    step, values : ndarray of shape (rows,)
        Above what no choice at all would leave.
    first, last : Level
        Of ``values``: the first tenth and the last fifth.
    """

    said: str
    unit: str
    step: FloatArray
    values: FloatArray
    first: Level
    last: Level

    @property
    def left(self) -> float:
        """Share at the end of what was there at the start."""
        return self.last.mean / self.first.mean


def policy_concentration(run: PilotRun) -> Card:
    """Judge entropy and distinct answers at the end against the start, by what fell most."""
    entropy, answers = series_of(run, "entropy"), _distinct(run)
    if entropy is None and answers is None:
        return not_applicable(
            MODE,
            TITLE,
            "The log holds no entropy.",
            "TRL and OpenRLHF log entropy; verl logs actor/entropy. Distinct answers per group "
            "(distinct_answers) would do as well.",
        )
    choices = [] if entropy is None else [_entropy(*entropy)]
    if choices and (choices[0].first.mean <= 0 or choices[0].last.mean < 0):
        first, last = choices.pop()[-2:]
        if answers is None:
            return not_applicable(
                MODE,
                TITLE,
                f"What is logged as entropy is no entropy: {first.mean:.3g} at the start, "
                f"{last.mean:.3g} at the end.",
                "Log the entropy of the policy in nats, with its own sign.",
            )
    if answers is not None:
        choices.append(answers)
    least = min(choices, key=lambda choice: choice.left)
    step, values, first, last = least.step, least.values, least.first, least.last
    left, start, said = least.left, first.mean, least.said
    spread = float(np.hypot(last.error / start, left * first.error / start))
    is_sure = difference(first, last) > 2
    others = tuple(choice.said for choice in choices if choice is not least)
    unknown = "Whether answers became few: log the number of distinct answers per group."
    common = {
        "mode": MODE,
        "title": TITLE,
        "number": left,
        "unit": least.unit,
        "interval": (left - 2 * spread, left + 2 * spread) if np.isfinite(spread) else None,
        "threshold": LEFT_WARNING,
        "source": SOURCE,
        "steps": (
            since(step, values, LEFT_WARNING * start, below=True)
            if is_sure and left <= LEFT_WARNING
            else float(step[0]),
            float(step[-1]),
        ),
        "witnesses": (*others, *(() if entropy is None else _law(run))),
        "unknown": () if answers is not None else (unknown,),
    }
    change = (
        f"Raise {setting_name(run, 'temperature')} or {setting_name(run, 'entropy')}, or lower "
        f"{setting_name(run, 'learning_rate')}; what is not sampled cannot be learned."
    )
    reward = judged_series(run)[1]
    solved = share_of_range(run, reward)[0] >= SOLVED
    if is_sure and left <= LEFT_FAIL and not solved and (_stalled(run) or has_collapsed(run)):
        return Card(
            **common,
            status="FAIL",
            headline=f"{said} while the reward stands still short of its ceiling.",
            change=change,
        )
    if is_sure and left <= LEFT_WARNING and not solved:
        return Card(**common, status="WARNING", headline=f"{said}.", change=change)
    if is_sure and left <= LEFT_INFO:
        return Card(**common, status="INFO", headline=f"{said}.")
    return Card(**common, status="PASS", headline=f"{said}.")


def _entropy(step: FloatArray, values: FloatArray) -> Choice:
    first, last = ends(values, 0.1)[0], ends(values)[1]
    said = f"Entropy went from {first.mean:.3g} to {last.mean:.3g} nats"
    unit = "entropy at the end over that at the start"
    return Choice(said, unit, step, values, first, last)


def _distinct(run: PilotRun) -> Choice | None:
    """Distinct answers per group, beyond the one that any group has."""
    found = series_of(run, "distinct_answers")
    if found is None:
        return None
    step, values = found
    first, last = ends(values, 0.1)[0], ends(values)[1]
    # A count leaves one answer, a share one in a group.
    least = 1.0 if first.mean > 1 else 1 / (run.hyperparameters.group_size or np.inf)
    if first.mean <= least or last.mean < least - MOST_BELOW:
        return None
    said = f"Distinct answers per group went from {first.mean:.3g} to {last.mean:.3g}"
    unit = "distinct answers at the end over those at the start, beyond the first"
    above = values - least
    ends_above = (first._replace(mean=first.mean - least), last._replace(mean=last.mean - least))
    return Choice(said, unit, step, above, *ends_above)


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
    if np.abs(entropy[kept]).max() > MOST_NATS or np.abs(run.reward[kept]).max() > MOST_REWARD:
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
