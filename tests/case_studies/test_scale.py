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


@pytest.fixture(scope="module")
def study():
    with modules_of("scale", ("cohorts", "groups", "joint")) as found:
        yield found


def test_groups_of_both_ways_share_their_reference(study):
    made = study["groups"].made_groups("two sizes", 0, 4, 4)
    assert [(one.task, one.model) for one in made] == [
        (f"task {task}", model) for task in (0, 1) for model in ("tiny-s", "tiny-l")
    ]
    for world in study["groups"].WORLDS:
        made = study["groups"].made_groups(world, 0, 4, 4)
        rates = [np.mean(np.log(_of(one, "learning_rate"))) for one in made]
        assert np.ptp(rates) < 1e-12
        assert len({one.truth.reference for one in made}) == 1


def test_tasks_have_laws_of_their_own_where_the_world_says_so(study):
    def exponents(world):
        made = study["groups"].made_groups(world, 0, 4, 4)
        return {one.truth.population["rate.learning_rate"] for one in made}

    assert len(exponents("one law")) == 1
    assert len(exponents("laws of their own")) == 4


def test_two_stages_are_exact_where_posteriors_are_normal(study):
    """Three estimates of one number, and the posterior that all data give at once."""
    said, prior = [(1.0, 0.5), (2.0, 0.25), (None, None)], (0.0, 1.0)
    precision = 1 / 0.5**2 + 1 / 0.25**2 + 1
    mean, sd = study["joint"]._pooled(said, *prior, per_task=False)
    assert mean == pytest.approx((1.0 / 0.5**2 + 2.0 / 0.25**2) / precision)
    assert sd == pytest.approx(precision**-0.5)
    # A task that says nothing stays at its prior, and the others do not tell of it.
    mean, _ = study["joint"]._pooled(said, *prior, per_task=True)
    assert mean == pytest.approx((1.0 * 4 / 5 + 2.0 * 16 / 17 + 0.0) / 3)


def test_two_stages_forecast_what_a_joint_fit_does():
    """The bounds are those of the study's README."""
    told = result("joint")
    for case in told["cases"]:
        assert case["joint"]["largest_rhat"] < 1.01
        assert len(case["forecasts"]) == 2 * told["groups"]
    assert told["summary"].keys() == {"one law", "laws of their own", "two sizes"}
    for found in told["summary"].values():
        two = found["forecasts"]["two_stage"]
        assert two["difference_in_sd"]["largest_size"] < 0.5
        # Scored by new runs it is no worse than the joint fit.
        assert two["crps_less_that_of_joint"]["mean"] < 0
        # Control: the prior alone is no such answer.
        entries = found["population"]["rate_learning_rate"]
        assert entries["two_stage"]["difference_in_sd"]["largest_size"] < 0.44
        assert entries["base"]["difference_in_sd"]["largest_size"] > 0.6
        assert entries["base"]["sd_over_joint_sd"] > 2


def test_both_ways_are_linear_in_runs_and_small():
    """The table of the study's README: seconds of a processor, memory, R-hat."""
    rows = {row["runs"]: row for row in result("table")["rows"]}
    assert {8, 16, 32, 64} <= rows.keys()
    few, many = rows[8], rows[max(rows)]
    for way in ("joint", "two_stage"):
        if way in many and "cpu_seconds" in many[way]:
            assert many[way]["cpu_seconds"] / many["runs"] < few[way]["cpu_seconds"] / few["runs"]
    for row in rows.values():
        assert row["two_stage"]["peak_mb_of_a_process"] <= 2000
        assert row["two_stage"]["left_out"] == []
        assert row["two_stage"]["largest_rhat"] < 1.05
        if "strict" in row:
            # All of them before rounding; the largest is told to four decimals.
            assert row["strict"]["cohorts_below_1_01"] == row["two_stage"]["cohorts"]
            assert row["strict"]["largest_rhat"] <= 1.01


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


def _of(group, setting):
    return [getattr(run.hyperparameters, setting) for run in group.runs]


def test_what_was_learned_is_what_it_was_made_from():
    told = result("history")["team"]
    for entry in ENTRIES:
        (mean, spread), learned = told["learned"][entry]["made_from"], told["learned"][entry]
        error = learned["learned"][1] / np.sqrt(told["learned_from"])
        # What the page says falls short: means beyond chance, spreads of levels too small.
        assert abs(learned["learned"][0] - mean) < 0.45 * spread
        assert 0.5 * spread < learned["learned"][1] < 1.1 * spread
        assert abs(learned["base"][0] - mean) > 2 * error or entry == "rate_group_size"


def test_the_second_stage_alone_finds_what_a_thousand_cohorts_were_drawn_from():
    told = result("second_stage")
    assert told["cohorts"] == 1000
    for found in told["together"]["entries"].values():
        assert abs(found["in_errors"]) < 2
        spread = found.get("with_models_over_true", found["spread_over_true"])
        assert abs(np.log(spread)) < max(0.1, 2 * found["error_of_log_spread"])
    # Negative control: entry by entry, on the same cohorts.
    alone = told["entry_by_entry"]["entries"]
    assert all(abs(found["in_errors"]) > 2.5 for found in alone.values())
    assert all(alone[level]["with_models_over_true"] > 1.5 for level in ENTRIES[:2])


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
