"""Arithmetic of the closed loop, where PyTorch is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

FOLDER = Path(__file__).parents[2] / "case_studies" / "closed_loop"
CODE = """
import json, sys
sys.path.insert(0, {folder!r})
from methods import nearest
from run import checks, summary
rows = [
    {{"method": "advisor, small pilots", "place": [1e-3, 8, 1], "final": 0.9, "collapsed": False,
      "search_seconds": 1.0, "run_seconds": 2.0, "lower": 0.8, "upper": 0.95}},
    {{"method": "Optuna TPE", "place": [1e-4, 8, 1], "final": 0.5, "collapsed": True,
      "search_seconds": 1.0, "run_seconds": 2.0}},
]
found = summary([{{"task": "sort", "reward": 0.91}}], [{{"task": "sort", "seed": 1, "rows": rows}}])
print(json.dumps([nearest((2e-3, 32, 2)), found, checks(found)]))
"""


def test_regret_goals_and_the_nearest_configuration():
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(folder=str(FOLDER))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    nearest, found, checks = json.loads(done.stdout)
    assert nearest == [1e-3, 16, 1]
    assert found["advisor, small pilots"]["regret_mean"] == 0.01
    assert found["advisor, small pilots"]["inside_80"] == [1, 1]
    assert found["Optuna TPE"]["regret_worst"] == 0.41
    assert found["Optuna TPE"]["collapses"] == 1
    assert list(checks.values()) == [True, True, False]
