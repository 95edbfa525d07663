"""The same on Ray, where it is installed: one small cluster of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mapped_functions import picky, third
from test_mapped import items_of

from advisor.common import engine_of, mapped
from advisor.errors import InputError

pytest.importorskip("ray", reason="Ray is not installed: grpo-advisor[ray]")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


def test_results_and_failures_are_those_of_processes(monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    local = engine_of("ray://local")
    found = mapped(picky, items_of(range(6)), task="t", engine=local, keep=tmp_path / "keep")
    assert [one.result for one in found.outcomes] == [0, 1, None, None, 4, 5]
    assert [one.kind for one in found.failed] == ["NotConvergedError", "ValueError"]
    again = mapped(picky, items_of(range(6)), task="t", keep=tmp_path / "keep")
    assert again.kept == 5


def test_a_cluster_that_is_not_there_is_one_sentence():
    with pytest.raises(InputError, match=r"no cluster answers at ray://127\.0\.0\.1:9") as refused:
        mapped(third, items_of([1]), task="t", engine=engine_of("ray://127.0.0.1:9"))
    assert "\n" not in str(refused.value)
