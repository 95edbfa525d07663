"""Policy concentration: the policy has hardly any choice left, so rollouts stop exploring."""

from __future__ import annotations

import numpy as np

from advisor.diagnosis.advantage_degeneracy import SOLVED, share_of_range
from advisor.diagnosis.card import Card, not_applicable
from advisor.diagnosis.collapse_card import has_collapsed, judged_series
from advisor.diagnosis.knobs import knob
from advisor.diagnosis.levels import difference, ends, series_of, since
from advisor.runs.pilot_run import PilotRun

MODE = "policy_concentration"
TITLE = "Policy concentration"

LEFT_INFO, LEFT_WARNING, LEFT_FAIL = 0.2, 0.1, 0.05
"""Entropy at the end over that at the start."""

SOURCE = (
    "ours, read off the labelled runs; the law reward = b - a exp(entropy) is that of "
    "arXiv:2505.22617"
)
LEAST_ROWS = 12

MOST_NATS, MOST_REWARD, SMALLEST = 30.0, 1e9, 1e-9
"""Entropy and reward beyond which no law is fitted, and the relative change below which."""


def policy_concentration(run: PilotRun) -> Card:
    """Judge the entropy of the last fifth of the run against that of its first tenth."""
    found = series_of(run, "entropy")
    if found is None:
        return not_applicable(
            MODE,
            TITLE,
            "The log holds no entropy.",
            "TRL and OpenRLHF log entropy; verl logs actor/entropy.",
        )
    step, values = found
    first, last = ends(values, 0.1)[0], ends(values)[1]
    if first.mean <= 0 or last.mean < 0:
        return not_applicable(
            MODE,
            TITLE,
            f"What is logged as entropy is no entropy: {first.mean:.3g} at the start, "
            f"{last.mean:.3g} at the end.",
            "Log the entropy of the policy in nats, with its own sign.",
        )
    start = first.mean
    left = last.mean / start
    spread = float(np.hypot(last.error / start, left * first.error / start))
    is_sure = difference(first, last) > 2
    common = {
        "mode": MODE,
        "title": TITLE,
        "number": left,
        "unit": "entropy at the end over that at the start",
        "interval": (left - 2 * spread, left + 2 * spread) if np.isfinite(spread) else None,
        "threshold": LEFT_WARNING,
        "source": SOURCE,
        "steps": (
            since(step, values, LEFT_WARNING * start, below=True)
            if is_sure and left <= LEFT_WARNING
            else float(step[0]),
            float(step[-1]),
        ),
        "witnesses": _law(run),
        "unknown": ("Whether answers became few: log the number of distinct answers per group.",),
    }
    said = f"Entropy went from {first.mean:.3g} to {last.mean:.3g} nats"
    change = f"Raise {knob(run, 'temperature')} or {knob(run, 'entropy')}, or lower " + (
        f"{knob(run, 'learning_rate')}; what is not sampled cannot be learned."
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
