"""Fits that take long: what is left of them, and runs that are named where one is refused."""

from __future__ import annotations

import pytest
from simulated_runs import PRESET, Plan, rising

import advisor
from advisor.common import SAMPLING, TimeLeft
from advisor.common.shown import span
from advisor.errors import NotConvergedError
from advisor.forecast import fit
from advisor.model import Sampling
from advisor.model import run_fit as residuals

BRIEF = Sampling(draws=300, tune=50, target_accept=0.8, seed=5)


def runs():
    return [Plan(rate).run(rising(end=0.6), name) for rate, name in ((1e-4, "one"), (3e-4, "two"))]


# What is left -----------------------------------------------------------------------------------


class Told:
    """Details of stages, while the time is set by hand."""

    def __init__(self) -> None:
        self.time = 0.0
        self.left = TimeLeft(lambda: self.time)

    def at(self, seconds: float, share: float | None, stage: str = SAMPLING) -> str:
        self.time = seconds
        return self.left(stage, share, "4 chains")


def test_what_is_left_is_that_of_the_stage_at_its_own_speed():
    told = Told()
    assert told.at(100, 0.0) == "4 chains"
    assert told.at(120, 0.25) == "4 chains, about 60 s left"
    # The next stage has its own speed, and begins when it is first told.
    assert told.at(130, None, "Sampling again") == "4 chains"
    assert told.at(140, 0.0) == "4 chains"
    assert told.at(340, 0.5) == "4 chains, about 3 min left"


@pytest.mark.parametrize("share", [None, 0.0, 0.009, 1.0])
def test_nothing_is_guessed_where_nothing_shows_it(share):
    told = Told()
    told.at(0, 0.0)
    assert told.at(60, share) == "4 chains"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4, "4 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (9000, "2.5 h")],
)
def test_times_are_in_units_of_a_person(seconds, text):
    assert span(seconds) == text


# Runs that fit worst -----------------------------------------------------------------------------


@pytest.mark.evidence
def test_runs_that_fit_worst_are_named_where_no_fit_converges(sampler, monkeypatch):
    far = {"two": 4.2, "one": 1.5, "four": 1.1, "three": 0.9}
    monkeypatch.setattr(residuals, "strays", lambda posterior: far)
    with pytest.raises(NotConvergedError) as no:
        fit(runs(), priors=PRESET, sampling=BRIEF)
    said = "Farthest from their fitted curves: 'two' (4.2 times the noise), 'one' (1.5 times"
    assert said in str(no.value)
    assert "'four'" not in str(no.value).partition("Farthest")[2]


def test_draws_that_are_nobodys_name_nobody(monkeypatch):
    def broken(posterior):
        raise advisor.StudyError("the draws are not those of the pilots")

    monkeypatch.setattr(residuals, "strays", broken)
    assert residuals.worst_fits(object()) == ""
