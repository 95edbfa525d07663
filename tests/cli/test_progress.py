"""What a terminal shows while a command works."""

from __future__ import annotations

import pytest

from advisor.cli.terminal import Reporter


@pytest.fixture
def reporter(monkeypatch):
    """On a terminal of 100 columns, with a clock that is set by hand."""
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Reporter(quiet=False)


def bar(reporter):
    (task,) = reporter._live.tasks
    return task


def test_a_stage_that_is_done_does_not_stop_the_clock(reporter):
    """Rich takes a bar that is full for the end of the work."""
    reporter("Searching", 1.0, "")
    assert not bar(reporter).finished
    reporter("Searching", 0.2, "")
    assert bar(reporter).completed == 0.2


def test_reasons_stay_where_stages_replace_each_other(reporter, capsys):
    with reporter:
        reporter("Sampling again", None, "R-hat 1.2; 2 times the draws")
        reporter("Sampling again", None, "R-hat 1.2; 2 times the draws")
        reporter("Searching", 0.1, "12 of 120")
    lines = capsys.readouterr().err
    assert lines.count("Sampling again: R-hat 1.2; 2 times the draws\n") == 1
    assert "Searching: " not in lines
