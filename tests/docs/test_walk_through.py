"""The walk-through runs from its first cell to its last, and calls what users have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from processes import python
from processor_time import of_children, slowness

from advisor.study import Study

FOLDER = Path(__file__).parents[2] / "docs" / "walk_through"
MOST_SECONDS = 60.0
"""Of processor time, which other processes on the machine do not lengthen."""


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    before = of_children()
    done = python(FOLDER / "walk_through.py", "--quick", cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder, done.stdout, of_children() - before


@pytest.mark.evidence
def test_it_ends_in_a_minute_with_a_config_and_a_study(walked):
    folder, printed, seconds = walked
    assert seconds < MOST_SECONDS * slowness()
    assert {path.name for path in folder.iterdir()} == {"posterior.nc", "grpo.yaml", "walk-through"}
    study = Study.load(folder / "walk-through")
    posterior, advice = study.posterior, study.recommendation
    config = yaml.safe_load((folder / "grpo.yaml").read_text())
    assert advice.kind == "recommendation"
    assert config["learning_rate"] == advice.settings.learning_rate
    assert config["max_steps"] == advice.steps == 180
    assert (folder / "walk-through" / "report.html").stat().st_size > 0
    assert "m_lr3e-3_g8_k2: Collapse." in printed
    assert "s_lr1e-2_g32_k4: Collapse." in printed
    for index in posterior.table.index:
        assert index in printed
    assert advice.summary.splitlines()[0] in printed


@pytest.mark.evidence
def test_at_ten_times_the_rate_survival_is_a_toss_up(walked):
    rows = re.findall(r"^(\d[\d.e-]*) +([\d.]+) +[\d.]+ +[\d.]+ +([\d.]+)$", walked[1], re.M)
    assert len(rows) == 3
    advice = Study.load(walked[0] / "walk-through").recommendation
    assert float(rows[0][1]) == pytest.approx(advice.reward.mean, abs=6e-5)
    assert float(rows[0][2]) > 0.99
    assert 0.3 < float(rows[2][2]) < 0.7


def test_every_cell_has_a_heading_and_calls_public_verbs():
    text = (FOLDER / "walk_through.py").read_text()
    code = len(re.findall(r"^# %%$", text, re.M))
    headings = len(re.findall(r"^# %% \[markdown\]$", text, re.M))
    assert code == headings == 8
    verbs = {"read_runs", "diagnose", "fit", "describe", "advise"}
    assert set(re.findall(r"\badvisor\.([a-z]\w+)\(", text)) - {"demo_folder"} == verbs
    assert set(re.findall(r"\bstudy\.(\w+)\(", text)) == {"what_if", "export", "save"}
