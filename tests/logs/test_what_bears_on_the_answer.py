"""Warnings that bear on the answer: pilots that start apart, and PPO in place of GRPO."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor import inspect
from advisor.runs import PilotRun
from advisor.runs.pilot_run import STARTS_APART
from advisor.runs.several_runs import warn_of_starts


def pilot(place: int, start: float, rng: np.random.Generator, gain: float = 0.3) -> PilotRun:
    """Thirty rows of 64 completions that are right or wrong, or of a reward below 0."""
    rise = start + gain * (1 - np.exp(-np.arange(30) / 10))
    noise = rng.normal(0, 0.07, 30)
    return PilotRun(
        id=f"run{place}",
        path=f"run{place}.jsonl",
        step=np.arange(1.0, 31.0),
        series={"reward": rise + noise},
    )


def speaks(starts: list[float], seed: int = 1, gains: list[float] | None = None) -> bool:
    rng = np.random.default_rng(seed)
    each = gains or [0.3] * len(starts)
    runs = [
        pilot(place, start, rng, gain)
        for place, (start, gain) in enumerate(zip(starts, each, strict=True))
    ]
    warned = [any(STARTS_APART in line for line in run.warnings) for run in warn_of_starts(runs)]
    assert len(set(warned)) == 1  # all of a group, or none
    return warned[0]


def test_versions_of_a_reward_function_start_apart():
    assert speaks([-1.48, -0.36, -0.13, 0.26])
    assert speaks([0.1, 0.75])


def test_pilots_of_one_reward_function_are_never_warned_of():
    """The control: one start, other rates, a hundred cohorts of eight."""
    gains = [-0.2, 0.0, 0.1, 0.3, 0.3, 0.5, 0.6, 0.7]
    assert not any(speaks([0.25] * 8, seed, gains) for seed in range(100))


def test_a_run_that_died_in_its_first_rows_started_with_the_others():
    rng = np.random.default_rng(1)
    dead = pilot(1, 0.0, rng, gain=0.0)
    reward = np.where(dead.step == 1, 0.8, 0.0)
    runs = [pilot(0, 0.8, rng, 0.1), dead.with_updates(series={"reward": reward})]
    assert not any(run.warnings for run in warn_of_starts(runs))
    # Dead from its first row on it cannot be known from another reward.
    runs[1] = dead.with_updates(series={"reward": 0 * reward})
    assert all(run.warnings for run in warn_of_starts(runs))


def test_named_tasks_are_not_compared():
    rng = np.random.default_rng(1)
    runs = [pilot(place, start, rng) for place, start in enumerate((-1.5, 0.2))]
    apart = [run.with_updates(task=name) for run, name in zip(runs, "ab", strict=True)]
    assert not any(run.warnings for run in warn_of_starts(apart))
    (note,) = PilotRun.weighty(
        ["something else", warn_of_starts(runs)[0].warnings[0] + " [2 runs]"]
    )
    assert note.startswith("Runs that count as one model on one task start at -1.")


@pytest.mark.parametrize(
    ("cells", "is_ppo"),
    [
        ({"critic/vf_loss": 0.2, "critic/lr": 1e-5}, True),
        ({"critic/rewards/mean": 0.2, "critic/advantages/mean": 0.1, "critic/score/max": 1}, False),
        ({"critic/vf_loss": 0.0}, False),  # a trainer of both methods
    ],
)
def test_a_model_of_values_is_ppo(tmp_path, cells, is_ppo):
    rows = [
        {"training/global_step": n, "critic/score/mean": n / 20, "actor/pg_loss": 0.1, **cells}
        for n in range(1, 16)
    ]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = inspect(tmp_path).runs
    assert any("PPO" in line for line in run.warnings) == is_ppo
    assert len(PilotRun.weighty(run.warnings)) == is_ppo
