"""Fits that take long: one clock for all of it, and attempts that outlive the process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import advisor
from advisor.errors import NotConvergedError
from advisor.forecast.fit import fit
from advisor.model import fit_journal, residuals
from advisor.model.fit_clock import FitClock, span
from advisor.model.fit_journal import folder_beside
from advisor.model.priors import load_priors
from advisor.model.sampling import Sampling
from advisor.run.progress import SAMPLING, silent
from advisor.testing import Plan, rising
from advisor.testing.simulate import PRESET

PACKAGE = Path(advisor.__file__).parent.parent
BRIEF = Sampling(draws=300, tune=50, target_accept=0.8, seed=5)


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


# Attempts that outlive the process ---------------------------------------------------------------


def runs(end=0.6):
    return [Plan(rate).run(rising(end=end), name) for rate, name in ((1e-4, "one"), (3e-4, "two"))]


class Killed(BaseException):
    """Nothing may catch it: the process is gone."""


@pytest.fixture
def killed_at(sampler, monkeypatch):
    """Ends the fit as the sampler is called for the n-th time."""
    from advisor.model import compat

    whole = compat.sample_density

    def at(number: int) -> None:
        def sample(*given, **also):
            if len(sampler.attempts) + 1 == number:
                raise Killed
            return whole(*given, **also)

        monkeypatch.setattr(compat, "sample_density", sample)

    return at


def asked(keep, said=None, **changes):
    given = {"priors": PRESET, "sampling": BRIEF, "keep": keep, **changes}
    told = None if said is None else (lambda *line: said.append(line))
    return fit(given.pop("runs", None) or runs(), progress=told, **given)


@pytest.mark.parametrize("at", [2, 3])
def test_a_killed_fit_goes_on_after_its_last_attempt(sampler, killed_at, tmp_path, at):
    keep = tmp_path / ".posterior.nc.fit"
    sampler.passes_at = 3
    whole = asked(None)
    sampler.attempts.clear()
    killed_at(at)
    with pytest.raises(Killed):
        asked(keep)
    assert len(list(keep.iterdir())) == at - 1
    killed_at(0)
    said: list = []
    found = asked(keep, said)
    # The n-th call of the sampler is the n-th attempt: none was made twice.
    assert [seed for *_, seed in sampler.attempts] == [5, 6, 7]
    (going_on,) = [detail for stage, _, detail in said if stage == "Going on"]
    many = "1 attempt is" if at == 2 else "2 attempts are"
    assert f"{many} done and kept in {keep}" in going_on
    for name, values in whole.draws.items():
        np.testing.assert_array_equal(found.draws[name], values)
    assert found.meta.notes == whole.meta.notes
    assert not keep.exists()


def test_what_is_decided_from_kept_attempts_is_what_was_decided(sampler, killed_at, tmp_path):
    """Divergences of the kept attempt ask for smaller steps in the next one."""
    sampler.passes_at, sampler.diverging = (1, 2), 0.005
    killed_at(2)
    with pytest.raises(Killed):
        asked(tmp_path / "keep")
    killed_at(0)
    posterior = asked(tmp_path / "keep")
    assert [accept for _, _, accept, _ in sampler.attempts] == [0.8, 0.97]
    assert "after 2 attempts" in str(posterior.meta.notes)


@pytest.mark.parametrize(
    "change",
    [
        {"runs": runs(end=0.61)},
        {"sampling": BRIEF.model_copy(update={"seed": 6})},
        {"priors": load_priors(PRESET).model_copy(update={"name": "another"})},
        {"family": "oscillator"},
        "version",
    ],
    ids=["logs", "settings", "priors", "family", "version"],
)
def test_another_fit_starts_at_the_beginning(sampler, killed_at, tmp_path, monkeypatch, change):
    killed_at(3)
    with pytest.raises(Killed):
        asked(tmp_path / "keep")
    old = {file.name for file in (tmp_path / "keep").iterdir()}
    assert len(old) == 2
    made = len(sampler.attempts)
    killed_at(made + 2)
    if change == "version":
        monkeypatch.setattr(fit_journal, "VERSION", "9.9")
        change = {}
    said: list = []
    with pytest.raises(Killed):
        asked(tmp_path / "keep", said, **change)
    assert len(sampler.attempts) == made + 1
    assert "Going on" not in {stage for stage, *_ in said}
    # What nobody will ask for again is swept.
    assert not old & {file.name for file in (tmp_path / "keep").iterdir()}


def test_the_narrower_preset_goes_on_as_well(sampler, killed_at, tmp_path):
    team = load_priors("full_finetuning").model_copy(update={"name": "team"})
    killed_at(5)
    with pytest.raises(Killed):
        asked(tmp_path / "keep", priors=team)
    sampler.passes_at = 5
    killed_at(0)
    posterior = asked(tmp_path / "keep", priors=team)
    assert len(sampler.attempts) == 5  # three under the team's, the second under the narrower
    assert posterior.meta.priors.name == "small_models"


def test_an_attempt_that_was_not_kept_whole_is_made_again(sampler, killed_at, tmp_path):
    killed_at(2)
    with pytest.raises(Killed):
        asked(tmp_path / "keep")
    (file,) = (tmp_path / "keep").iterdir()
    file.write_bytes(file.read_bytes()[:-2000])
    sampler.passes_at = 2
    killed_at(0)
    asked(tmp_path / "keep")
    assert [seed for *_, seed in sampler.attempts] == [5, 5]


def test_a_fit_that_passes_at_once_writes_nothing(sampler, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_journal, "write_whole", lambda *_: pytest.fail("it was written"))
    sampler.passes_at = 1
    asked(tmp_path / "keep")
    assert not (tmp_path / "keep").exists()


def test_nothing_is_left_of_a_fit_that_is_refused(sampler, tmp_path):
    with pytest.raises(NotConvergedError):
        asked(tmp_path / "keep")
    assert not (tmp_path / "keep").exists()


def test_what_others_put_there_stays(sampler, tmp_path):
    (tmp_path / "mine.nc").write_text("mine")
    sampler.passes_at = 2
    asked(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.nc"]


def test_a_place_that_cannot_be_written_is_said_and_costs_nothing(sampler, tmp_path):
    (tmp_path / "file").write_text("")
    sampler.passes_at = 2
    said: list = []
    asked(tmp_path / "file", said)
    assert [detail for stage, _, detail in said if stage == "Not kept"]
    assert len(sampler.attempts) == 2


KILLED = """
import sys, time
import numpy as np
from advisor.model import compat

