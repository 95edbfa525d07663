"""Labelled public runs: every collapse is found where an eye sees it, health is left alone."""

from __future__ import annotations

import pytest
from studies import modules_of

from advisor.diagnosis import diagnose

COLLAPSES = 13
NEAR = 10.0
MOST_HEALTHY_FAILED = 0.05


@pytest.fixture(scope="module")
def judged(real_logs):
    """Index and labels of each run, with its diagnosis."""
    if not (real_logs / "INDEX.tsv").is_file():
        pytest.skip(f"no index beside the logs ({real_logs})")
    with modules_of("diagnose", ("run",)) as study:
        rows = study["run"].labelled(real_logs)
    return [{**row, "found": diagnose(row["run"])} for row in rows]


@pytest.mark.evidence
def test_every_collapse_of_the_index_is_found_in_time(judged):
    collapsed = [row for row in judged if row["what_happened"].startswith("collapse")]
    assert len(collapsed) == COLLAPSES
    for row in collapsed:
        step = row["found"].collapse_step
        assert step is not None, row["id"]
        assert abs(step - float(row["onset_step"])) <= NEAR, row["id"]


@pytest.mark.evidence
def test_healthy_runs_are_left_alone(judged):
    healthy = [row for row in judged if row["verdict"] == "healthy"]
    failed = [row["id"] for row in healthy if row["found"].verdict == "FAIL"]
    assert len(healthy) >= 90
    assert len(failed) <= MOST_HEALTHY_FAILED * len(healthy), failed


@pytest.mark.evidence
def test_what_fell_and_came_back_has_not_collapsed(judged):
    recovered = [row for row in judged if row["verdict"] == "recovered"]
    assert len(recovered) >= 8
    assert not [row["id"] for row in recovered if row["found"].collapse_step is not None]
