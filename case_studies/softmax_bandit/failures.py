"""Provoked failures, logged as a trainer would and judged by the diagnosis."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from contexts import Record, train
from scenarios import EVERY, Scenario, scenarios

from advisor.diagnosis import MODES, diagnose
from advisor.runs import PartialSettings, PilotRun

ROWS, EVALUATIONS, ASKED = 200, 20, 200
FLAGGED = ("WARNING", "FAIL")


def logged(scenario: Scenario, record: Record, seed: int) -> PilotRun:
    """One seed as a trainer would log it: window means, and sampled evaluations."""
    rng = np.random.default_rng(seed)
    width = max(1, scenario.plan.steps // ROWS)
    names = {
        "reward": record.reward,
        "reward_std_within_group": record.spread,
        "silent_group_share": record.silent,
        "entropy": record.entropy,
        "gradient_norm": record.gradient,
    }
    series = {
        name: values[seed, : ROWS * width].reshape(-1, width).mean(axis=1)
        for name, values in names.items()
    }
    truth = record.evaluated[seed]
    at = np.linspace(0, truth.size - 1, EVALUATIONS).astype(int)
    return PilotRun(
        id=f"{scenario.name}-{seed}",
        path="bandit",
        model="bandit",
        task=scenario.name,
        hyperparameters=PartialSettings(
            learning_rate=scenario.plan.learning_rate,
            group_size=scenario.plan.group_size,
            prompts_per_step=scenario.plan.contexts_per_step,
        ),
        logging_steps=width,
        step=width * np.arange(1.0, series["reward"].size + 1),
        series=series,
        eval_step=1.0 + at * (scenario.plan.steps / truth.size),
        eval_reward=rng.binomial(ASKED, truth[at]) / ASKED,
        reward_floor=0.0,
        reward_ceiling=1.0,
    )


def failures(seeds: int = 20) -> list[dict[str, Any]]:
    """Confusion of causes with the cards that are raised, and the one that stands on top."""
    rows = []
    for scenario in scenarios():
        record = train(scenario.task, scenario.plan, seeds, evaluate_every=EVERY)
        found = [diagnose(logged(scenario, record, seed)) for seed in range(seeds)]
        top = Counter(
            one.cards[0].mode if one.cards[0].status in FLAGGED else "none" for one in found
        )
        rows.append(
            {
                "scenario": scenario.name,
                "cause_of": scenario.mode,
                "runs": seeds,
                "happened": int(scenario.happened(record).sum()),
                "verdicts": dict(Counter(one.verdict for one in found)),
                "top": dict(top),
                "flagged": {
                    mode: sum(one.card(mode).status in FLAGGED for one in found) for mode in MODES
                },
                "reward_at_end": round(float(record.reward[:, -50:].mean()), 3),
                "true_reward_at_end": round(float(record.evaluated[:, -3:].mean()), 3),
                "entropy_left": round(
                    float(record.entropy[:, -50:].mean() / record.entropy[:, :5].mean()), 3
                ),
            }
        )
    return rows
