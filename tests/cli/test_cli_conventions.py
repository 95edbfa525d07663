"""What holds for every command: help, --json, --quiet, colours, exit codes, no tracebacks."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import sys
import time

import pytest
import typer

import advisor.advice.pilot_plan
import advisor.forecast.fitting
import advisor.model.posterior
import advisor.model.priors
import advisor.monitoring.hook
import advisor.runs.logs
import advisor.study.comparison
import advisor.study.study
from advisor import demo_folder
from advisor.cli import STOPPED, app, main
from advisor.errors import InputError

LOG = str(demo_folder() / "s_lr3e-4_g8_k2" / "trainer_state.json")


def commands(group=None, before=()):
    """Every command by the words that call it."""
    found = {}
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*before, name))
        else:
            found[(*before, name)] = command
    return found


EVERY = commands()
WITHOUT_JSON = {
    ("export",): "what it prints is a config already",
    ("plot",): "it writes a figure",
    ("report",): "it writes a page",
    ("mcp",): "it speaks with a program",
}
WITHOUT_QUIET = {
    ("priors", "show"): "it prints nothing but the answer",
    ("mcp",): "it speaks with a program",
}
WITHOUT_FAULT = {("mcp",): "a fault is that of one tool: test_mcp.py"}


def flags_of(command):
    return {flag for parameter in command.params for flag in parameter.opts}


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_command_has_the_common_flags(words):
    flags = flags_of(EVERY[words])
    assert ("--json" in flags) == (words not in WITHOUT_JSON)
    assert ("--quiet" in flags) == (words not in WITHOUT_QUIET)


# Nothing but a sentence --------------------------------------------------------------------------

BROKEN = {
    ("demo",): (advisor.forecast, "fit", ["--out", "OUT"]),
    ("plan",): (
        advisor.advice,
        "plan",
        [
            *("--model", "m-7b", "--steps", "500", "--set", "learning_rate=1e-6"),
            *("--set", "group_size=8", "--set", "prompts_per_step=16"),
        ],
    ),
    ("pilots",): (advisor.advice.pilot_plan.PilotPlan, "load", ["PLAN"]),
    ("inspect",): (advisor.runs, "inspect", [LOG]),
    ("diagnose",): (advisor.runs, "inspect", [LOG]),
    ("fit",): (advisor.forecast, "fit", [LOG, "--out", "OUT"]),
    ("advise",): (advisor.forecast, "fit", [LOG, "--out", "OUT"]),
    ("backtest",): (advisor.runs, "read_runs", [LOG]),
    ("what-if",): (advisor.study.study.Study, "load", ["STUDY"]),
    ("next-pilot",): (advisor.study.study.Study, "load", ["STUDY"]),
    ("export",): (advisor.study.study.Study, "load", ["STUDY", "--to", "trl"]),
    ("plot",): (advisor.study.study.Study, "load", ["STUDY", "stability"]),
    ("show",): (advisor.study.study.Study, "load", ["STUDY"]),
    ("report",): (advisor.study.study.Study, "load", ["STUDY"]),
    ("compare",): (advisor.study.comparison, "is_study", ["STUDY", "STUDY"]),
    ("watch",): (advisor.monitoring, "load_posterior", [LOG, "--posterior", "P", "--once"]),
    ("priors", "show"): (advisor.model, "load_priors", ["lora"]),
}
"""What to break inside each command, and arguments with which it gets there."""


@pytest.fixture
def broken(monkeypatch, tmp_path):
    def broken_command(words):
        home, name, arguments = BROKEN[words]

        def fail(*given, **also):
            raise RuntimeError("[bold]boom")

        monkeypatch.setattr(home, name, fail)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "STUDY").mkdir()
        (tmp_path / "STUDY" / "manifest.json").write_text("{}")
        return [*words, *arguments]

    return broken_command


@pytest.mark.parametrize("words", sorted(EVERY.keys() - WITHOUT_FAULT), ids=" ".join)
def test_a_fault_inside_is_one_sentence_and_exit_code_1(broken, run, words):
    code, out, err = run(*broken(words))
    assert (code, out) == (1, "")
    assert ".py" not in err
    last = err.splitlines()[-1]
    assert last.startswith("Internal error (RuntimeError: [bold]boom). This is our fault")
    assert "--debug" in last


@pytest.mark.parametrize("words", sorted(EVERY.keys() - WITHOUT_FAULT), ids=" ".join)
def test_debug_raises(broken, words):
    with pytest.raises(RuntimeError, match="boom"):
        main([*broken(words), "--debug"])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("next", ". Did you mean 'next-pilot'?"),
        ("advize", ". Did you mean 'advise'"),
        ("recommend", ". Did you mean 'advise'?"),
        ("zzz", "."),
    ],
)
def test_a_command_that_is_not_there_names_the_one_that_begins_so(typed, meant, run):
    code, _, err = run(typed)
    assert code == 2
    assert f"No such command '{typed}'{meant}" in err


def test_interruption_is_no_traceback(monkeypatch, run):
    def interrupted(*given, **also):
        raise KeyboardInterrupt

    monkeypatch.setattr(advisor.runs, "inspect", interrupted)
    assert run("inspect", LOG)[0] == 130


@pytest.mark.parametrize("where", ["in a call", "in a destructor"])
def test_request_to_end_ends_a_command_wherever_it_comes(monkeypatch, run, where):
    """In a destructor Python would print a traceback and go on."""

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(100_000))  # the handler runs between two steps of Python

    class Gone:
        def __del__(self) -> None:
            stop()

    def inspected(*given, **also):
        if where == "in a call":
            stop()
        gone = Gone()
        del gone
        time.sleep(60)
        raise AssertionError("it went on")

    monkeypatch.setattr(advisor.runs, "inspect", inspected)
    code, _, said = run("inspect", LOG)
    assert code == 128 + signal.SIGTERM
    assert said == "Stopped: what was being written is as it was before.\n"


@pytest.mark.parametrize("is_stopped", [True, False])
def test_what_is_stopped_while_it_is_made_prints_no_traceback(monkeypatch, run, is_stopped):
    """Its destructor meets what was never set; without a stop that is told as ever."""
    told = []

    class HalfMade:
        def __init__(self) -> None:
            if is_stopped:
                os.kill(os.getpid(), signal.SIGTERM)
                sum(range(100_000))  # the handler runs between two steps of Python

        def __del__(self) -> None:
            self.never_set  # noqa: B018

    def inspected(*given, **also):
        HalfMade()
        raise InputError("made")

    monkeypatch.setattr(sys, "unraisablehook", lambda one: told.append(one.exc_type))
    monkeypatch.setattr(advisor.runs, "inspect", inspected)
    code, *_ = run("inspect", LOG)
    gc.collect()
    assert code == (128 + signal.SIGTERM if is_stopped else InputError.exit_code)
    assert told == ([] if is_stopped else [AttributeError])


def test_exit_codes_are_those_that_the_code_knows():
    from advisor import errors
    from advisor.cli import logs

    epilog = str(app.info.epilog)
    told = dict(re.findall(r"(\d+) ([a-z ]+)", epilog.partition("Exit codes: ")[2]))
    known = {
        0,
        STOPPED,
        128 + signal.SIGTERM,
        errors.AdvisorError.exit_code,
        errors.InputError.exit_code,
        errors.CannotTellError.exit_code,
        errors.NotConvergedError.exit_code,
        logs.FAILED,
    }
    assert {int(code) for code in told} == known
    assert (errors.AdvisorError.exit_code, told["1"]) == (1, "our fault")
    assert (errors.InputError.exit_code, told["2"]) == (2, "bad input or usage")
    assert errors.CannotTellError.exit_code == 3
    assert errors.NotConvergedError.exit_code == 4
    assert logs.FAILED == 5


# --json and --quiet ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", LOG],
        ["diagnose", LOG],
        ["compare", LOG, LOG],
        ["priors", "show"],
        ["priors", "show", "lora"],
    ],
    ids=" ".join,
)
def test_json_is_all_that_is_printed(run, words):
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "")
    json.loads(out, parse_constant=pytest.fail)  # neither NaN nor Infinity
