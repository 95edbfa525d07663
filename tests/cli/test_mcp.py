"""Commands as tools of the Model Context Protocol, asked by the SDK's own client."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer import Option
from typer.models import ArgumentInfo

from advisor.cli.mcp import TOOLS, arguments_of
from advisor.errors import InputError

ROOT = Path(__file__).parents[2]
PILOTS = ROOT / "case_studies/tiny_transformer/demo/pilots"
STUDY = ROOT / "tests/data/study"
NAMES = ["inspect", "diagnose", "advise", "what_if", "next_pilot", "export"]


def test_without_the_sdk_it_says_what_to_install():
    code = "import sys; sys.modules['mcp'] = None\nfrom advisor.cli import main; main(['mcp'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == InputError.exit_code
    assert done.stderr.strip().endswith("Install it with: pip install 'grpo-advisor[mcp]'.")
    assert done.stderr.count("\n") == 1


def test_no_value_is_taken_for_a_flag():
    options = {
        "logs": ArgumentInfo(),
        "learning_rate": Option(),
        "settings": Option("--set"),
        "fast": Option("--fast"),
    }
    given = {"logs": ["--out=x", "-h"], "learning_rate": None, "fast": True}
    assert arguments_of(given, options) == ["--fast", "--", "--out=x", "-h"]
    given = {"logs": ["a"], "learning_rate": [1e-4, 2e-4], "settings": ["-x=1"], "fast": False}
    rates = ["--learning-rate=0.0001", "--learning-rate=0.0002"]
    assert arguments_of(given, options) == [*rates, "--set=-x=1", "--", "a"]


def test_what_is_left_out_is_a_parameter():
    from advisor.cli import flags

    for command, left_out in TOOLS.items():
        known = inspect.signature(flags.command(command)).parameters
        assert "quiet" in left_out & known.keys()
    assert [command.__name__ for command in TOOLS] == NAMES


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
    command = [sys.executable, "-m", "advisor", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def text(result):
    (block,) = result.content
    return block.text


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
        (seen, ["inspect", PILOTS, "--json"]),
        (judged, ["diagnose", PILOTS, "--json"]),
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
    said = json.loads(text(advice))
    assert said == json.loads((tmp_path / "answer/recommendation.json").read_text())
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
        assert schema["required"] in (["logs"], ["study"])
        assert all(one.get("description") for one in schema["properties"].values())
        assert not any("\\" in one["description"] for one in schema["properties"].values())
    advise = tools[NAMES.index("advise")].input_schema["properties"]
    assert advise["gpus"]["minimum"] == 1
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
