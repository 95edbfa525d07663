"""The same in joblib's context of Ray, where it is installed: a small cluster of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from joblib import parallel_config
from mapped_functions import picky
from test_mapped import items_of

from advisor.common import mapped

ray = pytest.importorskip("ray", reason="Ray is not installed: grpo-advisor[ray]")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


def test_results_and_failures_are_those_of_processes(monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    from ray.util.joblib import register_ray

    ray.init("local", log_to_driver=False)
    register_ray()
    try:
        with parallel_config("ray", n_jobs=-1):
            found = mapped(picky, items_of(range(6)), task="t", keep=tmp_path / "keep")
    finally:
        ray.shutdown()
    assert [one.result for one in found.outcomes] == [0, 1, None, None, 4, 5]
    assert [one.kind for one in found.failed] == ["NotConvergedError", "ValueError"]
    again = mapped(picky, items_of(range(6)), task="t", keep=tmp_path / "keep")
    assert again.kept == 5
