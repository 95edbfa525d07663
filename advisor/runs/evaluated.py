"""Runs of which only evaluations are logged, as runs with a reward per evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.runs.missing_series import needs
from advisor.runs.pilot_run import LEAST_REWARDS, PilotRun

SAID = (
    "the rewards are held-out evaluations, for no train reward is logged; one after n steps stands "
    "at step n + 1, whose rollouts the same policy would write"
)


def evaluations_as_rewards(runs: Sequence[PilotRun]) -> list[PilotRun]:
    """Take evaluations for rewards in runs that have nothing else to be fitted by."""
    are_alone = all(run.is_eval_only for run in runs)
    found = []
    for run in runs:
        taken = _with_rewards(run) if run.is_eval_only else None
        found.append(run if taken is None or (needs(taken) and not are_alone) else taken)
    return found


def _with_rewards(run: PilotRun) -> PilotRun | None:
    known = np.isfinite(run.eval_reward)
    if int(known.sum()) < LEAST_REWARDS:
        return None
    return run.with_updates(
        step=run.eval_step[known] + 1,
        series={"reward": run.eval_reward[known]},
        missing={name: why for name, why in run.missing.items() if name != "reward"},
        eval_step=np.zeros(0),
        eval_reward=np.zeros(0),
        logging_steps=1,
        keys_read={
            {"eval_reward": "reward"}.get(name, name): key for name, key in run.keys_read.items()
        },
        assumptions=(*run.assumptions, SAID),
    )
