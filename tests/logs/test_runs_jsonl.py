"""One run per line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor.errors import InputError
from advisor.runs import read_runs

TINY = {
    "task": "sort", "size": "s", "params": 26894, "lr": 1e-3, "G": 8, "K": 2, "prompts": 16,
    "beta1": 0.9, "use_is": False, "base_acc": 0.1, "final_eval": 0.9, "seconds": 7.1,
    "reward": [0.1, 0.2, 0.3], "reward_std": [0.1, 0.1, 0.0], "frac_reward_zero_std": [0, 0.5, 1],
    "entropy": [0.9, 0.9, 0.8], "grad_norm": [0.5, 0.4, 1.0], "clip_ratio": [0.0, 0.2, 0.0],
}  # fmt: skip
OWN = {"id": "mine", "learning_rate": 1e-3, "group_size": 4, "reward": [0.1, 0.2, 0.3]}


def test_short_names(write):
    first, second = read_runs(write("sort_s.jsonl", [TINY, TINY | {"lr": 2e-3}]))
    assert (first.id, second.id) == ("sort_s:1", "sort_s:2")
    assert (first.model, first.task, first.parameters) == ("tiny-s", "sort", 26894)
    settings = first.hyperparameters
    assert settings.refresh_interval == 2
    assert settings.epochs_per_refresh == 1
    assert settings.momentum == 0.9
    assert settings.importance_ratio is False
    assert settings.optimizer == "adamw"
    assert settings.prompts_per_step == 16
    assert second.hyperparameters.learning_rate == 2e-3
    assert first.step.tolist() == [1, 2, 3]
    assert first.series["silent_group_share"].tolist() == [0, 0.5, 1]
    assert first.series["reward_std_within_group"].tolist() == [0.1, 0.1, 0.0]
    assert first.eval_step.tolist() == [0, 3]
    assert first.eval_reward.tolist() == [0.1, 0.9]
    assert first.keys_ignored == ("seconds",)
    assert first.warnings == first.assumptions == ()


def test_own_names_and_ids(write):
    (run,) = read_runs(write("a.jsonl", [OWN | {"model": "Qwen2.5-7B", "step": [10, 20, 30]}]))
    assert run.id == "mine"
    assert run.hyperparameters.group_size == 4
    assert run.hyperparameters.optimizer is None
    assert run.step.tolist() == [10, 20, 30]
    assert run.parameters == 7e9
    assert any("7e+09" in line for line in run.assumptions)


def test_holes_in_lists(write):
    row = OWN | {"reward": [0.1, float("nan"), 0.3, 0.4], "entropy": [1.0, None, 1.0, 1.0]}
    (run,) = read_runs(write("a.jsonl", [row]))
    assert np.isnan(run.reward).tolist() == [False, True, False, False]
    assert run.missing["reward"] == "not finite"
    assert run.missing["entropy"] == "not logged"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": []}, r"row 2, key 'reward': no row has a reward"),
        ({"reward": [None, None]}, r"row 2, key 'reward': no row has a reward"),
        ({"reward": 0.5}, r"row 2, key 'reward': no row has a reward"),
        ({"reward": [0.1, "x"]}, r"row 2, key 'reward': the reward of this row is 'x'"),
        ({"reward": [[1], 2]}, r"row 2, key 'reward': .*only 1 row"),
        ({"reward": [float("nan"), float("inf")]}, r"row 2.*2 of 2 rewards are NaN, infinite"),
        (
            {"reward": [0.1, 0.2]},
            r"row 2, key 'reward': run 'a:2' has only 2 rows with a reward. Lo",
        ),
        ({"reward": [0.1, None, None]}, r"row 2.* only 1 row with a reward"),
        ({"step": [2, 1.5, 3]}, r"row 2, key 'step': .*not a whole number"),
        ({"group_size": -4}, r"row 2, key 'group_size': -4 is not allowed"),
        ({"learning_rate": "fast"}, r"row 2, key 'learning_rate': 'fast' is not allowed"),
    ],
)
def test_bad_lines_are_named(write, change, message):
    bad = {key: value for key, value in (OWN | change).items() if key != "id"}
    path = write("a.jsonl", [OWN, bad])
    with pytest.raises(InputError, match=message) as caught:
        read_runs(path)
    assert caught.value.path == str(path)
    assert caught.value.advice


def test_a_cut_line_is_named(write):
    text = json.dumps(OWN) + "\n" + json.dumps(OWN)[:40]
    with pytest.raises(InputError, match=r"row 2: this is not valid JSON.*Copy the file again"):
        read_runs(write("a.jsonl", text))


def test_doubled_ids(write):
    with pytest.raises(InputError, match=r"key 'id': two runs have the id 'mine'"):
        read_runs(write("a.jsonl", [OWN, OWN]))


def test_what_is_not_one_value_per_reward_is_left_out(write):
    (run,) = read_runs(write("a.jsonl", [OWN | {"entropy": [1.0], "step": [1]}]))
    assert run.missing["entropy"] == "not logged"
    assert run.step.tolist() == [1, 2, 3]
    assert "entropy, step: not one value per reward, and left out" in run.warnings


def test_entries_by_id(write, tmp_path):
    rows = [{k: v for k, v in OWN.items() if k != "id"}] * 2
    write("a.jsonl", [rows[0], rows[1] | {"reward": [0.5, 0.6, 0.7]}])
    write(
        "pilots.toml",
        '[defaults]\ntask = "sort"\n[[run]]\nid = "a:2"\nprompts_per_step = 4\n'
        '[[run]]\npath = "a.jsonl"\nid = "1"\nprompts_per_step = 2\n'
        '[[run]]\npath = "a.jsonl"\nmomentum = 0.5\n',
    )
    first, second = read_runs(tmp_path)
    assert (first.hyperparameters.prompts_per_step, first.hyperparameters.momentum) == (2, 0.5)
    assert (second.hyperparameters.prompts_per_step, second.hyperparameters.momentum) == (4, 0.5)
    assert first.task == second.task == "sort"


def test_an_unknown_id(write, tmp_path):
    write("a.jsonl", [OWN])
    write("pilots.toml", '[[run]]\nid = "mime"\nmomentum = 0.5\n')
    with pytest.raises(InputError, match=r"row 1, key 'id': no run has the id 'mime'.*'mine'"):
        read_runs(tmp_path)
