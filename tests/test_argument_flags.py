"""The library's errors speak of arguments, the command line's of flags."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer

import advisor
from advisor.cli import app, argument_to_flag, main, with_flags
from advisor.errors import InputError

PACKAGE = Path(advisor.__file__).parent
ERRORS = {"InputError", "StudyError", "writing"}
FLAG = re.compile(r"(^|\s)--[a-z]")


def raised():
    """Every error of the library that is made outside the command line."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS:
                yield path.relative_to(PACKAGE), node


def texts(node):
    return [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


def options_of(command):
    found = typer.main.get_command(app).commands[command]
    return {name for one in found.params for name in one.opts}


@pytest.mark.evidence
def test_no_error_of_the_library_names_a_flag():
    named = [
        (str(path), node.lineno, text)
        for path, node in raised()
        for text in texts(node)
        if FLAG.search(text)
    ]
    # Where a file is read in a wrong place, both ways to say it are named.
    assert {path for path, _, _ in named} <= {"runs/logs/readers.py"}
    assert FLAG.search("Give --level")
    assert FLAG.search("--level")


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


def test_text_keeps_what_is_no_argument():
    said = str(InputError("it is none", path="a.csv", key="reward", advice="Give `reward_key`"))
    assert said == "a.csv, key 'reward': it is none. Give `reward_key`."
    assert with_flags(said) == "a.csv, key 'reward': it is none. Give --reward-key."
    assert with_flags("key '--set': 'x' is no key=value.") == "--set: 'x' is no key=value."


def test_no_flag_is_invented_for_a_file_that_a_command_named_itself():
    full = str(InputError("the report cannot be written", path="study/r.html", argument="path"))
    assert with_flags(full, {"study", "--set"}) == "study/r.html: the report cannot be written."


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--level", "2"], "Error: --level: level 2 is no probability"),
        (
            ["--steps", "5", "--completions", "9"],
            "Error: --steps, --batches, --completions, --gpu-hours: a r",
        ),
        (["--to-share", "2"], "Error: --to-share: 2 is no share"),
        (["--group-sizes", "1"], "Error: --group-sizes: the choices [1] are empty"),
    ],
)
def test_command_speaks_of_flags(flags, said, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["advise", str(tmp_path), "--out", str(tmp_path / "study"), *flags])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith(said)
