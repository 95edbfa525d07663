"""One run as its log tells it, before settings from elsewhere are heard."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from advisor.runs.pilot_run import Missing, Score, StepUnit
from advisor.theory import FloatArray


@dataclass(frozen=True)
class RawRun:
    """One run of one log file."""

    path: Path
    step: FloatArray
    series: dict[str, FloatArray]
    missing: dict[str, Missing]
    step_unit: StepUnit = "optimizer"
    parts: dict[str, FloatArray] = field(default_factory=dict)
    scores: dict[str, Score] = field(default_factory=dict)
    framework: str = ""
    label: str | None = None
    has_own_id: bool = False
    eval_step: FloatArray = field(default_factory=lambda: np.zeros(0))
    eval_reward: FloatArray = field(default_factory=lambda: np.zeros(0))
    rate_step: FloatArray = field(default_factory=lambda: np.zeros(0))
    rate: FloatArray = field(default_factory=lambda: np.zeros(0))
    planned_steps: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    logging_steps: int | None = None
    window: int = 1
    keys_read: dict[str, str] = field(default_factory=dict)
    keys_understood: tuple[str, ...] = ()
    keys_ignored: tuple[str, ...] = ()
    derivations: dict[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_eval_only(self) -> bool:
        """Whether there is no train reward."""
        return "reward" not in self.series

    def on_optimizer_steps(self, interval: int) -> RawRun:
        """Put a run whose steps count refreshes of K = ``interval`` steps on optimizer steps.

        Row n of a log that counts refreshes stands at optimizer step n K, the last of that refresh,
        and averages K steps: its reward is the mean over all mini-batches of the refresh. Steps
        (n - 1) K + 1 to n K all use the rollouts of the policy at (n - 1) K
        (`dynamics.policy_steps`).
        """
        planned = self.planned_steps
        return dataclasses.replace(
            self,
            step=self.step * interval,
            eval_step=self.eval_step * interval,
            scores={name: Score(at * interval, v) for name, (at, v) in self.scores.items()},
            step_unit="optimizer",
            window=self.window * interval,
            rate_step=self.rate_step * interval,
            planned_steps=None if planned is None else planned * interval,
        )
