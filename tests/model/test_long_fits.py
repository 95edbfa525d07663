"""Fits that take long: one clock for all of it, and runs that are named where it is refused."""

from __future__ import annotations

import pytest
from simulated_runs import PRESET, Plan, rising

import advisor
from advisor.common import SAMPLING, silent
from advisor.errors import NotConvergedError
from advisor.forecast import fit
from advisor.model import FitClock, Sampling
from advisor.model import run_fit as residuals
from advisor.model.sampling import span

BRIEF = Sampling(draws=300, tune=50, target_accept=0.8, seed=5)


def runs():
    return [Plan(rate).run(rising(end=0.6), name) for rate, name in ((1e-4, "one"), (3e-4, "two"))]


# One clock ---------------------------------------------------------------------------------------


class Told:
    """What a clock passes on, while its time is set by hand."""

    def __init__(self) -> None:
        self.time = 0.0
        self.lines: list[tuple[str, float | None, str]] = []
        self.clock = FitClock(lambda *line: self.lines.append(line), lambda: self.time)

    def at(self, seconds: float, share: float) -> tuple[float | None, str]:
        self.time = seconds
        self.clock(SAMPLING, share, "4 chains")
        return self.lines[-1][1:]


def test_what_is_left_is_that_of_the_attempt_at_its_own_speed():
    told = Told()
    told.clock.begin(6000, 0, 3)
    share, detail = told.at(20, 0.25)
    assert detail == "4 chains, about 60 s left of the fit"
    assert share == pytest.approx(20 / 80)


def test_time_goes_on_over_attempts():
    """The second attempt is five times as long: it is known from its first moment, and counted."""
    told = Told()
    told.clock.begin(1000, 0, 3)
    first, _ = told.at(90, 0.9)
    told.time = 100
    told.clock.end()
    told.clock.begin(5000, 1, 3)
    share, detail = told.at(100, 0.0)
    # At ten draws a second 500 s are left, of 600 in all.
    assert detail == "attempt 2 of at most 3, 4 chains, about 8 min left of the fit"
    assert share == pytest.approx(100 / 600)
    assert 0 < share < first
    # A sampler with smaller steps is slower: its own speed counts as soon as it shows.
    share, detail = told.at(300, 0.2)
    assert detail.endswith("about 13 min left of the fit")
    assert share == pytest.approx(300 / 1100)


def test_nothing_is_guessed_before_a_draw_was_made():
    told = Told()
    told.clock.begin(1000, 0, 3)
    assert told.at(5, 0.0) == (None, "4 chains")


def test_other_stages_pass_as_they_are():
    told = Told()
    told.clock("Checking convergence", None, "")
    assert told.lines == [("Checking convergence", None, "")]


def test_a_sampler_that_nobody_listens_to_counts_no_draws():
    assert FitClock(silent).heard is silent
    assert Told().clock.heard is not silent


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


@pytest.mark.parametrize(
    ("far", "named"),
    [
        ({}, 0),
        ({"one": 3.0}, 0),
        ({"one": 3.0, "two": 1.0}, 1),
        ({"one": float("nan"), "two": 1.0}, 0),
        ({str(run): 1.0 + run for run in range(12)}, 3),
    ],
)
def test_no_more_than_half_of_the_runs_are_named(monkeypatch, far, named):
    monkeypatch.setattr(residuals, "strays", lambda posterior: far)
    said = residuals.worst_fits(object())
    assert said.count("times the noise") == named


def test_draws_that_are_nobodys_name_nobody(monkeypatch):
    def broken(posterior):
        raise advisor.StudyError("the draws are not those of the pilots")

    monkeypatch.setattr(residuals, "strays", broken)
    assert residuals.worst_fits(object()) == ""
