"""trainer_state.json: what is read, what is left out, and why."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from advisor.runs import PilotRun, read_runs


def test_every_series_and_fact_is_read(write_state):
    (run,) = read_runs(write_state())
    assert run.id == "x"
    np.testing.assert_array_equal(run.step, np.arange(1, 21))
    absent = {
        "kl",
        "kl_max",
        "policy_kl",
        "mismatch_kl",
        "mismatch_difference",
        "all_right_share",
        "all_wrong_share",
        "tokens",
    }
    absent |= {"importance_ess", "distinct_answers"}
    assert set(run.series) == set(PilotRun.SERIES) - absent
    np.testing.assert_array_equal(run.parts["exact"], run.reward)
    assert run.hyperparameters.learning_rate == pytest.approx(3e-4)
    assert run.hyperparameters.schedule == "constant"
    assert run.hyperparameters.planned_steps == 200
    assert run.hyperparameters.group_size is None  # nothing is guessed
    assert run.logging_steps == 1
    assert run.keys_read["completion_length"] == "completions/mean_length"
    assert run.keys_ignored == ()
    assert run.keys_understood == ("rewards/exact/std",)
    assert run.reward_floor is run.reward_ceiling is None
    assert run.warnings == run.assumptions == ()


def test_a_run_always_has_its_reward(write_state):
    (run,) = read_runs(write_state())
    with pytest.raises(ValidationError, match="series has no 'reward'"):
        run.with_updates(series={"entropy": run.series["entropy"]})


def test_rows_without_reward_are_no_rows(write, make_rows, make_state):
    rows = make_rows([1, 3, 5])
    between = [{"step": s, "loss": 0.0, "learning_rate": 3e-4, "entropy": 0.4} for s in (2, 4)]
    evaluation = {"step": 4, "eval_reward": 0.3}
    summary = {"step": 5, "train_runtime": 3.0, "train_loss": 0.1}
    history = [rows[0], between[0], rows[1], between[1], evaluation, rows[2], summary]
    (run,) = read_runs(write("x/trainer_state.json", make_state(history)))
    assert run.step.tolist() == [1, 3, 5]
    assert run.eval_step.tolist() == [4]
    assert run.eval_reward.tolist() == [0.3]
    assert run.logging_steps == 1


def test_old_keys(write, make_state):
    rows = [
        {"step": s, "reward": s / 10, "reward_std": 0.1, "completion_length": 9.0, "kl": 0.1 * s}
        for s in (1, 2, 3)
    ]
    (run,) = read_runs(write("x/trainer_state.json", make_state(rows)))
    assert run.series["completion_length"].tolist() == [9, 9, 9]
    assert run.series["kl"][0] == pytest.approx(0.1)
    assert run.hyperparameters.kl_coefficient is None
    assert run.missing["entropy"] == "not logged"


def test_kl_is_not_applicable_where_its_coefficient_is_zero(write_state):
    (run,) = read_runs(write_state())
    assert run.hyperparameters.kl_coefficient == 0
    assert run.missing["kl"] == "not applicable"
    (run,) = read_runs(write_state(), overrides={"kl_coefficient": 0.05})
    assert run.missing["kl"] == "not logged"
    assert any("kl_coefficient = 0.05" in warning for warning in run.warnings)


@pytest.mark.parametrize("std_is_batch", [True, False])
def test_batch_spread_is_told_from_group_spread(write_state, std_is_batch):
    (run,) = read_runs(write_state(std_is_batch=std_is_batch))
    assert ("reward_std_within_group" in run.series) is not std_is_batch
    if std_is_batch:
        assert run.missing["reward_std_within_group"] == "not applicable"
        assert any("0.27" in warning for warning in run.warnings)


def test_spread_in_silent_groups_is_batch_spread(write, make_rows, make_state):
    rows = make_rows([1, 2, 3, 4])
    for row in rows:
        row["rewards/other/std"] = 0.1  # two functions: the first sign is gone
    rows[2] |= {"frac_reward_zero_std": 1.0, "reward_std": 0.107}
    (run,) = read_runs(write("x/trainer_state.json", make_state(rows)))
    assert run.missing["reward_std_within_group"] == "not applicable"
    rows[2]["reward_std"] = 0.0
    (run,) = read_runs(write("y/trainer_state.json", make_state(rows)))
    assert "reward_std_within_group" in run.series


def test_entropy_of_zero_was_not_computed(write, make_rows, make_state):
    rows = [row | {"entropy": 0.0} for row in make_rows([1, 2, 3])]
    (run,) = read_runs(write("x/trainer_state.json", make_state(rows)))
    assert run.missing["entropy"] == "not logged"
    assert any("entropy" in warning for warning in run.warnings)


def test_windows_of_logging_steps(write, make_rows, make_state):
    path = write("x/trainer_state.json", make_state(make_rows([10, 20, 30]), logging_steps=10))
    assert read_runs(path)[0].logging_steps == 10
    first = write("y/trainer_state.json", make_state(make_rows([1, 10, 20, 30]), logging_steps=10))
    assert read_runs(first)[0].logging_steps == 10
    share = write("z/trainer_state.json", make_state(make_rows([10, 20, 30]), logging_steps=0.05))
    assert read_runs(share)[0].logging_steps == 10
    epochs = write("w/trainer_state.json", make_state(make_rows([7, 14, 21]), logging_steps=500))
    (run,) = read_runs(epochs)
    assert run.logging_steps == 7
    assert any("500" in warning for warning in run.warnings)


def test_a_resumed_run_keeps_the_later_rows(write, make_rows, make_state):
    first, second = make_rows(list(range(1, 13))), make_rows(list(range(9, 15)))
    for row in second:
        row["reward"] = 0.99
    (run,) = read_runs(write("x/trainer_state.json", make_state(first + second)))
    assert run.step.tolist() == list(range(1, 15))
    assert run.reward[8:].tolist() == [0.99] * 6
    assert run.reward[7] == first[7]["reward"]
    assert any("steps 9 to 12 were logged twice" in warning for warning in run.warnings)


def test_a_reset_is_another_run(write, make_rows, make_state):
    rows = make_rows([1, 2, 3, 4, 5, 1, 2, 3])
    first, second = read_runs(write("x/trainer_state.json", make_state(rows)))
    assert (first.id, second.id) == ("x:1", "x:2")
    assert first.step.tolist() == [1, 2, 3, 4, 5]
    assert second.step.tolist() == [1, 2, 3]
    assert any("anew" in line for line in second.warnings)


def test_an_aborted_attempt_is_left_out(write, make_rows, make_state):
    rows = make_rows([*range(1, 6), *range(1, 61)])
    (run,) = read_runs(write("x/trainer_state.json", make_state(rows)))
    assert run.step.tolist() == list(range(1, 61))
    assert any("aborted" in line for line in run.warnings)


def test_the_closing_row_has_the_rest_of_the_last_window(write, make_rows, make_state):
    rows = make_rows([10, 20, 30])
    rest = {"step": 34, "reward": 0.9, "train_runtime": 12.5, "train_loss": 0.01, "epoch": 1.0}
    (run,) = read_runs(write("trainer_state.json", make_state([*rows, rest], logging_steps=10)))
    assert run.step.tolist() == [10, 20, 30]
    console = "\n".join(
        [
            *(str({k: v for k, v in row.items() if k != "step"}) for row in rows),
            str({k: v for k, v in rest.items() if k != "step"}),
        ]
    )
    bars = "\r".join(f" 88%|##| {n}/34 [00:01<00:02,  1.00s/it]" for n in range(1, 35))
    (run,) = read_runs(write("train.log", f"{bars}\n{console}\n"))
    assert run.reward.tolist() == [row["reward"] for row in rows]
