"""Commands as tools of the Model Context Protocol, asked by the SDK's own client."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from pathlib import Path

import pytest
from processes import python
from typer import Option
from typer.models import ArgumentInfo

from advisor.cli import flags
from advisor.cli.mcp import COMMANDS, _printed, _table, _tool, arguments_of, brief
from advisor.errors import InputError

ROOT = Path(__file__).parents[2]
PILOTS = ROOT / "case_studies/tiny_transformer/demo/pilots"
STUDY = ROOT / "tests/data/study"
NAMES = [*COMMANDS, "answer_part"]
FOR_PEOPLE = {
    *("quiet", "as_json", "form", "details", "explained"),
    *("storage", "to", "schedule", "out", "fail_on", "pilots"),
    *("once", "every", "silent_after", "stop", "dry_run"),
}
"""Parameters that some tool leaves to a shell."""


def test_without_the_sdk_it_says_what_to_install():
    code = "import sys; sys.modules['mcp'] = None\nfrom advisor.cli import main; main(['mcp'])"
    done = python("-c", code)
    assert done.returncode == InputError.exit_code
    assert done.stderr.strip().endswith("Install it with: pip install 'grpo-advisor[mcp]'.")
    assert done.stderr.count("\n") == 1


def test_no_value_is_taken_for_a_flag():
    options = {
        "logs": (ArgumentInfo(), True),
        "learning_rate": (Option(), True),
        "group_sizes": (Option(), False),
        "known": (Option(), False),
        "settings": (Option("--set"), True),
        "fast": (Option("--fast"), False),
    }
    given = {"logs": ["--out=x", "-h"], "learning_rate": None, "fast": True}
    assert arguments_of(given, options) == ["--fast", "--", "--out=x", "-h"]
    given = {"logs": "a", "learning_rate": [1e-4, 2e-4], "settings": {"-x": 1}, "fast": False}
    rates = ["--learning-rate=0.0001", "--learning-rate=0.0002"]
    assert arguments_of(given, options) == [*rates, "--set=-x=1", "--", "a"]
    given = {"learning_rate": 2e-5, "group_sizes": [8, 16], "known": {"a": 1, "b": 2}}
    named = ["--learning-rate=2e-05", "--group-sizes=8,16", "--known=a=1,b=2"]
    assert arguments_of(given, options) == [*named, "--"]


def test_tools_take_what_their_commands_take_but_for_what_is_for_people():
    for name, command in COMMANDS.items():
        takes = _table()["tools"][name]["takes"]
        known = inspect.signature(flags.command(command)).parameters.keys()
        assert len(takes) == len(set(takes))
        assert set(takes) <= known
        assert known - set(takes) <= FOR_PEOPLE, name


@pytest.mark.parametrize("place", ["study/recommendation.json", "saved/infeasible.json"])
@pytest.mark.parametrize("length", [0, 900, 5000])
def test_json_of_an_answer_stays_short_whichever_part_is_long(place, length):
    answer = json.loads((STUDY.parent / place).read_text())
    for name in (*answer, *(("every",) if length else ())):
        longer = {key: ["x" * length] for key in (answer if name == "every" else [name])}
        given = {**answer, **longer, "settings": answer["settings"]}
        text = brief(given)
        assert len(text) <= 4000, name
        short = json.loads(text)
        left_out = short.pop("answer_part")
        assert {*short, *left_out} == answer.keys()
        settings = {key: value for key, value in answer["settings"].items() if value is not None}
        assert {**given, "settings": settings, **short} == {**given, "settings": settings}


@pytest.fixture
def asked(tmp_path):
    """Answers of a server that a client starts, to calls one after the other."""
    mcp = pytest.importorskip("mcp")

    async def ask(*calls):
        server = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "advisor", "mcp"],
            env=dict(os.environ),
            cwd=tmp_path,
        )
        async with mcp.Client(mcp.stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(name, given) for name, given in calls]

    return lambda *calls: asyncio.run(asyncio.wait_for(ask(*calls), 300))


def printed(*arguments, folder):
    return python("-m", "advisor", *arguments, cwd=folder).stdout


def text(result):
    (block,) = result.content
    return block.text


@pytest.fixture
def called(monkeypatch):
    """What a tool runs, in place of a process, for some arguments."""
    pytest.importorskip("mcp")
    import advisor.cli.mcp

    def call(name, **given):
        ran = []

        async def printed(arguments):
            ran.extend(arguments)
            return "printed"

        monkeypatch.setattr(advisor.cli.mcp, "_printed", printed)
        tool = _tool(name, lambda study: [])
        asyncio.run(tool.run(given, None))
        return ran

    return call


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("what_if", {"study": "s", "learning_rates": 1e-4}, "no such argument. Give learning_rate"),
        ("what_if", {"study": "s", "learning_rate": "high"}, "Give a number or a list: One"),
        ("what_if", {}, "'study': it is missing. Give a text: Path of the study"),
        ("advise", {"logs": ["a"], "gpus": 0}, "Give a whole number of at least 1: GPUs"),
        ("advise", {"logs": ["a"], "fast": "maybe"}, "Give true or false"),
    ],
)
def test_a_wrong_argument_is_named_in_a_sentence(called, name, given, says):
    from mcp.server.mcpserver.exceptions import ToolError

    with pytest.raises(ToolError) as refused:
        called(name, **given)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not any(
        word in str(refused.value) for word in ("pydantic", "validation", "Input should")
    )
    assert len(str(refused.value).split()) <= 45


def test_a_null_byte_in_a_path_is_answered_in_a_sentence():
    exceptions = pytest.importorskip("mcp.server.mcpserver.exceptions")
    with pytest.raises(exceptions.ToolError, match="there is no such file or folder"):
        asyncio.run(_printed(["inspect", "--", "a\0b"]))


@pytest.mark.evidence
def test_tools_say_what_the_commands_print(asked, tmp_path):
    tools, (seen, judged, other, pilot, config) = asked(
        ("inspect", {"logs": [str(PILOTS)]}),
        ("diagnose", {"logs": [str(PILOTS)]}),
        ("what_if", {"study": str(STUDY), "group_size": [8, 32], "steps": 90}),
        ("next_pilot", {"study": str(STUDY), "steps": 40}),
        ("export", {"study": str(STUDY), "to": "verl"}),
    )
    assert [tool.name for tool in tools] == NAMES
    for result, command in (
        (seen, ["inspect", PILOTS]),
        (judged, ["diagnose", PILOTS]),
        (other, ["what-if", STUDY, "--group-size", 8, "--group-size", 32, "--steps", 90, "--json"]),
        (pilot, ["next-pilot", STUDY, "--steps", 40, "--json"]),
        (config, ["export", STUDY, "--to", "verl"]),
    ):
        assert not result.is_error
        assert text(result) == printed(*command, folder=tmp_path).strip()
    assert [row["group_size"] for row in json.loads(text(other))] == [8, 32]
    assert json.loads(text(pilot))["steps"] == 40


@pytest.mark.evidence
def test_an_agent_comes_from_logs_to_a_config(asked, tmp_path):
    pilots = {"logs": [str(PILOTS)], "steps": 300, "fast": True, "out": "answer"}
    _, (advice, what_if, config) = asked(
        ("advise", pilots),
        ("what_if", {"study": "answer"}),
        ("export", {"study": "answer", "to": "trl"}),
    )
    assert not advice.is_error
    words, short, *links = advice.content
    said = json.loads((tmp_path / "answer/recommendation.json").read_text())
    assert words.text.startswith(("Recommended", "Best setting found", "Run this pilot"))
    assert len(short.text) <= 4000
    assert json.loads(short.text)["settings"]["learning_rate"] == said["settings"]["learning_rate"]
    assert [link.mime_type for link in links] == ["text/html", *["image/png"] * (len(links) - 1)]
    assert len(links) >= 3
    (row,) = json.loads(text(what_if))
    assert row["learning_rate"] == said["settings"]["learning_rate"]
    assert f"num_generations: {said['settings']['group_size']}\n" in text(config)


@pytest.mark.evidence
def test_arguments_are_published_and_errors_are_text(asked):
    tools, (missing, unknown, mistyped, nothing) = asked(
        ("inspect", {"logs": ["nowhere"]}),
        ("what_if", {"study": str(STUDY), "learning_rates": [1e-4]}),
        ("advise", {"logs": [str(PILOTS)], "gpus": 0}),
        ("export", {"study": "--help"}),
    )
    for tool in tools:
        schema = tool.input_schema
        assert schema["additionalProperties"] is False
        assert schema["required"][0] in ("logs", "study", "log")
        assert all(one.get("description") for one in schema["properties"].values())
    advise = tools[NAMES.index("advise")].input_schema["properties"]
    assert {"minimum": 1, "type": "integer"} in advise["gpus"]["anyOf"]
    assert "steps" in advise
    for result, words in (
        (missing, "nowhere: there is no such file or folder"),
        (unknown, "learning_rates"),
        (mistyped, "gpus"),
        (nothing, "it is no study"),
    ):
        assert result.is_error
        assert words in text(result)
        assert "Traceback" not in text(result)
