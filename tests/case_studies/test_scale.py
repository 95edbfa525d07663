"""The study of scale: its results hold what the pages say, and its cohorts are pure functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from studies import STUDIES, modules_of

FOLDER = STUDIES / "scale"
CAPTURED = {"stdout": subprocess.PIPE, "text": True}
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


def test_every_engine_gave_the_same_and_lost_nothing():
    told = result("engines")
    assert told["worker_was_killed"]
    assert {"processes", "dask", "dask, a worker killed"} <= told["engines"].keys()
    assert all(one["equal"] and one["lost"] == 0 for one in told["engines"].values())
    assert told["engines"]["processes"]["wall_over_bare_pool"] <= 1.1


SPENT_BY = """
import subprocess, sys
from engines import CLOCK_TICKS, processor_seconds
before = processor_seconds()
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
print((processor_seconds() - before) * CLOCK_TICKS)
"""


@pytest.mark.evidence
def test_processor_seconds_count_what_this_process_started():
    def ticks_of(code):
        # A process of its own: others that the test worker has started come and go.
        run = [sys.executable, "-c", SPENT_BY, code]
        return float(subprocess.run(run, check=True, cwd=FOLDER, **CAPTURED).stdout)

    busy = ticks_of("import time\nwhile time.process_time() < 0.5: pass")
    # Whole ticks are told, rounded down, of a process and of its children, of user and of system.
    assert busy > 0.5 * os.sysconf("SC_CLK_TCK") - 4
    assert ticks_of("import time; time.sleep(0.5)") < busy / 2


def test_what_was_learned_is_what_it_was_made_from():
    told = result("history")["team"]
    for entry in ENTRIES:
        (mean, spread), learned = told["learned"][entry]["made_from"], told["learned"][entry]
        error = learned["learned"][1] / np.sqrt(told["learned_from"])
        # What the page says falls short: means beyond chance, spreads of levels too small.
        assert abs(learned["learned"][0] - mean) < 0.45 * spread
        assert 0.5 * spread < learned["learned"][1] < 1.1 * spread
        assert abs(learned["base"][0] - mean) > 2 * error or entry == "rate_group_size"


def test_exponents_of_a_cohort_miss_by_their_errors_and_levels_by_half_of_theirs():
    told = result("history")["misses"]
    for entry in ("rate_learning_rate", "rate_group_size"):
        assert told[entry]["in_own_errors"] == pytest.approx(1, abs=0.1)
    for entry in ("log_slope", "headroom_logit"):
        assert told[entry]["in_own_errors"] == pytest.approx(0.5, abs=0.1)


def test_forecasts_of_a_new_study_are_best_under_the_preset_of_its_team():
    told = result("history")["forecasts"]
    assert (told["cohorts"], told["runs_asked"]) == (40, 280)
    assert told["scores"]["team"]["held_by_80"] == pytest.approx(0.8, abs=0.03)
    for apart in told["crps_less_that_of_team"].values():
        assert apart["mean"] > 4 * apart["standard_error"]


def test_strangers_and_the_preset_before_lose_on_held_out_cohorts():
    told = result("history")["held_out"]
    for name in ("strangers", "small_models"):
        gain = told[f"team_over_{name}"]
        assert gain["mean"] > 4 * gain["standard_error"]


def test_a_thousand_studies_are_learned_from_within_the_bounds():
    told = result("history")["population_step"]
    assert (told["cohorts"], told["seconds"] <= 120) == (1000, True)
    assert told["peak_mb_of_the_process"] <= 2000
