"""One log, and one answer, pass few rooms and go from one to the next rarely."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from processes import python

WALK = Path(__file__).parent / "walk_of_a_log.py"

MOST_MODULES, MOST_SWITCHES = 25, 250


def walked(*flags):
    """Counted in a fresh process: caches that other tests filled would hide calls."""
    return json.loads(python(WALK, *flags, check=True).stdout)


@pytest.mark.evidence
def test_one_log_passes_few_modules():
    walk = walked()
    assert (walk["runs"], walk["rows"]) == (1, 60)
    assert {"runs/logs/read.py", "runs/logfiles/logged.py", "runs/pilot_run.py"} <= set(
        walk["calls_by_module"]
    )
    assert walk["modules"] <= MOST_MODULES, walk["calls_by_module"]
    assert walk["switches"] <= MOST_SWITCHES, walk["switches_by_pair"]


MOST_SWITCHES_OF_AN_ANSWER = 950
"""Configurations that were evaluated one after the other made 30,547, those of each refresh
interval by themselves 7,520; with a table that the search looks up, laws that are computed once
for a configuration, and array functions that are passed on, 1,032; and since the worth of a run is
kept with it, 911."""


@pytest.mark.evidence
def test_configurations_of_an_answer_are_evaluated_together():
    walk = walked("--advise")
    assert walk["kind"] == "recommendation"
    assert walk["switches"] <= MOST_SWITCHES_OF_AN_ANSWER, walk["switches_by_pair"]


MOST_SWITCHES_OF_A_PAGE = 2_200
"""The sliders' grid asked plan by plan for its rewards made 55,890; stacked, 2,064."""


@pytest.mark.evidence
def test_configurations_of_a_page_are_evaluated_together():
    walk = walked("--page")
    # A grid that fails leaves a page without sliders, and few switches.
    assert walk["has_sliders"]
    assert walk["switches"] <= MOST_SWITCHES_OF_A_PAGE, walk["switches_by_pair"]
