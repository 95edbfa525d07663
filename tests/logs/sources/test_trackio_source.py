"""A project of Trackio, whose own client says where it lies."""

from __future__ import annotations

import pytest
from processes import python

pytest.importorskip("trackio", reason="the extra 'trackio' is not installed")

WRITE = """
import trackio
runs = ("a", "train/reward", 1e-6), ("sft", "loss", 2e-6), ("b", "train/reward", 3e-6)
for name, key, rate in runs:
    trackio.init(project="grpo", name=name, config={"learning_rate": rate, "num_generations": 8})
    for step in range(1, 701):
        trackio.log({"train/global_step": step, key: 0.2 + 0.0005 * step}, step=step)
    trackio.finish()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("trackio")
    env = {"TRACKIO_DIR": str(place / "own"), "HOME": str(place), "PATH": "/usr/bin:/bin"}
    done = python("-c", WRITE, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return place / "own"


def test_project_is_read_row_by_row(folder, call):
    found = call("inspect", "trackio:grpo", "--json", TRACKIO_DIR=str(folder))
    assert found.code == 0, found.err
    runs = {run["id"].rpartition(":")[2]: run for run in found.json["runs"]}
    assert set(runs) == {"a", "b"}
    assert runs["a"]["rows"] == 700
    assert runs["b"]["hyperparameters"]["learning_rate"] == 3e-6
    assert runs["b"]["hyperparameters"]["group_size"] == 8


def test_run_without_a_reward_is_named(folder, call):
    found = call("inspect", "trackio:grpo", "--json", TRACKIO_DIR=str(folder))
    (unread,) = found.json["unread"]
    assert unread["reason"].startswith("run 'sft': no key holds the train reward")


def test_unknown_project(folder, call):
    found = call("inspect", "trackio:nothing", TRACKIO_DIR=str(folder))
    assert found.code == 2
    assert "no project 'nothing'" in found.err
    assert "it has: grpo" in found.err
    assert "TRACKIO_DIR" in found.err
