"""A run cut short, and the files of one run put after each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.runs.pilot_run import PilotRun
from advisor.runs.settings import PartialSettings

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


def test_a_share_counts_steps_and_not_rows():
    check(run_at(STEPS).first_part(0.5), [1, 2, 5], [0, 5])


@pytest.mark.parametrize("row", range(STEPS.size + 1))
def test_before_a_row_was_written(row):
    last = STEPS[row - 1] if row else 0.0
    check(run_at(STEPS).before(row), STEPS[:row].tolist(), TESTS[last >= TESTS].tolist())


def test_a_later_file_counts_where_both_hold_a_step():
    later = run_at(np.array([4.0, 5.0, 6.0]), np.array([5.0]), series={"reward": np.full(3, 0.9)})
    joined = run_at(STEPS).joined(later)
    assert joined is not None
    assert joined.step.tolist() == [1, 2, 4, 5, 6]
    assert joined.reward.tolist() == [0.1, 0.2, 0.9, 0.9, 0.9]
    assert joined.eval_step.tolist() == [0, 5]


def test_a_series_that_one_file_lacks_is_missing_there():
    later = run_at(np.array([6.0, 7.0]), series={"reward": np.ones(2), "kl": np.ones(2)})
    joined = run_at(STEPS[:2]).joined(later)
    assert joined is not None
    np.testing.assert_array_equal(joined.series["kl"], [np.nan, np.nan, 1, 1])


def test_settings_that_the_later_file_does_not_tell_stay():
    first = run_at(STEPS, hyperparameters=PartialSettings(learning_rate=1e-6, group_size=8))
    later = run_at(STEPS[3:], hyperparameters=PartialSettings(learning_rate=2e-6))
    joined = first.joined(later)
    assert joined is not None
    assert joined.hyperparameters == PartialSettings(learning_rate=2e-6, group_size=8)


@pytest.mark.parametrize(
    "later",
    [
        run_at(STEPS),
        run_at(np.zeros(0)),
        run_at(STEPS[3:], step_unit="refresh"),
    ],
    ids=["starts no later", "empty", "counts otherwise"],
)
def test_what_is_no_later_part_is_not_joined(later):
    assert run_at(STEPS).joined(later) is None