def sample(log_density, expand, shapes, start, *, draws, tune, chains, seed, **others):
    with open("attempts", "a") as file:
        file.write(f"{seed}\\n")
    if SLEEPS and seed == FIRST + 1:
        time.sleep(600)
    rng = np.random.default_rng(seed)
    apart = np.arange(chains) * (seed == FIRST)
    found = {
        name: 0.1 * rng.standard_normal((chains, draws, *shape))
        + 0.5 * apart.reshape(-1, 1, *[1] * len(shape))
        for name, shape in shapes.items()
    }
    return found, {"diverging": np.zeros((chains, draws)), "n_steps": np.full((chains, draws), 7.0)}

compat.sample_density = sample
from advisor.cli.app import main
seed = str(FIRST)
main(["fit", sys.argv[1], "--out", "posterior.nc", "--seed", seed, "--priors", "small_models"])
"""


def test_the_command_goes_on_after_a_kill(tmp_path):
    """SIGKILL in the second attempt: called again, the command says from where it goes on."""
    logs = Path(str(advisor.logs.demo_folder()))
    here = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(PACKAGE)}}

    def command(sleeps: bool) -> list[str]:
        head = f"SLEEPS, FIRST = {sleeps}, 11\n"
        return [sys.executable, "-c", head + KILLED, str(logs)]

    attempts = tmp_path / "attempts"
    with subprocess.Popen(
        command(True), stderr=subprocess.PIPE, stdout=subprocess.PIPE, **here
    ) as first:
        try:
            while not attempts.exists() or "12" not in attempts.read_text():
                assert first.poll() is None, first.communicate()
                time.sleep(0.1)
        finally:
            first.kill()
    keep = folder_beside(tmp_path / "posterior.nc")
    assert len(list(keep.iterdir())) == 1
    again = subprocess.run(command(False), capture_output=True, text=True, **here)
    assert again.returncode == 0, again.stderr
    assert "Going on: a fit of the same logs and settings was ended: 1 attempt" in again.stderr
    assert attempts.read_text().split() == ["11", "12", "12"]
    assert (tmp_path / "posterior.nc").exists()
    assert not keep.exists()


# Runs that fit worst -----------------------------------------------------------------------------


def test_runs_that_fit_worst_are_named_where_no_fit_converges(sampler, monkeypatch):
    far = {"two": 4.2, "one": 1.5, "four": 1.1, "three": 0.9}
    monkeypatch.setattr(residuals, "strays", lambda posterior: far)
    with pytest.raises(NotConvergedError) as no:
        asked(None)
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
