"""A run cut short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.runs import PilotRun

STEPS = np.array([1.0, 2.0, 5.0, 9.0, 10.0])
TESTS = np.array([0.0, 5.0, 10.0])


def run_at(steps: np.ndarray, tests: np.ndarray = TESTS, **updates: Any) -> PilotRun:
    """A run whose every number tells its step."""
    given: dict[str, Any] = {
        "id": "run",
        "path": "run.json",
        "step": steps,
        "series": {"reward": steps / 10},
        "eval_step": tests,
        "eval_reward": tests / 10,
    }
    return PilotRun(**(given | updates))


def check(run: PilotRun, steps: list[float], tests: list[float]) -> None:
    assert run.step.tolist() == steps
    assert run.eval_step.tolist() == tests
    for values in (*run.series.values(), *run.parts.values()):
        np.testing.assert_array_equal(values, run.step / 10)
    np.testing.assert_array_equal(run.eval_reward, run.eval_step / 10)


@pytest.mark.parametrize(
    ("last", "steps", "tests"),
    [
        (0.5, [], [0]),
        (5, [1, 2, 5], [0, 5]),
        (9.5, [1, 2, 5, 9], [0, 5]),
        (99, STEPS.tolist(), TESTS.tolist()),
    ],
)
def test_a_run_stopped_after_a_step(last, steps, tests):
    check(run_at(STEPS, parts={"format": STEPS / 10}).until(last), steps, tests)
