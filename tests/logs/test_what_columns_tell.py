"""Settings, kinds of rows and spreads that only the numbers and the names of columns give away."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from simulated_runs import Plan, rising

from advisor import inspect, read_runs
from advisor.common import Kind, kinds
from advisor.errors import InputError
from advisor.model import build_cohort

ROWS = 60
REWARD = np.clip(rising(ROWS) + 0.03 * np.random.default_rng(1).standard_normal(ROWS), 0.01, 0.99)


def lines(path, **columns):
    rows = [
        {"step": n + 1, **{key: float(values[n]) for key, values in columns.items()}}
        for n in range(ROWS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def only(path, **given):
    (run,) = inspect(path, **given).runs
    return run


def test_a_total_batch_size_that_trl_prints_is_used_where_the_group_is_given(tmp_path):
    rows = [{"loss": 0.01, "reward": float(r), "completions/mean_length": 9.0} for r in REWARD]
    head = [
        "  Instantaneous batch size per device = 2",
        "  Total train batch size (w. parallel, distributed & accumulation) = 32",
        "  Gradient Accumulation steps = 4",
    ]
    path = tmp_path / "train.log"
    path.write_text("\n".join([*head, *map(str, rows)]))
    assert only(path).hyperparameters.prompts_per_step is None
    told = only(path, overrides={"group_size": 8})
    assert told.hyperparameters.prompts_per_step == 4
    assert "total_train_batch_size 32" in told.derivations["prompts_per_step"]


@pytest.mark.parametrize("completions", [16, 64])
def test_a_spread_of_the_batch_gives_itself_away_by_its_mean(tmp_path, completions):
    share = np.round(REWARD * completions) / completions
    share = np.clip(share, 1 / completions, 1 - 1 / completions)
    batch = np.sqrt(share * (1 - share) * completions / (completions - 1))
    told = only(lines(tmp_path / "a.jsonl", reward=share, reward_std=batch, kl=0 * share))
    assert "reward_std_within_group" not in told.series
    assert any("over the whole batch" in line for line in told.warnings)
    # Within groups it is less, and by how much depends on the prompts of a step.
    within = 0.8 * batch * (1 - 0.2 * np.random.default_rng(2).random(ROWS))
    kept = only(lines(tmp_path / "a.jsonl", reward=share, reward_std=within, kl=0 * share))
    assert "reward_std_within_group" in kept.series


@pytest.mark.parametrize(("spread", "reward"), [(-1e300, 0.5), (0.4, 1e-310), (1e300, 1e-310)])
def test_a_spread_that_no_counting_gives_is_no_share(tmp_path, spread, reward):
    share, spreads = REWARD.copy(), np.sqrt(REWARD * (1 - REWARD))
    share[3], spreads[3] = reward, spread
    told = only(lines(tmp_path / "a.jsonl", reward=share, reward_std=spreads, kl=0 * share))
    assert told.step.size == ROWS


def test_rows_that_count_what_they_evaluated_are_evaluations(tmp_path):
    path = tmp_path / "results.csv"

    def write(**more):
        with path.open("w", newline="") as out:
            table = csv.writer(out)
            table.writerow(["step", "reward", "num_eval_prompts", *more])
            table.writerows([[n * 10, r, 200, *more.values()] for n, r in enumerate(REWARD[:20])])

    write()
    assert any("held-out evaluations" in line for line in only(path).assumptions)
    # What measures an update is a step of training, whatever it counts beside.
    write(loss=0.1)
    assert not any("held-out evaluations" in line for line in only(path).assumptions)


def test_rows_of_one_split_that_tests_are_evaluations(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["step", "reward", "split"])
        table.writerows([[n, r, "test"] for n, r in enumerate(REWARD[:20])])
    assert any("held-out evaluations" in line for line in only(path).assumptions)


def test_lines_that_were_cut_before_their_reward_are_told(tmp_path):
    path = tmp_path / "output.log"
    text = []
    for step, reward in enumerate(REWARD, 1):
        line = f"step:{step} - actor/entropy:0.1 - actor/lr:1e-06"
        if step % 10 == 0:
            line += "".join(f" - val-core/x{k}/reward/mean@1:0.5" for k in range(200))
        text.append(f"{line} - critic/score/mean:{reward:.4f}"[:4096])
    path.write_text("\n".join(text) + "\n")
    run = only(path)
    assert run.step.size == ROWS - 6
    assert any(line.startswith("6 lines, cut before the reward") for line in run.warnings)


def build(*runs):
    return build_cohort(runs, {}, {})


def test_runs_with_ceilings_of_1_and_2_do_not_share_them():
    full = np.minimum(1.0, 1.3 * rising(ROWS))
    twice = 2 * rising(ROWS, end=0.75)
    with pytest.raises(InputError, match="on different scales"):
        build(Plan().run(full, "one"), Plan().run(twice, "two"))
    # A run that never touches 1 may belong to the other's scale, which is said.
    found = build(Plan().run(rising(ROWS), "one"), Plan().run(twice, "two"))
    assert Kind.ONE_SCALE in kinds(found.notes)
    parted = Plan().run(rising(ROWS), "one").with_updates(parts={"correct": rising(ROWS)})
    with pytest.raises(InputError, match="on different scales"):
        build(parted, Plan().run(twice, "two"))


def test_rewards_named_after_their_runs_are_runs(tmp_path):
    columns = {"lr_1e-5/reward": REWARD, "lr_3e-5/reward": REWARD / 2, "lr_1e-5/kl": REWARD}
    lines(tmp_path / "a.jsonl", **columns)
    first, second = inspect(tmp_path).runs
    assert [first.id, second.id] == ["lr_1e-5", "lr_3e-5"]
    np.testing.assert_allclose(second.reward, REWARD / 2)
    assert "kl" in first.series
    assert "kl" not in second.series
    assert any("by the name of its column" in line for line in first.assumptions)
    # Control: with a reward of the whole these are its parts, and names of tasks are none of runs.
    assert only(lines(tmp_path / "a.jsonl", reward=REWARD, **columns)).id == "a"
    lines(tmp_path / "a.jsonl", **{"gsm8k/reward": REWARD, "math/reward": REWARD})
    assert not inspect(tmp_path).runs


def test_columns_mapped_together_are_runs(tmp_path):
    path = lines(tmp_path / "a.jsonl", run_a=REWARD, run_b=REWARD / 2, kl=REWARD)
    (unread,) = inspect(path).unread
    assert "where columns are runs, name all of them" in unread.reason
    (tmp_path / "pilots.toml").write_text(
        '[columns]\nreward = "run_a, run_b"\n[[run]]\nid = "run_b"\nlearning_rate = 1e-5\n'
    )
    for found in (inspect(path), inspect(tmp_path)):
        first, second = found.runs
        assert [first.id, second.id] == ["run_a", "run_b"]
        assert second.hyperparameters.learning_rate == 1e-5
        np.testing.assert_allclose(first.reward, REWARD)
        assert "kl" in first.series
    with pytest.raises(InputError, match="from 'run_c', which the log lacks"):
        read_runs(path, columns={"reward": "run_a,run_c"}, sidecar=None)
