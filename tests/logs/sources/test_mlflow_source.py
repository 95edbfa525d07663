"""Runs of an MLflow tracking server, through its own client, from a server on loopback."""

from __future__ import annotations

import pytest
from mlflow_server import Mlflow, Run

pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")

STEPS = 600
PARAMS = {
    "learning_rate": "2e-06",
    "num_generations": "8",
    "model_name_or_path": "Qwen/Qwen2.5-0.5B",
}


def values(offset: float = 0.0, steps: int = STEPS) -> dict[str, list[tuple[int, float]]]:
    reward = [(s, 0.1 + offset + 0.5 * s / (s + 300)) for s in range(1, steps + 1)]
    return {
        "train/reward": reward,
        "train/learning_rate": [(s, 2e-6) for s in range(1, steps + 1)],
        "system/cpu": [(s, 12.0) for s in range(1, steps + 1)],
    }


@pytest.fixture(scope="module")
def server():
    runs = [
        Run("a" * 32, "calm-fox", PARAMS, values()),
        Run("b" * 32, "old-owl", PARAMS, values(0.01, 50), "FAILED"),
        Run("c" * 32, "sft", {}, {"loss": [(1, 0.5), (2, 0.4), (3, 0.3)]}),
    ]
    with Mlflow(runs) as mlflow:
        yield mlflow


def test_experiment_reads_as_files_do(server, call):
    found = call("inspect", f"mlflow:{server.url}#grpo/sweep", "--json")
    assert found.code == 0, found.err
    first, second = found.json["runs"]
    assert (first["id"], first["rows"], first["last_step"]) == ("calm-fox", STEPS, STEPS)
    assert first["hyperparameters"]["group_size"] == 8
    assert first["hyperparameters"]["learning_rate"] == 2e-6
    assert first["path"].endswith(f"#grpo/sweep/{'a' * 32}")
    assert first["warnings"] == []
    assert second["warnings"] == ["MLflow says of this run: failed"]
    (unread,) = found.json["unread"]
    assert unread["path"].endswith("c" * 32)


@pytest.mark.parametrize("name", ["grpo/sweep", "3"])
def test_tracking_server_of_the_environment(server, call, name):
    found = call("inspect", f"mlflow:{name}", "--json", MLFLOW_TRACKING_URI=server.url)
    assert [run["id"] for run in found.json["runs"]] == ["calm-fox", "old-owl"]


def refused(found) -> str:
    assert found.code == 2, found
    assert "Internal error" not in found.err
    return found.err


def test_unknown_experiment(server, call):
    said = refused(call("inspect", f"mlflow:{server.url}#nothing"))
    assert "'nothing'" in said
    assert "MLFLOW_TRACKING_URI" in said


def test_an_experiment_without_runs(call):
    with Mlflow([]) as server:
        assert "there is no run in it" in refused(
            call("inspect", f"mlflow:{server.url}#grpo/sweep")
        )


def test_a_server_that_falls_silent(call):
    with Mlflow([]) as server:
        server.hangs = True
        try:
            # Long enough for the client to be imported within it.
            found = call("inspect", f"mlflow:{server.url}#grpo/sweep", silent=20)
        finally:
            server.hangs = False
    assert "did not answer for 20 seconds" in refused(found)


WRITE = """
import sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
run = client.create_run(client.create_experiment("grpo"), run_name="calm-fox").info.run_id
for name, value in (("learning_rate", "2e-06"), ("num_generations", "8")):
    client.log_param(run, name, value)
for step in range(1, 61):
    client.log_metric(run, "train/reward", 0.2 + 0.005 * step, step=step)
client.set_terminated(run)
"""


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_a_store_on_disk_is_opened_by_the_client(kind, tmp_path, call):
    allowed = {"MLFLOW_ALLOW_FILE_STORE": "true"}
    store = str(tmp_path / "mlruns") if kind == "folder" else f"sqlite:///{tmp_path}/mlflow.db"
    written = call(store, code=WRITE, **allowed)
    assert written.code == 0, written.err
    found = call("inspect", f"mlflow:{store}#grpo", "--json", **allowed)
    assert found.code == 0, found.err
    (run,) = found.json["runs"]
    assert (run["id"], run["rows"], run["last_step"]) == ("calm-fox", 60, 60)
    assert run["hyperparameters"]["learning_rate"] == 2e-6
    assert run["hyperparameters"]["group_size"] == 8


def test_a_folder_is_not_opened_without_leave(tmp_path, call):
    said = refused(call("inspect", f"mlflow:{tmp_path}/mlruns#grpo"))
    assert "MLFLOW_ALLOW_FILE_STORE=true" in said.rpartition(")")[2]
