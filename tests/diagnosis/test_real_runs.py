"""Labelled public runs: every collapse is found where an eye sees it, health is left alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from advisor.diagnosis import diagnose
from advisor.model import cohort_of
from advisor.runs import PartialSettings

CASE = Path(__file__).parents[2] / "case_studies" / "diagnose"
COLLAPSES = 13
NEAR = 10.0
MOST_HEALTHY_FAILED = 0.05


@pytest.fixture(scope="module")
def judged(real_logs):
    """Index and labels of each run, with its diagnosis."""
    if not (real_logs / "INDEX.tsv").is_file():
        pytest.skip(f"no index beside the logs ({real_logs})")
    sys.path.insert(0, str(CASE))
    try:
        from run import labelled
    finally:
        sys.path.remove(str(CASE))
    return [{**row, "found": diagnose(row["run"])} for row in labelled(real_logs)]


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


@pytest.mark.evidence
def test_no_card_is_short_of_a_reason(judged):
    for row in judged:
        for card in row["found"].cards:
            assert card.headline, row["id"]
            if card.status in ("WARNING", "FAIL"):
                assert card.change, (row["id"], card.mode)
            if card.status == "NOT APPLICABLE":
                assert card.unknown, (row["id"], card.mode)


def completed(run):
    """Run with what a fit needs; runs of one file become siblings."""
    known = run.hyperparameters.model_dump(exclude_none=True)
    settings = {"learning_rate": 1e-6, "group_size": 8, "prompts_per_step": 8, **known}
    return run.with_updates(
        hyperparameters=PartialSettings(**settings),
        step_unit="optimizer",
        model=run.model or "m",
        task=run.task or "t",
        parameters=run.parameters or 1e9,
    )


@pytest.mark.evidence
def test_cards_and_figures_name_one_step(judged):
    """The event that is fitted lies later: a trailing mean is low only after the fall."""
    fallen = [row["run"] for row in judged if row["found"].collapse_step is not None]
    assert len(fallen) >= COLLAPSES
    differ = 0
    for run in map(completed, fallen):
        cohort = cohort_of([run])
        said = diagnose(run).collapse_step
        assert cohort.fell_from == (said,), run.id
        differ += cohort.collapse_step != (said,)
    assert differ >= 10
