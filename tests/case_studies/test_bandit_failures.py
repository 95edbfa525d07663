"""The bandit with contexts: its arithmetic, its causes of failure, and what was written of both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from studies import STUDIES, modules_of

FOLDER = STUDIES / "softmax_bandit"
OWN = ("contexts", "scenarios", "failures")


@pytest.fixture(scope="module")
def study() -> Iterator[dict[str, Any]]:
    with modules_of("softmax_bandit", OWN) as found:
        yield found


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return json.loads((FOLDER / "bandit.json").read_text(encoding="utf-8"))


def test_gradient_climbs_the_expected_reward(study: dict[str, Any]) -> None:
    contexts = study["contexts"]
    task = contexts.linear_task()
    task = replace(task, held_out=(task.features, task.success))
    plan = contexts.Plan(1.0, 1, momentum=0.0, contexts_per_step=64, group_size=4)
    plan = replace(plan, kl_coefficient=0.0)
    moved = contexts.train(task, plan, 600).weights.mean(axis=0)
    policy = np.full_like(task.success, 1 / task.success.shape[1])
    centred = task.success - (policy * task.success).sum(axis=1, keepdims=True)
    expected = task.features.T @ (policy * centred) / len(task.features)
    assert moved == pytest.approx(expected, abs=3e-3)
    # Centred on one's own group without a correction a quarter is lost: the test would see it.
    assert np.abs(expected).max() / 4 > 3e-3


@pytest.mark.parametrize(
    ("number", "happens"), [(0, True), (1, False), (2, True), (3, True), (4, False)]
)
def test_failures_happen_with_their_cause_alone(
    study: dict[str, Any], number: int, happens: bool
) -> None:
    scenarios = study["scenarios"]
    scenario = [*scenarios._hacking(), *scenarios._degeneracy()][number]
    record = study["contexts"].train(scenario.task, scenario.plan, 6, evaluate_every=20)
    assert (scenario.happened(record).mean() > 0.5) == happens
    assert (scenario.mode is not None) == happens


def test_logged_run_holds_what_was_sampled(study: dict[str, Any]) -> None:
    scenario = study["scenarios"]._hacking()[0]
    record = study["contexts"].train(scenario.task, scenario.plan, 2, evaluate_every=20)
    run = study["failures"].logged(scenario, record, 1)
    assert run.reward.mean() == pytest.approx(record.reward[1].mean())
    assert run.step[-1] == scenario.plan.steps
    assert run.eval_step[-1] <= scenario.plan.steps
    # The proxy ends high and what is meant ends low.
    assert run.reward[-20:].mean() > 0.9 > 0.5 > run.eval_reward[-3:].mean()


def test_written_result_bears_out_every_check(result: dict[str, Any]) -> None:
    assert result["manifest"]["checks"]
    assert all(result["manifest"]["checks"].values())


def test_every_failure_mode_was_provoked_and_has_a_control(result: dict[str, Any]) -> None:
    rows = result["failures"]
    modes = {row["cause_of"] for row in rows}
    assert modes == {
        None,
        "reward_hacking",
        "advantage_degeneracy",
        "policy_concentration",
        "dynamical_instability",
    }
    for mode in modes - {None}:
        assert max(row["happened"] for row in rows if row["cause_of"] == mode) >= 16
    assert all(row["happened"] == 0 for row in rows if row["cause_of"] is None)
    assert all(row["runs"] == 20 for row in rows)
