"""The study of scale: its results hold what the pages say, and its cohorts are pure functions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from studies import STUDIES, modules_of

FOLDER = STUDIES / "scale"
ENTRIES = ("log_slope", "headroom_logit", "rate_learning_rate", "rate_group_size")


def result(name):
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cohorts():
    with modules_of("scale", ("cohorts",)) as found:
        yield found["cohorts"]


def test_a_cohort_is_a_function_of_its_number_and_population(cohorts):
    def digests(number, population):
        return [run.digest for run in cohorts.made_cohort(number, population, 20)]

    assert digests(3, cohorts.TEAM) == digests(3, cohorts.TEAM)
    assert not set(digests(3, cohorts.TEAM)) & set(digests(4, cohorts.TEAM))
    assert not set(digests(3, cohorts.TEAM)) & set(digests(3, cohorts.STRANGERS))


def test_what_was_learned_is_what_it_was_made_from():
    told = result("history")["team"]
    for entry in ENTRIES:
        (mean, spread), learned = told["learned"][entry]["made_from"], told["learned"][entry]
        error = learned["learned"][1] / np.sqrt(told["learned_from"])
        # What the page says falls short: means beyond chance, spreads of levels too small.
        assert abs(learned["learned"][0] - mean) < 0.45 * spread
        assert 0.5 * spread < learned["learned"][1] < 1.1 * spread
        assert abs(learned["base"][0] - mean) > 2 * error or entry == "rate_group_size"


def test_forecasts_of_a_new_study_are_best_under_the_preset_of_its_team():
    told = result("history")["forecasts"]
    assert (told["cohorts"], told["runs_asked"]) == (40, 280)
    assert told["scores"]["team"]["held_by_80"] == pytest.approx(0.8, abs=0.03)
    for apart in told["crps_less_that_of_team"].values():
        assert apart["mean"] > 4 * apart["standard_error"]
