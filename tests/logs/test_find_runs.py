"""Files, ids, checkpoints."""

from __future__ import annotations

import pytest

from advisor.errors import InputError
from advisor.runs import read_runs

ROWS = [{"step": n, "reward": 0.5} for n in (1, 2, 3)]


def ids(runs):
    return [run.id for run in runs]


def test_a_folder_is_searched_at_every_depth(write_state, write, tmp_path):
    write_state("b/trainer_state.json")
    write_state("a/deep/trainer_state.json")
    write_state(".hidden/trainer_state.json")
    write("a/config.json", {"reward_fn": "exact", "reward": 1})
    write("a/results.csv", "model,score\nx,1\n")
    write("a/model.bin", b"\0\1\2")
    write("a/metrics.jsonl", ROWS)
    runs = read_runs(str(tmp_path))
    assert ids(runs) == ["a/deep", "a/metrics", "b"]
    assert all(run.path.startswith(str(tmp_path)) for run in runs)


def test_ids_are_as_short_as_unique(write_state, write, tmp_path):
    one = write_state("s1/x/trainer_state.json")
    two = write_state("s2/x/trainer_state.json")
    three = write("s2/metrics.jsonl", ROWS)
    assert ids(read_runs([one])) == ["x"]
    assert ids(read_runs([two, one, three])) == ["s1/x", "metrics", "s2/x"]
    assert ids(read_runs(one.parent)) == ["x"]
    assert ids(read_runs([one, one, tmp_path / "s1"])) == ["x"]


def test_relative_paths(write_state, tmp_path, monkeypatch):
    write_state("x/trainer_state.json")
    monkeypatch.chdir(tmp_path / "x")
    assert ids(read_runs("trainer_state.json")) == ["x"]
    assert ids(read_runs(".")) == ["x"]
    monkeypatch.chdir(tmp_path)
    assert ids(read_runs("x/trainer_state.json")) == ["x"]


def test_nested_checkpoints_are_one_run(write_state, tmp_path):
    for size in (1, 10, 20, 30):  # the first is too short to stand alone
        write_state(f"x/checkpoint-{size}/trainer_state.json", size=size)
    (run,) = read_runs(tmp_path)
    assert run.id == "x"
    assert run.step.size == 30
    assert "checkpoint-30" in run.path
    write_state("x/trainer_state.json", size=30)
    (run,) = read_runs(tmp_path)
    assert run.path == str(tmp_path / "x" / "trainer_state.json")
    (run,) = read_runs(tmp_path / "x" / "checkpoint-20")
    assert (run.id, run.step.size) == ("x", 20)


def test_checkpoints_of_two_runs_stay_apart(write, make_rows, make_state, tmp_path):
    write("x/checkpoint-5/trainer_state.json", make_state(make_rows([1, 2, 3, 4, 5])))
    rows = make_rows([1, 2, 3, 4, 5, 6])
    rows[0]["reward"] = 0.99
    write("x/checkpoint-6/trainer_state.json", make_state(rows))
    assert ids(read_runs(tmp_path)) == ["x/checkpoint-5", "x/checkpoint-6"]


def test_equal_runs_in_two_folders_both_stay(write_state, tmp_path):
    write_state("x/trainer_state.json")
    write_state("y/trainer_state.json", size=10)
    assert ids(read_runs(tmp_path)) == ["x", "y"]


def test_an_id_given_twice(write_state, write, tmp_path):
    write_state("x/trainer_state.json")
    write_state("y/trainer_state.json")
    write("pilots.toml", '[[run]]\npath = "x"\nid = "y"\n')
    with pytest.raises(InputError, match=r"key 'id': two runs have the id 'y'"):
        read_runs(tmp_path)
