"""Runs that W&B's, MLflow's and Trackio's own clients logged, offline, and are read back."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pytest
from processes import python

pytestmark = pytest.mark.evidence

STEPS = 40
RATES = {"slow": 1e-6, "fast": 4e-6}

LOG = """
import sys
name, rate, steps = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
config = {"learning_rate": rate, "num_generations": 8, "num_iterations": 2}
rows = [
    {"train/global_step": step, "train/reward": 0.2 + rate * 1e4 * step, "train/kl": 0.01}
    for step in range(1, steps + 1)
]
"""

WANDB = """
import wandb
run = wandb.init(project="grpo", name=name, config=config, mode="offline")
for row in rows:
    run.log(row)
run.finish()
"""

MLFLOW = """
import mlflow
mlflow.set_experiment("grpo")
with mlflow.start_run(run_name=name):
    mlflow.log_params(config)
    for row in rows:
        step = row.pop("train/global_step")
        mlflow.log_metrics(row, step=step)
"""

TRACKIO = """
import trackio
trackio.init(project="grpo", name=name, config=config)
for row in rows:
    trackio.log(row, step=row["train/global_step"])
trackio.finish()
"""


def logged(client: str, folder: Path, **env: str) -> None:
    """Log the runs as a trainer would, each in a process of its own that knows no login."""
    known = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}
    for name, rate in RATES.items():
        where = {"env": known | env, "cwd": folder, "timeout": 300}
        done = python("-c", LOG + client, name, rate, STEPS, **where)
        assert done.returncode == 0, done.stderr[-2000:]


READ = """
import json, sys
import advisor
for run in advisor.read_runs(sys.argv[1]):
    own = run.hyperparameters
    settings = own.learning_rate, own.group_size, own.epochs_per_refresh
    print(json.dumps([settings, run.step.tolist(), run.reward.tolist()]))
"""


def read_back(call: Any, place: str, **env: str) -> None:
    """What `advisor.read_runs` makes of a place is what was logged there; `inspect` takes it."""
    found = call(place, code=READ, **env)
    assert found.code == 0, found.err
    lines = sorted(json.loads(line) for line in found.out.splitlines())
    assert [settings for settings, *_ in lines] == [[rate, 8, 2] for rate in RATES.values()]
    for (rate, *_), steps, rewards in lines:
        assert steps == list(range(1, STEPS + 1))
        np.testing.assert_allclose(rewards, [0.2 + rate * 1e4 * step for step in steps])
    table = call("inspect", place, "--quiet", **env)
    assert table.code == 0, table.err


def test_wandb_offline(tmp_path, call):
    pytest.importorskip("wandb", reason="the extra 'wandb' is not installed")
    logged(WANDB, tmp_path, WANDB_MODE="offline", WANDB_DIR=str(tmp_path))
    read_back(call, str(tmp_path / "wandb"))


def test_mlflow_database(tmp_path, call):
    pytest.importorskip("sqlalchemy", reason="the whole of MLflow is not installed")
    pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
    uri = f"sqlite:///{tmp_path / 'runs.db'}"
    logged(MLFLOW, tmp_path, MLFLOW_TRACKING_URI=uri)
    read_back(call, "mlflow:grpo", MLFLOW_TRACKING_URI=uri)


@pytest.fixture
def server(tmp_path):
    """Address of a server of MLflow's own on this machine."""
    pytest.importorskip("flask", reason="the whole of MLflow is not installed")
    pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    store = ["--backend-store-uri", f"sqlite:///{tmp_path / 'server.db'}"]
    place, log = tmp_path / "server", f"http://127.0.0.1:{port}"
    place.mkdir()
    with (place / "log").open("wb") as written:
        process = subprocess.Popen(
            [*command, *store], cwd=place, stdout=written, stderr=written, start_new_session=True
        )
    try:
        for _ in range(240):
            try:
                urlopen(f"{log}/health", timeout=2).close()
                break
            except (URLError, OSError):
                assert process.poll() is None, (place / "log").read_text()[-2000:]
                time.sleep(0.5)
        yield log
    finally:
        os.killpg(process.pid, 15)
        process.wait(60)


def test_mlflow_server(server, tmp_path, call):
    logged(MLFLOW, tmp_path, MLFLOW_TRACKING_URI=server)
    read_back(call, f"mlflow:{server}#grpo")
    read_back(call, "mlflow:grpo", MLFLOW_TRACKING_URI=server)


def test_trackio_store(tmp_path, call):
    pytest.importorskip("trackio", reason="the extra 'trackio' is not installed")
    store = {"TRACKIO_DIR": str(tmp_path / "own")}
    logged(TRACKIO, tmp_path, **store)
    read_back(call, "trackio:grpo", **store)
