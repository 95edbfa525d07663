"""The study of scale: its results hold what the pages say, and its cohorts are pure functions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from studies import STUDIES, modules_of

from advisor.run.digest import run_digest

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
        return [run_digest(run) for run in cohorts.made_cohort(number, population, 20)]

    assert digests(3, cohorts.TEAM) == digests(3, cohorts.TEAM)
    assert not set(digests(3, cohorts.TEAM)) & set(digests(4, cohorts.TEAM))
    assert not set(digests(3, cohorts.TEAM)) & set(digests(3, cohorts.STRANGERS))


def test_every_engine_gave_the_same_and_lost_nothing():
    told = result("engines")
    assert told["worker_was_killed"]
    assert {"processes", "dask", "dask, a worker killed"} <= told["engines"].keys()
    assert all(one["equal"] and one["lost"] == 0 for one in told["engines"].values())
    assert told["engines"]["processes"]["wall_over_bare_pool"] <= 1.1


def test_what_was_learned_is_what_it_was_made_from():
    told = result("history")["team"]
    for entry in ENTRIES:
        (mean, spread), learned = told["learned"][entry]["made_from"], told["learned"][entry]
        error = learned["learned"][1] / np.sqrt(told["learned_from"])
        assert abs(learned["learned"][0] - mean) < 4 * error
        # Few cohorts and broad errors leave the spread too wide rather than too narrow.
        assert spread < learned["learned"][1] < 1.6 * spread
        assert abs(learned["base"][0] - mean) > 2 * error or entry == "rate_group_size"


def test_strangers_and_the_preset_before_lose_on_held_out_cohorts():
    told = result("history")["held_out"]
    for name in ("strangers", "small_models"):
        gain = told[f"team_over_{name}"]
        assert gain["mean"] > 4 * gain["standard_error"]


def test_a_thousand_studies_are_learned_from_within_the_bounds():
    told = result("history")["population_step"]
    assert (told["cohorts"], told["seconds"] <= 120) == (1000, True)
    assert told["peak_mb_of_the_process"] <= 2000


def test_the_store_lost_nothing():
    told = result("store")
    assert (told["clients"], told["exit_codes"]) == (50, [0] * 5)
    assert told["lost"] == told["incomplete"] == 0
    assert told["written"] == told["there"] > 50
    assert told["server_killed_for_seconds"] > 0
