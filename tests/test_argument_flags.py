"""The library's errors speak of arguments, the command line's of flags."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import typer

import advisor
from advisor.cli import app, argument_to_flag
from advisor.errors import InputError

PACKAGE = Path(advisor.__file__).parent
ERRORS = {"InputError", "StudyError", "writing"}


def raised():
    """Every error of the library that is made outside the command line."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS:
                yield path.relative_to(PACKAGE), node


def options_of(command):
    found = typer.main.get_command(app).commands[command]
    return {name for one in found.params for name in one.opts}


@pytest.mark.evidence
def test_arguments_of_the_advice_are_flags_of_the_command():
    commands = ("advise", "what-if", "plan", "pilots")
    options = set().union(*map(options_of, commands))
    arguments = {
        name
        for path, node in raised()
        if path.parts[0] == "advice"
        for word in node.keywords
        if word.arg == "argument" and isinstance(word.value, ast.Constant)
        for name in word.value.value.split(", ")
    }
    assert {"to_reward", "group_sizes", "storage"} <= arguments
    # Names of bounds that are checked in a loop stand in no call: they are raised.
    for name in ("level", "risk"):
        with pytest.raises(InputError) as refused:
            advisor.Request(**{name: 9.0})
        assert refused.value.argument == name
        arguments.add(name)
    flags = {
        name: name if name in options else argument_to_flag(name, options) for name in arguments
    }
    missing = {name for name, flag in flags.items() if flag not in options}
    assert missing == {"choose_from", "constraint"}  # Python only


@pytest.mark.parametrize(
    ("argument", "parameters", "flag"),
    [
        ("level", (), "--level"),
        ("seconds_per_step", {"--seconds-per-step", "--set"}, "--seconds-per-step"),
        ("study", {"study", "--out"}, "STUDY"),
        ("epochs_per_refresh", {"--epochs"}, "--epochs"),
        ("planned_steps", {"--steps", "--set"}, "--steps"),
        ("task", {"--posterior", "--set"}, "--set task=..."),
        ("task", {"--task", "--set"}, "--task"),
    ],
)
def test_arguments_become_flags(argument, parameters, flag):
    assert argument_to_flag(argument, parameters) == flag


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--level", "2"], "Error: --level: 2.0 cannot be"),
        (
            ["--steps", "5", "--completions", "9"],
            "Error: --steps, --batches, --completions, --gpu-hours: a r",
        ),
        (["--to-share", "2"], "Error: --to-share: 2.0 cannot be"),
        (["--group-sizes", "1"], "Error: --group-sizes: 1 cannot be"),
    ],
)
def test_command_speaks_of_flags(flags, said, tmp_path, run):
    code, _, err = run("advise", tmp_path, "--out", tmp_path / "study", *flags)
    assert code == 2
    assert err.startswith(said)
