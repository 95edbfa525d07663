"""``advisor mcp``: commands as tools of the Model Context Protocol, over standard input.

A call is a process: it prints what a shell would see, disturbs no other, and can be stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import Signature, cleandoc, signature
from subprocess import DEVNULL
from typing import Annotated, Any, get_args

from typer.models import ArgumentInfo

from advisor.cli import flags
from advisor.cli.advise import advise
from advisor.cli.logs import FAILED, diagnose, inspect
from advisor.cli.study import export, next_pilot, what_if
from advisor.common import VERSION
from advisor.errors import CannotTellError, InputError

FOR_PEOPLE = {"quiet", "as_json", "debug", "details", "explained"}
"""Parameters that say how a command shows its answer on a terminal."""

TOOLS: dict[Callable[..., None], set[str]] = {
    inspect: FOR_PEOPLE,
    diagnose: FOR_PEOPLE,
    advise: FOR_PEOPLE | {"storage"},
    what_if: FOR_PEOPLE,
    next_pilot: FOR_PEOPLE | {"to"},
    export: FOR_PEOPLE | {"out"},
}
"""Commands that are tools, and the parameters that these leave to a shell."""

USE = (
    "Advice on group size, learning rate and refresh interval of a GRPO run from short pilot runs. "
    "inspect shows what logs hold and what is missing; advise fits them (about a minute) and "
    "writes a study; what_if, next_pilot and export ask that study. Paths are those of the "
    "server's machine, relative to the folder it was started in."
)


def mcp() -> None:
    """Serve inspect, diagnose, advise, what-if, next-pilot and export to an agent (MCP, stdio).

    [bold]Example[/]: advisor mcp
    """
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise InputError(
            "the Python SDK of the Model Context Protocol is not installed",
            advice="Install it with: pip install 'grpo-advisor[mcp]'",
        ) from error
    tools = [_tool(command, left_out) for command, left_out in TOOLS.items()]
    MCPServer("grpo-advisor", version=VERSION, instructions=USE, tools=tools).run()


def _tool(command: Callable[..., None], left_out: set[str]) -> Any:
    """Tool that runs a command: its parameters, with the words of their flags."""
    from mcp.server.mcpserver.tools import Tool
    from pydantic import Field

    options: dict[str, Any] = {}
    parameters = []
    for name, one in signature(flags.command(command)).parameters.items():
        if name not in left_out:
            kind, option = get_args(one.annotation)
            words = Field(description=option.help.replace("\\[", "["), ge=option.min)
            parameters.append(one.replace(annotation=Annotated[kind, words]))
            options[name] = option
    fixed = [command.__name__.replace("_", "-"), "--quiet"]
    fixed += ["--json"] if "as_json" in signature(command).parameters else []

    async def called(**given: Any) -> str:
        return await _printed([*fixed, *arguments_of(given, options)])

    called.__name__ = command.__name__
    called.__doc__ = cleandoc(command.__doc__ or "").partition("\n\n")[0]
    called.__signature__ = Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    tool = Tool.from_function(called, structured_output=False)
    # Ignored, a misspelt argument would have its default, and the answer be to another question.
    taken = tool.fn_metadata.arg_model
    taken.model_config["extra"] = "forbid"
    taken.model_rebuild(force=True)
    tool.parameters = taken.model_json_schema()
    return tool


def arguments_of(given: dict[str, Any], options: dict[str, Any]) -> list[str]:
    """Arguments of a command line; no value is taken for a flag."""
    named: list[str] = []
    places: list[str] = []
    for name, value in given.items():
        own = options[name].default  # Typer's place of the flag in an annotation
        flag = own if isinstance(own, str) else f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            if isinstance(options[name], ArgumentInfo):
                places.append(str(one))
            elif one is not None and one is not False:
                named.append(flag if one is True else f"{flag}={one}")
    return [*named, "--", *places]


async def _printed(arguments: list[str]) -> str:
    """What a command prints; its error is the tool's."""
    from anyio import run_process
    from mcp.server.mcpserver.exceptions import ToolError

    command = [sys.executable, "-m", "advisor", *arguments]
    done = await run_process(command, check=False, stdin=DEVNULL)
    printed, error = (str(text, "utf-8", "replace").strip() for text in (done.stdout, done.stderr))
    # Codes that come with an answer, be it that pilots cannot tell or that a run fails.
    if done.returncode not in (0, CannotTellError.exit_code, FAILED) or not printed:
        raise ToolError(f"{error}\n{printed}".strip())
    return printed
