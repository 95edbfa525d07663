"""The whole way through TRL, in short, where TRL is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl")

SCRIPT = Path(__file__).parents[2] / "case_studies" / "trl_end_to_end" / "run.py"


def test_pilots_advice_export_and_the_run_as_advised(tmp_path):
    out = tmp_path / "trl.json"
    done = subprocess.run(
        [sys.executable, SCRIPT, "--quick", "--out", out],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["manifest"]["checks"]["the callback saw the last step"]
    assert found["came"]["finals"][0] > 2 * found["pilots"]["lr0.001_g4_i1"][0]
    assert out.with_suffix(".svg").exists()
